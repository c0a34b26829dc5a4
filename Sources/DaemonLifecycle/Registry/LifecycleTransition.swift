// SPDX-License-Identifier: Apache-2.0
/// What a run of steps is about: one request, or the end.
enum LifecycleTransition: Sendable, Hashable {
  case launch, foreground, background, suspend, resume, pressure, post
  case errand(LifecycleErrand)
  /// Members that came late, or were busy, receive what the others have received.
  case catchUp
  case termination

  static let reload = Self.errand(.reload)
  static let save = Self.errand(.saveState)

  /// For a sentence: "reloading, 3 of 5 done".
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

  /// What `journalctl LIFECYCLE_EVENT=…` finds it by.
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
