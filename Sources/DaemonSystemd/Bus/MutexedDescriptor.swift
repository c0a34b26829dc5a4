import Synchronization

/// A descriptor's number that is given out once.
final class MutexedDescriptor: Sendable {
  /// -1 once it was taken.
  private let number: Mutex<Int32>

  init(_ number: Int32) { self.number = Mutex(number) }

  var isHeld: Bool { number.withLock { $0 >= 0 } }

  func take() -> Int32? {
    number.withLock { number in
      guard number >= 0 else { return nil }
      defer { number = -1 }
      return number
    }
  }

  /// Under the lock, so that the number can't be closed, and be somebody else's, meanwhile.
  func with<Value>(_ body: (Int32) -> Value) -> Value? {
    number.withLock { $0 >= 0 ? body($0) : nil }
  }
}
