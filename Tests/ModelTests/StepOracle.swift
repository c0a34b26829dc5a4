// SPDX-License-Identifier: Apache-2.0
@testable import DaemonLifecycle

/// What is requested of a daemon and the steps that answer it, whoever receives them: the simulation's oracle beside
/// `ObserverHistory`, which is one observer's.
struct StepOracle {
  /// It was requested, and none has begun since.
  private var owesReload = false
  private var owesSave = false
  /// The daemon entered the background, and nobody has been asked to save since.
  private var owesSaveAfterBackground = false
  private var stepsOfTermination: [String] = []
  /// The last call that began, and its own delivery.
  private var last: (delivery: Delivery.Constants, phase: LifecyclePhase, id: ObserverID)?

  /// Before the registry takes it in.
  mutating func request(_ event: LifecycleEvent, of registry: LifecycleRegistry) {
    guard registry.termination == nil else { return }
    switch event.request {
    case .reload: owesReload = true
    case .saveState: owesSave = true
    default: break
    }
  }

  /// A step begins; what is wrong with that.
  mutating func begin(
    _ step: LifecycleStep, _ cause: LifecycleCause, of registry: LifecycleRegistry, isHeld: Bool
  ) -> String? {
    // Those of hooks and of the watchdog have no turn.
    if case .posted = step { return nil }
    if step.isHealthCheck { return nil }
    let isCatchUp = if case .lateObserver = cause.origin { true } else { false }
    let isLaunch = if case .launch = cause.origin { true } else { false }
    defer { note(step, isCatchUp: isCatchUp) }
    if registry.termination != nil {
      // Those of a launch that fails, or of who comes late, are not its own.
      if !isLaunch, !isCatchUp { stepsOfTermination.append(step.name) }
    } else if isHeld, !isLaunch {
      return "\(step.name) in spite of a hold"
    }
    return step.kind == .willEnterForeground && !isCatchUp && owesSaveAfterBackground
      ? "went to the foreground without having saved" : nil
  }

  private mutating func note(_ step: LifecycleStep, isCatchUp: Bool) {
    switch step.kind {
    case .didEnterBackground where !isCatchUp: owesSaveAfterBackground = true
    case .shouldSaveState: (owesSave, owesSaveAfterBackground) = (false, false)
    case .shouldReload: owesReload = false
    default: break
    }
  }

  /// A call that is not nested begins: upward by phase and in the order added, downward in reverse.
  mutating func begin(_ call: Call, in phase: LifecyclePhase) -> String? {
    let id = call.observer
    defer { last = (call.constants, phase, id) }
    guard let last, last.delivery === call.constants else { return nil }
    let isUpward = (last.phase, last.id) < (phase, id)
    return isUpward == call.step.isDownward ? "\(call.step.name) in the wrong order" : nil
  }

  /// What is wrong with a daemon at rest.
  func problemAtRest(_ registry: LifecycleRegistry) -> String? {
    let wanted: LifecycleState = registry.backgroundReasons.isEmpty ? .foreground : .background
    if registry.state != wanted { return "at rest in \(registry.state), wanted \(wanted)" }
    if registry.isAsleep != registry.backgroundReasons.contains(.sleep) {
      return "suspended at rest, or not"
    }
    if owesReload { return "a reload was lost" }
    return owesSave || owesSaveAfterBackground ? "a save was lost" : nil
  }

  /// What is wrong with an end that no third signal has cut off.
  func problemAtTheEnd(_ registry: LifecycleRegistry) -> String? {
    if registry.state != .terminated { return "did not terminate: \(registry.state)" }
    // A pause is not cut off, and a step whose hooks were being searched for counts as begun.
    let overtaken = stepsOfTermination.prefix { $0 != "the end of work" }
    var steps = Array(stepsOfTermination.dropFirst(overtaken.count))
    // Who was busy is paused when that has been waited for.
    while steps.count > 1, steps[1] == "DidEnterBackground" { steps.remove(at: 1) }
    let isComplete = steps == ["the end of work", "ShouldSaveState", "WillTerminate"]
    return stepsOfTermination.isEmpty
      || isComplete && overtaken.count { $0 != "DidEnterBackground" } <= 1
      ? nil : "terminated by \(stepsOfTermination)"
  }
}

/// For the order in which a test expects them.
extension LifecyclePhase: Comparable {}
