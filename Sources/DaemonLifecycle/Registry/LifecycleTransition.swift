// SPDX-License-Identifier: Apache-2.0
/// The kind of a transition, which is a sequence of steps: one request, or the termination.
enum LifecycleTransition: Sendable, Hashable {
  case launch, foreground, background, suspend, resume, pressure, post
  case errand(LifecycleErrand)
  /// Members that were added late, or were busy, receive what the others have received.
  case catchUp
  case termination

  static let reload = Self.errand(.reload)
  static let save = Self.errand(.saveState)

  /// The gerund in sentences such as "reloading, 3 of 5 done".
  var gerund: String {
    switch self {
    case .launch: "launching"
    case .foreground: "entering the foreground"
    case .background: "entering the background"
    case .suspend: "suspending"
    case .resume: "resuming"
    case .errand(let errand): errand.row.gerund
    case .pressure: "relieving pressure"
    case .post: "delivering"
    case .catchUp: "telling late observers"
    case .termination: "stopping"
    }
  }

  /// The name in the journal: `journalctl LIFECYCLE_EVENT=…`.
  var event: String {
    switch self {
    case .launch: "launch"
    case .foreground: "foreground"
    case .background: "background"
    case .suspend: "suspend"
    case .resume: "resume"
    case .errand(let errand): errand.row.event
    case .pressure: "pressure"
    case .post: "post"
    case .catchUp: "late-observer"
    case .termination: "terminate"
    }
  }
}
