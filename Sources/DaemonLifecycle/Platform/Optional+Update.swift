// SPDX-License-Identifier: Apache-2.0
extension Optional {
  /// Changes the value, if there is one.
  ///
  /// For optional fields of a noncopyable struct. `state.round?.field = x` leaks the old value there with Swift 6.3.1,
  /// and stops the compiler of 6.2.3.
  mutating func update(_ change: (inout Wrapped) -> Void) {
    guard var value = take() else { return }
    change(&value)
    self = value
  }
}
