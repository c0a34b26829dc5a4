// SPDX-License-Identifier: Apache-2.0
import CLinux
import Synchronization
import TestSupport
import Testing

@testable import DaemonLifecycle

/// Seeded schedules of events through the pure registry, with every promise about it checked at each step.
///
/// A failure names its seed: `Simulation(seed: …).run()` repeats it exactly.
@Suite(.offThePool) struct RegistrySimulationTests {
  /// It was busy when the others were paused, and free again when they were told of the machine's sleep.
  @Test func whoWasNotPausedIsNotSuspended() throws {
    var registry = LifecycleRegistry()
    let id = ObserverID(value: 1)
    registry.add(id, phase: .standard)
    _ = registry.receive(LifecycleEvent(.launch))
    while registry.next() != nil {
      registry.reached(id)
      registry.finishStep()
    }
    registry.setBusy(id, true)
    _ = registry.receive(LifecycleEvent(.suspend))
    var steps: [(String, Bool)] = []
    while let plan = registry.next() {
      steps.append((plan.step.name, plan.audience.members.contains(id)))
      registry.finishStep()
    }
    #expect(steps.map(\.0) == ["DidEnterBackground", "ShouldSaveState", "WillSuspend"])
    #expect(steps.last?.1 == false)
  }

  private func launched(_ id: ObserverID) -> LifecycleRegistry {
    var registry = LifecycleRegistry()
    registry.add(id, phase: .standard)
    _ = registry.receive(LifecycleEvent(.launch))
    while registry.next() != nil {
      registry.reached(id)
      registry.finishStep()
    }
    return registry
  }

  /// The third signal: not even the pause, which the observer has not had.
  @Test func afterAnAbortNothingIsDelivered() {
    var registry = launched(ObserverID(value: 1))
    _ = registry.receive(LifecycleEvent(.terminate))
    registry.abort()
    let hasNext = registry.next() != nil
    #expect(!hasNext && registry.state == .terminated)
  }

  /// The wait for the body is a step of the end, and no notification.
  @Test func theBodysEndIsSentToNobody() {
    let id = ObserverID(value: 1)
    var registry = launched(id)
    _ = registry.receive(LifecycleEvent(.terminate))
    var receivers: [Int] = []
    while let plan = registry.next() {
      if case .bodyEnds = plan.step { receivers.append(plan.audience.members.count) }
      for member in plan.audience.members { registry.reached(member) }
      registry.finishStep()
    }
    #expect(receivers == [0])
  }

  /// REGISTRY_SCHEDULES says how many.
  static let schedules =
    getenv("REGISTRY_SCHEDULES").flatMap { Int(String(cString: $0)) }
    ?? LongTests.count(10_000, long: 100_000)

  @Test(arguments: 0..<4) func everyScheduleKeepsEveryInvariant(part: Int) {
    let count = Self.schedules / 4
    for seed in part * count..<(part + 1) * count {
      var simulation = Simulation(seed: UInt64(seed))
      simulation.run()
      if let violation = simulation.violation {
        Issue.record("seed \(seed): \(violation)\n\(simulation.trace.joined(separator: "\n"))")
        return
      }
    }
  }

  /// The checks can fail: a registry that is lied to about what was reached breaks them.
  @Test func theSimulationNoticesALostNotification() {
    let broken = (0..<2000).contains { seed in
      var simulation = Simulation(seed: UInt64(seed), losesEvery: 7)
      simulation.run()
      return simulation.violation != nil
    }
    #expect(broken)
  }
}

/// One schedule: random events, members and deliveries, and a model of what must follow.
struct Simulation {
  private struct Observer {
    let id: ObserverID
    let phase: LifecyclePhase
    var isLaunched = false
    var isInForeground = false
    var isSuspended = false
    var isBusy = false
    var isTerminated = false
  }

  private var random: SeededGenerator
  private var registry = LifecycleRegistry()
  private var observers: [Observer] = []
  private var nextID: UInt64 = 1
  private var holds = 0
  private let losesEvery: Int?
  private var calls = 0

