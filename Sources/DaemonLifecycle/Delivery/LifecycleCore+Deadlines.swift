// What the clock does about calls: cancels them, gives them up, or lets them have more time.
extension LifecycleCore {
  /// Cancels the calls whose deadline has come and gives up those that were cancelled before.
  func expire(at now: MonotonicTime, _ state: inout State, _ work: inout Work) {
    for id in Array(state.deliveries.keys) {
      for index in state.deliveries[id]!.running.indices.reversed()
      where state.deliveries[id]!.running[index].next <= now {
        if state.deliveries[id]!.running[index].isCancelled {
          giveUp(index, in: id, at: now, &state)
        } else {
          cancel(&state.deliveries[id]!.running[index], at: now, &work)
        }
      }
      advance(id, &state, &work)
    }
  }

  func cancel(_ running: inout Delivery.Running, at now: MonotonicTime, _ work: inout Work) {
    running.isCancelled = true
    running.next = now.advanced(by: running.grace)
    if let driver = running.driver {
      driver.markCancelled()
      work.cancelled.append(driver)
    }
  }

  func giveUp(_ index: Int, in id: DeliveryID, at now: MonotonicTime, _ state: inout State) {
    let call = state.deliveries[id]!.running[index].call
    let outcome = call.giveUp()
    state.deliveries[id]!.running.remove(at: index)
    state.unfinished[call.entry.id, default: []].append(call)
    state.registry.setBusy(call.entry.id, true)
    record(outcome, of: call.entry, in: id, call.began.duration(to: now), &state)
    noteLaunch(of: call, outcome, &state)
  }

  func extend(_ call: HookCall, by extra: Duration) {
    let now = now
    change { state, work in
      guard
        let index = state.deliveries[call.delivery]?.running.firstIndex(where: { $0.call === call }
        ),
        case let running = state.deliveries[call.delivery]!.running[index], !running.isCancelled
      else { return }
      var deadline = running.next.advanced(by: extra)
      if self.hasServiceManager, state.budget?.isHurried == false {
        // The service manager is told, so the stop may take that much longer.
        state.budget?.extend(by: extra)
      } else if let limit = self.limit(of: state.deliveries[call.delivery]!, at: now, state) {
        deadline = min(deadline, limit.cancel)
      }
      if let outer = state.deliveries[call.delivery]!.outerDeadline {
        deadline = min(deadline, outer)
      }
      // More time is what was asked for: a limit that is nearer than the deadline takes none away.
      deadline = max(deadline, running.next)
      state.deliveries[call.delivery]!.running[index].next = deadline
      call.set(deadline: deadline)
      self.tellExtended(until: deadline.advanced(by: running.grace), at: now, &state, &work)
    }
  }

  /// The service manager's timers run while the daemon starts, reloads or stops. At other times the
  /// message would only weaken the watchdog.
  private func tellExtended(
    until end: MonotonicTime, at now: MonotonicTime, _ state: inout State, _ work: inout Work
  ) {
    let until: MonotonicTime
    if let budget = state.budget {
      until = budget.end.advanced(by: budget.exitGrace + Self.margin)
    } else if let kind = state.walk?.kind, kind == .launch || kind == .reload {
      until = end.advanced(by: Self.margin)
    } else {
      return
    }
    state.walk?.askedUntil = until
    tell(.extended(now.duration(to: until)), &work)
  }

  /// What the service manager is asked for beyond the time that a hook has got.
  private static let margin = Duration.seconds(1)
}
