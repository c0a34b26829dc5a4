// SPDX-License-Identifier: Apache-2.0
import CLinux

/// Why something that systemd offers could not be used: what was wrong, where, and what to do.
public enum SystemdError: Error, Sendable, Hashable, CustomStringConvertible {
  /// A variable of the environment is not what systemd.exec(5) says it is.
  case malformedVariable(name: String, value: String, reason: String)
  /// What the caller gave can't be sent or used as it is.
  case invalidArgument(String)
  /// What a peer or the kernel handed over is not what its protocol says.
  case malformedInput(String)
  /// A descriptor was preserved under this name, but for another use; `found` says what it is, as in "inet stream
  /// connection". It is still there to be taken.
  case wrongKind(name: String, expected: DescriptorUse, found: String)
  /// The service manager's store may have no place for this one, so nothing was sent.
  case storeFull(name: String, limit: Int)
  /// It did not happen in time.
  case timedOut(String)
  /// A system call failed: what it was for, and the `errno` value.
  case system(String, errno: Int32)

  /// No descriptor, or no memory for another open file: it passes.
  package var isShortage: Bool {
    if case .system(_, let number) = self { Self.isShortage(number) } else { false }
  }

  /// The same of an `errno` value.
  package static func isShortage(_ number: Int32) -> Bool {
    [EMFILE, ENFILE, ENOMEM].contains(number)
  }

  /// One sentence, for a log or a status line.
  public var description: String {
    switch self {
    case .malformedVariable(let name, let value, let reason):
      "The environment variable \(name) is \"\(value)\", which \(reason)."
    case .invalidArgument(let sentence), .malformedInput(let sentence): sentence
    case .wrongKind(let name, let expected, let found):
      "The descriptor \"\(name)\" is a \(found) and not a \(expected). It was not taken."
    case .storeFull(let name, let limit):
      "\"\(name)\" is not kept over a restart: the store of \(limit) descriptors is full. Forget what is closed, or"
        + " raise FileDescriptorStoreMax=."
    case .timedOut(let purpose): "Could not \(purpose) in time."
    case .system(let purpose, let errno):
      "Could not \(purpose): \(String(cString: strerror(errno))) (errno \(errno))."
    }
  }
}