  private var isLaunchAsked = false
  private var terminateSignals = 0
  /// A reload was asked for and none has begun since.
  private var owesReload = false
  private var owesSave = false
  /// All, so that none gets an address that was one's.
  private var posts: [LifecyclePost] = []
  private var unansweredPosts: Set<ObjectIdentifier> = []
  /// The daemon entered the background and nobody has been asked to save since.
  private var owesSaveAfterBackground = false
  private var terminationSteps: [String] = []

  private(set) var violation: String?
  private(set) var trace: [String] = []

  init(seed: UInt64, losesEvery: Int? = nil) {
    random = SeededGenerator(seed: seed)
    self.losesEvery = losesEvery
  }

  mutating func run() {
    for _ in 0..<Int.random(in: 0...4, using: &random) { addObserver() }
    for _ in 0..<Int.random(in: 4...14, using: &random) where violation == nil {
      if random.chance(55) { happen() } else { deliver() }
    }
    settle()
  }

  private mutating func fail(_ text: String) { if violation == nil { violation = text } }

  // MARK: What happens

  private mutating func happen() {
    switch Int.random(in: 0..<20, using: &random) {
    case 0, 1: receive(.launch)
    case 2, 3, 4:
      receive(.enterBackground(random.chance(70) ? .operator : BackgroundReason("unit")))
    case 5, 6, 7:
      receive(.enterForeground(random.chance(70) ? .operator : BackgroundReason("unit")))
    case 8: receive(.suspend)
    case 9: receive(.resume)
    case 10, 11: receive(.reload)
    case 12: receive(.saveState)
    case 13: receive(.pressure(.memory))
    case 14: receive(.post(Posted()))
    case 15: addObserver()
    case 16: removeObserver()
    case 17: random.chance(50) ? hold() : release()
    case 18: freeBusyObserver()
    default: if random.chance(40) { receive(.terminate) }
    }
  }

  private struct Posted: CustomNotification {}

  private mutating func receive(_ kind: LifecycleEvent.Kind) {
    trace.append("event \(kind)")
    let before = registry.state
    var post: LifecyclePost?
    if case .post(let notification) = kind {
      let new = LifecyclePost(notification)
      posts.append(new)
      post = new
    }
    let isSignal = random.chance(50)
    let cause = LifecycleCause(
      isSignal ? .signal(.sigterm, pid: 1, uid: 0, coalesced: 1) : .api)
    let effect = registry.receive(LifecycleEvent(kind, cause: cause), post: post)
    note(kind, effect, post, isSignal: isSignal)
    if case .terminate = kind {
    } else if registry.state != before {
      fail("\(kind) changed the state at once")
    }
    if registry.termination == nil { return }
    for post in registry.takePosts() where unansweredPosts.remove(ObjectIdentifier(post)) == nil {
      fail("a post was overtaken twice, or after it was delivered")
    }
  }

  private mutating func note(
    _ kind: LifecycleEvent.Kind, _ effect: LifecycleRegistry.Effect, _ post: LifecyclePost?,
    isSignal: Bool
  ) {
    if case .terminate = kind {
      let isFirst = terminationSteps.isEmpty && effect == .terminate
      if isSignal { terminateSignals += 1 }
      if isFirst { terminationSteps = ["asked"] }
      let expected: LifecycleRegistry.Effect =
        isFirst
        ? .terminate
        : !isSignal
          ? .none
          : terminateSignals == 2
            ? .expedite
            : terminateSignals > 2 ? .exitNow : .none
      if effect != expected { fail("terminate gave \(effect), not \(expected)") }
      return
    }
    let isTerminating = registry.termination != nil
    if isTerminating != (effect == .refused) {
      fail("\(kind) gave \(effect) while terminating: \(isTerminating)")
    }
    guard !isTerminating else { return }
    switch kind {
    case .launch: isLaunchAsked = true
    case .errand(.reload): owesReload = true
    case .errand(.saveState): owesSave = true
    case .post: unansweredPosts.insert(ObjectIdentifier(post!))
    default: break
    }
  }

