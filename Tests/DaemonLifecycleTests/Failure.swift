/// What a hook of a test throws.
struct Failure: Error {}
