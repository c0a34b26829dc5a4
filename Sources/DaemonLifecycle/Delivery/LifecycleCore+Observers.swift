// Who is told: observers come, and go.
extension LifecycleCore {
  func add(
    _ observer: some LifecycleObserver, phase: LifecyclePhase, name: ObserverEntry.Name? = nil
  ) {
    // An observer of the package's own has a name; the record is of the user's calls.
    if name == nil { recorder?.didAdd(observer) }
    let candidates = change { state, _ in
      let owner = ObjectIdentifier(observer)
      guard !state.observers.hasObserver(owner) else { return Candidates(nil, nil) }
      let id = state.observers.nextID(state.newID())
      return self.insert(
        ObserverEntry(id: id, observer: observer, phase: phase, name: name), &state)
    }
    reap(candidates)
  }

  func add(
    closure: Hook, owner: (any AnyObject & Sendable)?, phase: LifecyclePhase,
    name: ObserverEntry.Name
  ) -> ObserverID {
    recorder?.didObserve(name.description)
    let (id, candidates) = change { state, _ in
      let id = state.observers.nextID(state.newID())
      let candidates = self.insert(
        ObserverEntry(id: id, closure: closure, owner: owner, phase: phase, name: name), &state)
      return (id, candidates)
    }
    reap(candidates)
    return id
  }

  private typealias Candidates = (ObserverEntry?, ObserverEntry?)

  private func insert(_ entry: ObserverEntry, _ state: inout State) -> Candidates {
    state.observers.insert(entry)
    state.registry.add(entry.id, phase: entry.phase)
    return state.observers.candidates()
  }

  /// Lets go of those that have gone away: nobody says so when they do. Not under the lock, since who looks at an
  /// observer holds it for that moment, and may be the last who does.
  private func reap(_ candidates: Candidates) {
    let (first, second) = candidates
    let gone = [first, second].compactMap { $0 }.filter { $0.target == nil }
    guard !gone.isEmpty else { return }
    change { state, work in
      for entry in gone where state.observers[entry.id] === entry {
        state.departures.add(entry.name)
        self.remove([entry.id], &state, &work)
      }
    }
  }

  /// Adds the rounds of a `foreground { … }`, or ends them when the daemon has ended.
  func addRounds(_ rounds: ForegroundRounds, phase: LifecyclePhase, name: ObserverEntry.Name) {
    add(rounds, phase: phase, name: name)
    let isOver = change { state, _ in
      let isOver = state.exit != nil || state.isClosed
      if !isOver { state.rounds[ObjectIdentifier(rounds)] = rounds }
      return isOver
    }
    if isOver { rounds.close() }
  }

  func removeRounds(_ rounds: ForegroundRounds) {
    remove(owner: rounds)
    change { state, _ in _ = state.rounds.removeValue(forKey: ObjectIdentifier(rounds)) }
  }

  func remove(_ id: ObserverID) {
    change { state, work in
      self.remove([id], &state, &work)
    }
  }

  /// Everything that the object has registered, as an observer and as an owner.
  func remove(owner: AnyObject) {
    if !(owner is ForegroundRounds) { recorder?.didRemove(owner) }
    let ownerID = ObjectIdentifier(owner)
    change { state, work in
      self.remove(state.observers.ids(of: ownerID), &state, &work)
    }
  }

  func remove(_ ids: [ObserverID], _ state: inout State, _ work: inout Work) {
    for id in ids {
      guard let entry = state.observers.remove(id) else { continue }
      state.postponed.remove(id)
      entry.needsCore = true
      work.garbage.append(entry)
      state.registry.remove(id)
      withdrawCalls(of: entry, &state, &work)
    }
  }
}
