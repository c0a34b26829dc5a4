// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The deliveries under way, and the calls that have begun and not ended.
struct Calls: Sendable {
  /// The deliveries, the oldest first and so sorted by id. At most one is not nested.
  private(set) var deliveries: [Delivery] = []
  /// The calls. Each is in its delivery's `running` or was abandoned; its `runningIndex` is its index in the former.
  private var calls = Slots<Call>()
  private var lastDelivery: UInt64 = 0
  private var lastTurn: Int32 = 0
  /// The empty list of a delivery that is over, reused by the next.
  private var spare: [CallID] = []
  /// Calls that have not ended, and without which their own delivery has gone on, by observer. No list is empty.
  private(set) var unfinished: [ObserverID: [CallID]] = [:]
  /// Calls of a delivery that was closed, and which run on beside the next, until that opens.
  private var carried: [CallID] = []

  // MARK: Deliveries

  mutating func open(_ constants: Delivery.Constants) -> DeliveryID {
    lastDelivery += 1
    let id = DeliveryID(value: lastDelivery)
    deliveries.append(Delivery(id, constants, after: lastTurn, list: spare))
    spare = []
    for call in carried {
      noteUnfinished(call)
      calls[call].join(id)
      add(call, to: id)
    }
    carried = []
    return id
  }

  /// Closes a delivery that is under way. Calls that run in it go on beside the next.
  mutating func close(_ id: DeliveryID) -> Delivery {
    var delivery = deliveries.remove(at: index(of: id)!)
    carried += delivery.running
    lastTurn = delivery.turn
    spare = delivery.takeList()
    spare.removeAll(keepingCapacity: true)
    return delivery
  }

  /// Searched from the end, since the newest are used most, and there are few.
  @inline(__always) private func index(of id: DeliveryID) -> Int? {
    deliveries.lastIndex { $0.id == id }
  }

  /// The delivery of the transition under way.
  var current: DeliveryID? { deliveries.first { !$0.isNested }?.id }

  func contains(_ id: DeliveryID) -> Bool { index(of: id) != nil }

  var deliveryIDs: [DeliveryID] { deliveries.map(\.id) }

  /// A delivery that is under way.
  subscript(id: DeliveryID) -> Delivery {
    _read { yield deliveries[index(of: id)!] }
    _modify { yield &deliveries[index(of: id)!] }
  }

  /// Whether the delivery is under way and its next call is due.
  @inline(__always) func mayAdvance(_ id: DeliveryID, at now: MonotonicTime) -> Bool {
    index(of: id).map { deliveries[$0].mayAdvance(at: now) } ?? false
  }

  // MARK: Calls

  /// The number of hooks that have begun, or will, and have not ended.
  var count: Int { calls.count }
  /// The number of calls that were abandoned after they had begun, and may hold a thread.
  private(set) var abandonedCount = 0
  func find(_ id: CallID) -> Call? { calls.find(id) }

  /// Whether a call is neither ended nor abandoned.
  func isCurrent(_ id: CallID) -> Bool { calls.contains(id) && !calls[id].isAbandoned }

  /// A call that has not ended.
  subscript(id: CallID) -> Call { _read { yield calls[id] } }
  func contains(_ id: CallID) -> Bool { calls.contains(id) }

  mutating func begin(_ call: consuming Call) -> CallID {
    let delivery = index(of: call.delivery)!
    let (next, turn, isSave) = (call.next, deliveries[delivery].turn, call.constants.isSave)
    call.runningIndex = deliveries[delivery].running.count
    call.turn = turn
    let id = calls.insert(call)
    deliveries[delivery].add(id, next: next, turn: turn, isSave: isSave)
    return id
  }

  /// Has a delivery wait for a call of another.
  private mutating func add(_ id: CallID, to delivery: DeliveryID) {
    calls[id].runningIndex = self[delivery].running.count
    let call = calls[id]
    self[delivery].add(id, next: call.next, turn: call.turn, isSave: call.constants.isSave)
  }

  /// The calls that a stop waits for once more, by observer.
  var leftBehind: [CallID] {
    if unfinished.isEmpty { return [] }
    return unfinished.keys.sorted().flatMap { unfinished[$0] ?? [] }
      .filter { calls[$0].isLeftBehind }
  }

  /// Has a delivery wait for a call that was abandoned.
  mutating func takeBack(_ id: CallID, into delivery: DeliveryID, grace: Duration) {
    calls[id].join(delivery, grace: grace)
    calls[id].turn = self[delivery].turn
    add(id, to: delivery)
  }

  /// Gives a call the object that calls its hook.
  mutating func give(_ id: CallID, to caller: any AnyObject & Sendable) {
    calls[id].caller = caller
  }

  /// Moves a call forward. Returns whether its hook may run; false once it was abandoned or withdrawn.
  mutating func move(_ id: CallID, to progress: Call.Progress) -> Bool {
    calls.contains(id) && calls[id].move(to: progress)
  }

  /// Changes the time of a call.
  mutating func update(_ id: CallID, _ change: (inout Call) -> Void) {
    change(&calls[id])
    if !calls[id].isAbandoned { self[calls[id].delivery].note(calls[id].next) }
  }

