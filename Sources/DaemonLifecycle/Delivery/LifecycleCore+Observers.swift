// Who is told: observers come, and go.
extension LifecycleCore {
  func add(
    _ observer: some LifecycleObserver, phase: LifecyclePhase, name: ObserverEntry.Name? = nil
  ) {
    // An observer of the package's own has a name; the record is of the user's calls.
    if name == nil { recorder?.didAdd(observer) }
    change { state, _ in
      let owner = ObjectIdentifier(observer)
      guard !state.observers.hasObserver(owner) else { return }
      let id = state.observers.nextID(state.newID())
      self.insert(ObserverEntry(id: id, observer: observer, phase: phase, name: name), &state)
    }
  }

  func add(
    closure: Hook, owner: (any AnyObject & Sendable)?, phase: LifecyclePhase,
    name: ObserverEntry.Name
  ) -> ObserverID {
    recorder?.didObserve(name.description)
    return change { state, _ in
      let id = state.observers.nextID(state.newID())
      self.insert(
        ObserverEntry(id: id, closure: closure, owner: owner, phase: phase, name: name), &state)
      return id
    }
  }

  private func insert(_ entry: ObserverEntry, _ state: inout State) {
    state.observers.insert(entry)
    state.registry.add(entry.id, phase: entry.phase)
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
      entry.needsCore = true
      work.garbage.append(entry)
      state.registry.remove(id)
      withdrawCalls(of: entry, &state, &work)
    }
  }
}
