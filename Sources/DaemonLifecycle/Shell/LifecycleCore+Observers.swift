// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

// Adding and removing observers.
extension LifecycleCore {
  /// - Parameter isOwned: Whether it is retained until it is removed or the daemon has ended; otherwise it is held
  ///   weakly.
  func add(
    _ observer: some LifecycleObserver, isOwned: Bool = true,
    _ options: Member.Options = .init()
  ) {
    harness?.didCall("addObserver(\(type(of: observer)))")
    let hooks = TypeHooks.of(type(of: observer))
    let candidates = change { state, now in
      let owner = ObjectIdentifier(observer)
      guard !state.index.hasObserver(owner) else { return Candidates(nil, nil) }
      let id = state.machine.registry.members.nextID(state.newID())
      // After the end, nothing would release it.
      let isOwned = isOwned && state.machine.stop.exit == nil && !state.machine.isClosed
      let number = state.index.nextNumber(of: type(of: observer))
      let member = Member(
        id: id, observer: observer, isOwned: isOwned, number: number, hooks: hooks, options)
      return self.insert(member, &state, now)
    }
    reap(candidates)
  }

  /// Adds closures as one observer: reports show it as one, and it is called one closure after another.
  package func add(
    closures: [Hook], owner: any AnyObject & Sendable, name: String, phase: LifecyclePhase
  ) {
    _ = add(closures: closures, owner: owner, .init(phase: phase), name: .given(name))
  }

  func add(
    closures: [Hook], owner: (any AnyObject & Sendable)?, _ options: Member.Options,
    name: ObserverName
  ) -> ObserverID {
    harness?.didCall("observe(\(ObserverName.given(options.name, orElse: name)))")
    let (id, candidates) = change { state, now in
      let id = state.machine.registry.members.nextID(state.newID())
      let member = Member(id: id, closures: closures, owner: owner, options, name: name)
      return (id, self.insert(member, &state, now))
    }
    reap(candidates)
    return id
  }

  private typealias Candidates = (Member?, Member?)

  private func insert(
    _ member: Member, _ state: inout State, _ now: MonotonicTime
  ) -> Candidates {
    state.index.insert(member)
    state.handle(.add(member), at: now)
    return (state.machine.registry.members.candidate(), state.machine.registry.members.candidate())
  }

  /// Removes members whose observer was deallocated, which nothing announces. Not under the lock: a check retains the
  /// observer for a moment, and may release it last.
  private func reap(_ candidates: Candidates) {
    if let first = candidates.0, first.isGone { remove(first.id) }
    if let second = candidates.1, second.isGone { remove(second.id) }
  }

  /// Adds a work. Returns `nil` once the daemon has ended.
  @discardableResult @inline(never) func add(
    _ runner: WorkRunner, _ work: WorkOptions, phase: LifecyclePhase = .standard,
    draining limit: Duration? = nil
  ) -> ObserverID? {
    change { state, now in
      if state.machine.stop.exit != nil || state.machine.isClosed { return nil }
      let id = state.machine.registry.members.nextID(state.newID())
      var work = work
      (work.runner, work.drains) = (runner, limit != nil)
      work.readyWithin = work.readyWithin?.bounded
      // At zero the clock would ask for progress without end.
      work.stallsAfter = work.stallsAfter.map { max(.milliseconds(10), $0.bounded) }
      let member = Member(
        id: id, phase: phase, name: runner.name, timeout: limit, work: work)
      state.handle(.add(member), at: now)
      return id
    }
  }

  /// Warns of a token that is released before the launch: its observation would silently receive nothing.
  func warnOfToken(of id: ObserverID) {
    change { state, now in
      guard state.machine.registry.state == .launching,
        let name = state.machine.registry.members[id]?.name
      else { return }
      let sentence =
        "\(name) ends before the launch, since its token is released: keep the token, or name an owner."
      state.handle(.fact(.warning(sentence)), at: now)
    }
  }

  func remove(_ id: ObserverID) { handle(.remove([id])) }

  /// Removes everything that the object has registered, as an observer and as an owner.
  func remove(owner: AnyObject) {
    harness?.didCall("removeObserver(\(type(of: owner)))")
    let ownerID = ObjectIdentifier(owner)
    change { state, now in
      state.handle(.remove(state.index.ids(of: ownerID)), at: now)
    }
  }
}
