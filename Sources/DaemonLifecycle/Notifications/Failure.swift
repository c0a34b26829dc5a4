// SPDX-License-Identifier: Apache-2.0
/// An error, and what it says of itself: put into words where it was thrown, since that is user code.
struct Failure: Sendable {
  let error: any Error
  let text: String

  init(_ error: any Error) {
    self.error = error
    text = "\(error)"
  }
}