  private mutating func addObserver() {
    nextID += 1
    let phases = [LifecyclePhase(order: -1), .standard, LifecyclePhase(order: 1, concurrent: true)]
    let observer = Observer(
      id: ObserverID(value: nextID), phase: phases.randomElement(using: &random)!)
    trace.append("add \(observer.id.value) in \(observer.phase.order)")
    observers.append(observer)
    registry.add(observer.id, phase: observer.phase)
  }

  private mutating func removeObserver() {
    guard let index = observers.indices.randomElement(using: &random) else { return }
    trace.append("remove \(observers[index].id.value)")
    registry.remove(observers.remove(at: index).id)
  }

  private mutating func hold() {
    holds += 1
    registry.hold()
  }

  private mutating func release() {
    guard holds > 0 else { return }
    holds -= 1
    registry.release()
  }

  private mutating func freeBusyObserver() {
    guard let index = observers.indices.first(where: { observers[$0].isBusy }) else { return }
    trace.append("free \(observers[index].id.value)")
    observers[index].isBusy = false
    registry.setBusy(observers[index].id, false)
  }

  // MARK: Delivery

  /// Delivers one step to its end, with things happening meanwhile. False when there was none.
  @discardableResult private mutating func deliver() -> Bool {
    let before = registry.state
    guard let plan = registry.next() else { return false }
    trace.append(
      "step \(plan.step.name) to \(plan.audience.groups.map { $0.map(\.value) }), \(registry.state)"
    )
    check(plan, before)
    for group in plan.audience.groups {
      if random.chance(10) { happen() }
      let isOvertaken =
        registry.termination != nil && plan.step.yieldsToTermination
        && terminationSteps == ["asked"]
      if isOvertaken { break }
      for id in group { tell(id, plan.step) }
    }
    if random.chance(10) { happen() }
    registry.finishStep()
    return true
  }

  private mutating func check(_ plan: LifecycleRegistry.Plan, _ before: LifecycleState) {
    if holds > 0, registry.termination == nil, !registry.isLaunchTransition {
      fail("delivered in spite of a hold")
    }
    if !isLaunchAsked { fail("delivered before the launch") }
    checkOrder(plan)
    let isCatchUp = if case .lateObserver = plan.cause.origin { true } else { false }
    switch plan.step.kind {
    case .didEnterBackground where !isCatchUp:
      if registry.state != .background { fail("not in the background when it entered it") }
      owesSaveAfterBackground = true
    case .willEnterForeground where !isCatchUp:
      if owesSaveAfterBackground { fail("went to the foreground without having saved") }
      if registry.state != .background { fail("the foreground began before it was entered") }
    case .shouldSaveState:
      owesSaveAfterBackground = false
      owesSave = false
    case .shouldReload: owesReload = false
    default: break
    }
    if case .posted(let post) = plan.step,
      unansweredPosts.remove(ObjectIdentifier(post)) == nil
    {
      fail("a post was delivered twice, or after it was overtaken")
    }
    if registry.termination != nil { terminationSteps.append(plan.step.name) }
    if before == .foreground, registry.state == .launching || registry.state == .terminated {
      fail("skipped a state: \(before) to \(registry.state)")
    }
  }

  private mutating func checkOrder(_ plan: LifecycleRegistry.Plan) {
    var expected = plan.audience.groups.joined().compactMap { id in observers.first { $0.id == id }
    }
    let told = expected.map(\.id)
    expected.sort { ($0.phase, $0.id) < ($1.phase, $1.id) }
    if plan.step.isDownward { expected.reverse() }
    if told != expected.map(\.id) { fail("\(plan.step.name) in the wrong order: \(told)") }
    for group in plan.audience.groups where group.count > 1 {
      let phases = Set(group.compactMap { id in observers.first { $0.id == id }?.phase })
      if phases.count > 1 || phases.first?.isConcurrent == false { fail("told together: \(group)") }
    }
  }

