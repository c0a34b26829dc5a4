// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

// What is pending, in words: for operators, and for a test that has waited for it in vain.
extension LifecycleMachine {
  var hooksUnderWay: [CallID] {
    calls.deliveryIDs.flatMap { calls[$0].running } + calls.unfinished.values.joined()
  }

  mutating func describe() {
    let hooks = pending(at: now, isHeld: false) { $0.name.description }
    let runs = works.all.compactMap { work in
      work.run.map { "\(work.name) has run for \($0.began.duration(to: now).forReading)" }
    }
    let notes = works.all.compactMap(\.note)
    for sentence in (hooks.isEmpty ? ["no hook is running"] : hooks) + runs + notes {
      effects.publish(.info("Described: \(sentence)."))
    }
  }

  /// The hooks that are running, in words.
  func running(name: (Call) -> String) -> [(call: Call, name: String, place: String)] {
    calls.deliveryIDs.flatMap { delivery in
      calls[delivery].running.compactMap { calls.find($0) }.map { call in
        (call, name(call), "in its hook for \(call.step.name) (\(calls[delivery].cause))")
      }
    }
  }

  func pending(at now: MonotonicTime, isHeld: Bool, name: (Call) -> String) -> [String] {
    var pending = running(name: name).map { call, name, place in
      "\(name) is still \(place), after \(call.began.duration(to: now).forReading); "
        + (call.isCancelled ? "it was cancelled and will be abandoned" : "its deadline is")
        + " in \(now.duration(to: call.next).forReading)"
    }
    for call in calls.unfinished.values.joined().compactMap({ calls.find($0) }) {
      pending.append(
        "\(name(call)) has not ended its hook for \(call.step.name), which was abandoned")
    }
    if let unanswered = health.unanswered { pending.append("a check of health: " + unanswered) }
    if stop.isDraining { pending.append("the stop delay is not over") }
    guard isHeld else { return pending }
    if registry.isHeld { pending.append("deliveries are held back") }
    if !registry.isIdle, calls.deliveryIDs.isEmpty {
      pending.append("an event has not been delivered")
    }
    return pending
  }
}