  /// Removes a call that has ended, or will not begin: its handle is outdated from now on. Returns `nil` if it was
  /// outdated before.
  mutating func end(_ id: CallID) -> Call? {
    guard let call = calls.remove(id) else { return nil }
    if call.progress == .begun, call.isAbandoned || call.wait == .again { abandonedCount -= 1 }
    if !call.isAbandoned { leave(call) }
    if call.wait != .own {
      unfinished[call.observer]?.removeAll { $0 == id }
      if unfinished[call.observer]?.isEmpty == true { unfinished[call.observer] = nil }
    }
    return call
  }

  /// Abandons a call: the delivery goes on without it. Returns the call, with its progress.
  mutating func abandon(_ id: CallID) -> Call {
    let call = calls[id]
    leave(call)
    noteUnfinished(id)
    calls[id].abandon()
    if call.progress == .begun, call.wait != .again { abandonedCount += 1 }
    return call
  }

  /// Its own delivery goes on without it.
  private mutating func noteUnfinished(_ id: CallID) {
    if calls[id].wait == .own { unfinished[calls[id].observer, default: []].append(id) }
  }

  private mutating func leave(_ call: Call) {
    let isSave = call.constants.isSave
    if let moved = self[call.delivery].remove(
      at: call.runningIndex, turn: call.turn, isSave: isSave)
    {
      calls[moved].runningIndex = call.runningIndex
    }
  }

  // MARK: Time

  /// The time of the clock's next action.
  var deadline: MonotonicTime {
    var deadline = MonotonicTime.distantFuture
    for index in deliveries.indices where deliveries[index].earliest < deadline {
      deadline = deliveries[index].earliest
    }
    return deadline
  }

  /// Returns the calls of a delivery that are due.
  func due(in id: DeliveryID, at now: MonotonicTime) -> [CallID] {
    self[id].running.reversed().filter { calls[$0].next <= now }
  }

  mutating func findEarliest(in id: DeliveryID, at now: MonotonicTime) {
    self[id].set(
      earliest: self[id].running.reduce(.distantFuture) { min($0, calls[$1].next) }, at: now)
  }

  // MARK: Observers

  /// Whether an observer has a hook that has outlived its delivery; it is then called only to save, and once.
  func isBusy(_ observer: ObserverID, for delivery: Delivery.Constants) -> Bool {
    guard !unfinished.isEmpty, let earlier = unfinished[observer] else { return false }
    // In a stop, one that waited for its executor in vain may have it in time.
    let isStop = delivery.isOfTermination
    return !delivery.isSave
      || earlier.contains { isStop ? calls[$0].isSaving : calls[$0].constants.isSave }
  }

  /// Whether a delivery runs beside an earlier save of an observer, which ends first.
  func awaitsSave(of observer: ObserverID, in delivery: DeliveryID) -> Bool {
    guard !unfinished.isEmpty, let earlier = unfinished[observer] else { return false }
    return earlier.map { calls[$0] }.contains {
      $0.isSaving && !$0.isAbandoned && $0.delivery == delivery
    }
  }

  /// Returns the pending calls of an observer, which has one call at a time in a delivery.
  func pending(of observer: ObserverID) -> [CallID] {
    deliveries.compactMap { delivery in
      delivery.running.first { calls[$0].observer == observer && calls[$0].progress < .begun }
    }
  }
}

/// A collection of elements with handles. The handle of a removed element becomes invalid, although its place is used
/// again.
struct Slots<Element: Sendable>: Sendable {
  /// The elements, without gaps and in no order, so that none is copied for being optional.
  private var elements: [Element] = []
  /// The index of the place that refers to each element.
  private var placeOfElement: [Int] = []
  private var places: [SlotPlace] = []
  private var firstFree = -1

  var count: Int { elements.count }

  mutating func insert(_ element: consuming Element) -> SlotHandle {
    var index = firstFree
    if index < 0 {
      index = places.count
      places.append(SlotPlace(position: elements.count))
    } else {
      firstFree = places[index].position
      places[index].position = elements.count
    }
    elements.append(element)
    placeOfElement.append(index)
    return SlotHandle(index: index, generation: places[index].generation)
  }

  /// Removes an element; the last one takes its position.
  @discardableResult mutating func remove(_ handle: SlotHandle) -> Element? {
    guard contains(handle) else { return nil }
    let (position, last) = (places[handle.index].position, elements.count - 1)
    if position < last {
      elements.swapAt(position, last)
      placeOfElement.swapAt(position, last)
      places[placeOfElement[position]].position = position
    }
    placeOfElement.removeLast()
    places[handle.index].position = firstFree
    places[handle.index].generation &+= 1
    firstFree = handle.index
    return elements.removeLast()
  }

  func contains(_ handle: SlotHandle) -> Bool {
    handle.index < places.count && places[handle.index].generation == handle.generation
  }

  /// Returns the element, if the handle is still valid.
  func find(_ handle: SlotHandle) -> Element? { contains(handle) ? self[handle] : nil }

  /// The element of a handle that is known to be current, changed in place.
  subscript(handle: SlotHandle) -> Element {
    _read { yield elements[places[handle.index].position] }
    _modify { yield &elements[places[handle.index].position] }
  }
}

// Not nested in the generic type, where they would be generic too, and made at run time.
struct SlotHandle: Hashable, Sendable {
  let index: Int
  fileprivate let generation: UInt32
}

private struct SlotPlace: Sendable {
  /// The index of the element; for a free place the next free one, or -1.
  var position: Int
  /// A number that grows with each removal, so that the handle of a removed element never matches.
  var generation: UInt32 = 0
}