  private mutating func tell(_ id: ObserverID, _ step: LifecycleStep) {
    guard let index = observers.firstIndex(where: { $0.id == id }) else { return }
    calls += 1
    let isLost = losesEvery.map { calls % $0 == 0 } ?? false
    let isBusy = observers[index].isBusy
    if !isBusy || registry.termination != nil, !isLost { registry.reached(id) }
    if isBusy {
      // While terminating there is no later: a busy observer is left as it is.
      if registry.termination != nil { observers[index].isInForeground = false }
      return
    }
    if registry.termination == nil, !isLost, random.chance(2) {
      // Given up before it began: it has heard nothing.
      registry.notReached(id)
      observers[index].isBusy = true
      registry.setBusy(id, true)
      return
    }
    hear(step, index)
    if random.chance(4) {
      observers[index].isBusy = true
      registry.setBusy(id, true)
    }
  }

  private mutating func hear(_ step: LifecycleStep, _ index: Int) {
    var observer = observers[index]
    let name = "observer \(observer.id.value)"
    if observer.isTerminated { fail("\(name) heard \(step.name) after the end") }
    switch step.kind {
    case .didFinishLaunching:
      if observer.isLaunched { fail("\(name) was launched twice") }
      observer.isLaunched = true
    case .willEnterForeground:
      if !observer.isLaunched || observer.isInForeground {
        fail("\(name) entered the foreground from nowhere")
      }
      observer.isInForeground = true
    case .didEnterBackground:
      if !observer.isInForeground { fail("\(name) left a foreground it was not in") }
      observer.isInForeground = false
    case .willSuspend:
      if observer.isSuspended || observer.isInForeground {
        fail("\(name) suspended at the wrong time")
      }
      observer.isSuspended = true
    case .didResume:
      if !observer.isSuspended { fail("\(name) resumed without having been suspended") }
      observer.isSuspended = false
    case .willTerminate: observer.isTerminated = true
    default: break
    }
    if !observer.isLaunched { fail("\(name) heard \(step.name) before its launch") }
    observers[index] = observer
  }

  // MARK: The end

  /// Lets everything come to rest, then checks that the registry is where it was wanted.
  private mutating func settle() {
    while holds > 0 { release() }
    while observers.contains(where: \.isBusy) { freeBusyObserver() }
    // Deliveries here may let more happen, but ever less: one in ten each.
    var steps = 0
    while violation == nil {
      while holds > 0 { release() }
      if let busy = observers.firstIndex(where: \.isBusy) {
        observers[busy].isBusy = false
        registry.setBusy(observers[busy].id, false)
      }
      steps += 1
      if steps > 2000 { fail("never comes to rest") }
      if !deliver(), holds == 0, !observers.contains(where: \.isBusy) { break }
    }
    guard violation == nil else { return }
    if registry.termination != nil { checkTermination() } else if isLaunchAsked { checkRest() }
    if !registry.isIdle { fail("not idle at rest") }
  }

  private mutating func checkTermination() {
    if registry.state != .terminated { fail("did not terminate: \(registry.state)") }
    if !unansweredPosts.isEmpty { fail("a post got no answer") }
    var steps = terminationSteps.dropFirst()
    if steps.isEmpty { return }  // never launched
    if steps.first == "DidEnterBackground" { steps.removeFirst() }
    let end = ["the body's end", "ShouldSaveState", "WillTerminate"]
    if Array(steps) != end { fail("terminated by \(terminationSteps)") }
    if observers.contains(where: \.isInForeground) {
      fail("terminated an observer in the foreground")
    }
  }

  private mutating func checkRest() {
    let wanted: LifecycleState = registry.backgroundReasons.isEmpty ? .foreground : .background
    if registry.state != wanted { fail("at rest in \(registry.state), wanted \(wanted)") }
    if registry.isSuspended != registry.backgroundReasons.contains(.suspend) {
      fail("suspended at rest, or not")
    }
    if owesReload { fail("a reload was lost") }
    if owesSave || owesSaveAfterBackground { fail("a save was lost") }
    if !unansweredPosts.isEmpty { fail("a post was lost") }
    for observer in observers {
      if !observer.isLaunched { fail("observer \(observer.id.value) was never launched") }
      if observer.isSuspended, !registry.isSuspended {
        fail("observer \(observer.id.value) was never told that the machine woke up")
      }
      if observer.isInForeground != (wanted == .foreground) {
        fail("observer \(observer.id.value) is not where the daemon is")
      }
    }
  }
}

/// For the order in which a test expects them.
extension LifecyclePhase: Comparable {}
