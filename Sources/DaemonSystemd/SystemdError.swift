// SPDX-License-Identifier: Apache-2.0
import CLinux

/// An error in the use of one of systemd's interfaces. Its description names the problem, the place and a remedy.
/// Minor versions may add cases.
#if hasAttribute(nonexhaustive)
  @nonexhaustive
#endif
public enum SystemdError: Error, Sendable, Hashable, CustomStringConvertible {
  /// A variable of the environment is malformed (systemd.exec(5)).
  case malformedVariable(name: String, value: String, reason: String)
  /// An argument of the caller can't be sent or used.
  case invalidArgument(String)
  /// Input from a peer or the kernel does not conform to its protocol.
  case malformedInput(String)
  /// A descriptor of this name is of another kind than expected; `found` names it. It was not taken.
  case wrongKind(name: String, expected: DescriptorUse, found: String)
  /// The service manager's store may have no room for the descriptor, so nothing was sent.
  case storeFull(name: String, limit: Int)
  /// The operation did not finish in time.
  case timedOut(purpose: String)
  /// A system call failed.
  case system(purpose: String, errno: Int32)

  /// Whether the error is a shortage of descriptors or of memory, which is temporary.
  package var isShortage: Bool {
    if case .system(_, let number) = self { Self.isShortage(number) } else { false }
  }

  /// Whether an `errno` value means such a shortage.
  package static func isShortage(_ number: Int32) -> Bool {
    [EMFILE, ENFILE, ENOMEM].contains(number)
  }

  /// The error in one sentence, for a log or a status line.
  public var description: String {
    switch self {
    case .malformedVariable(let name, let value, let reason):
      "The environment variable \(name) is \"\(VisibleText.excerpt(value))\", which \(reason)."
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
