// What the clock does about calls: cancels them, gives them up, or lets them have more time.
extension LifecycleCore {
  /// Cancels the calls whose deadline has come and gives up those that were cancelled before.
  func expire(at now: MonotonicTime, _ state: inout State, _ work: inout Work) {
    for delivery in state.deliveries where delivery.earliestDeadline <= now {
      for run in delivery.running.reversed() where run.next <= now {
        if run.isCancelled {
          giveUp(run, at: now, &state)
        } else {
          cancel(run, at: now, &work)
        }
      }
      delivery.findDeadline()
      advance(delivery, &state, &work)
    }
  }

  func cancel(_ run: HookRun, at now: MonotonicTime, _ work: inout Work) {
    run.markCancelled(at: now)
    run.delivery.noteDeadline(of: run)
    if let driver = run.driver {
      driver.markCancelled()
      work.cancelled.append(driver)
    }
  }

  func giveUp(_ run: HookRun, at now: MonotonicTime, _ state: inout State) {
    let outcome = run.giveUp()
    run.delivery.remove(run)
    let entry = run.entry
    state.unfinished[entry.id, default: []].append(run)
    entry.needsCore = true
    state.registry.setBusy(entry.id, true)
    // A hook that never begins has told its observer nothing: it is told again once it is free, if there is a later.
    if run.neverBegins, !run.delivery.isNested {
      state.registry.notReached(entry.id)
    }
    record(
      outcome, of: entry, in: run.delivery, from: run.began, run.began.duration(to: now))
    noteLaunch(of: run, outcome, &state)
  }

  func extend(_ call: HookCall, by extra: Duration) {
    let now = now
    change { state, work in
      let run = call.run
      guard run.isCurrent(call.index), run.delivery.runs(run), !run.isCancelled else { return }
      var deadline = run.deadline.advanced(by: extra)
      if self.hasServiceManager, state.budget?.isHurried == false {
        // The service manager is told, so the stop may take that much longer.
        state.budget.update { $0.extend(by: extra) }
      } else if let limit = self.limit(of: run.delivery, at: now, state) {
        deadline = min(deadline, limit.cancel)
        // The grace too: both must be over when the budget is.
        run.grace = min(run.grace, limit.grace)
      }
      if let outer = run.delivery.outerDeadline { deadline = min(deadline, outer) }
      // More time is what was asked for: a limit that is nearer than the deadline takes none away.
      deadline = max(deadline, run.deadline)
      run.set(deadline: deadline)
      self.tellExtended(until: deadline.advanced(by: run.grace), at: now, &state, &work)
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
    state.walk.update { $0.askedUntil = until }
    tell(.extended(now.duration(to: until)), &work)
  }

  /// What the service manager is asked for beyond the time that a hook has got.
  private static let margin = Duration.seconds(1)
}
