// SPDX-License-Identifier: Apache-2.0
/// What a hook of a test throws.
struct Failure: Error {}
