import CLinux

/// What is wrong with a readiness file.
enum ReadinessError: Error, Hashable, CustomStringConvertible {
  case notAPath(String)
  case noDirectory(String, directory: String)
  case inTheWay(String, String)
  case foreignOwner(String, uid: UInt32)
  case inUse(String)
  case replaced(String)
  case removedByAnother(String)
  case system(String, String, errno: Int32)

  /// For want of a descriptor or of memory, which passes.
  var isShortage: Bool {
    if case .system(_, _, let number) = self {
      SystemCallError(number: number).isShortage
    } else {
      false
    }
  }

  var description: String {
    switch self {
    case .notAPath(let path):
      "The readiness file's path \"\(path)\" is not the absolute path of a file: probes will find none."
    case .noDirectory(let path, let directory):
      "The readiness file \(path) can't be made, since there is no directory \(directory): mount or make it."
    case .inTheWay(let path, let what):
      "The readiness file \(path) can't be made, since there is \(what) in its place: take that away."
    case .foreignOwner(let path, let uid):
      "The readiness file \(path) can't be made, since one of user \(uid) is there: take that away."
    case .inUse(let path):
      "The readiness file \(path) can't be made, since a running process has it: give each its own."
    case .replaced(let path):
      "The readiness file \(path) was replaced by somebody else's, which stays: probes may find that one."
    case .removedByAnother(let path):
      "The readiness file \(path) had been removed already, and not by this process."
    case .system(let purpose, let path, let errno):
      "The readiness file \(path): could not \(purpose): \(String(cString: strerror(errno))) (errno \(errno))."
    }
  }
}
