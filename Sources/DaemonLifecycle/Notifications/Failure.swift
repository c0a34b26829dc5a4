// SPDX-License-Identifier: Apache-2.0
/// An error and its text, which is rendered where the error was thrown, since rendering it is user code.
struct Failure: Sendable {
  let error: any Error
  let text: String

  init(_ error: any Error) {
    self.error = error
    text = "\(error)"
  }
}
