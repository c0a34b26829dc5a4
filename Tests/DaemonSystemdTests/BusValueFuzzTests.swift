// SPDX-License-Identifier: Apache-2.0
import TestSupport
import Testing

@testable import DaemonLifecycle
@testable import DaemonSystemd

/// Whatever comes over the bus is read as what its interface promises, or refused with a sentence.
@Suite(.enabled(if: BusTests.hasLibrary, "libsystemd.so.0 is not here"), .offThePool)
struct BusValueFuzzTests {
  private static let words = ["", "active", "ActiveState", "LoadState", "loaded", "not-found", "ä"]
  private static let paths = ["/", "/a", "/org/freedesktop/systemd1/job/7"]

  @Test func anyValueIsReadOrRefusedWithASentence() throws {
    let generator = Generator()
    let peer = BusPeer()
    peer.answer = { call in
      .reply(generator.isAbout(1, of: 2) ? generator.promised(call) : generator.body())
    }
    let unit = BusObject(
      destination: BusObject.systemd.destination,
      path: "/org/freedesktop/systemd1/unit/x_2eservice",
      interface: "org.freedesktop.systemd1.Unit")
    let source = BusSource(
      .address(peer.address), [.stopTimeout, .unitJob, .sleep, .unit("x.service")],
      options: BusTests.options)
    try source.open()
    let worker = Worker(source: source)
    for _ in 0..<SeededGenerator.inputs(usual: 20_000) / 16 {
      let count = worker.counts["job"]
      source.receive(.terminating(LifecycleCause(.api)))
      // Everything is read again.
      for (name, owner) in peer.owners { peer.setOwner(of: name, to: owner) }
      peer.signal("PrepareForSleep", of: .logind, from: ":1.10", generator.body())
      peer.signal("PropertiesChanged", of: unit.properties, from: ":1.1", generator.body())
      try #require(pump(worker, peer) { worker.counts["job"] > count })
    }
    for expected in ["event", "stop", "warning"] {
      #expect(worker.counts[expected] > 0, "\(expected)")
    }
  }

  /// Used by the test's thread only.
  private final class Generator {
    private var random = SeededGenerator(seed: 2026)

    func isAbout(_ part: Int, of whole: Int) -> Bool { random.below(whole) < part }

    private func text() -> BusWireValue { .string(words[random.below(words.count)]) }
    private func path() -> BusWireValue { .objectPath(paths[random.below(paths.count)]) }
    private func job() -> BusWireValue { .structure([.uint32(UInt32(random.below(3))), path()]) }
    private func time() -> BusWireValue { .uint64(isAbout(1, of: 3) ? .max : random.next()) }
    private func flag() -> BusWireValue { .bool(isAbout(1, of: 2)) }

    private func any(_ depth: Int = 0) -> BusWireValue {
      switch random.below(depth < 4 ? 12 : 8) {
      case 0: .byte(UInt8(random.below(256)))
      case 1: flag()
      case 2: .int32(Int32(truncatingIfNeeded: random.next()))
      case 3: time()
      case 4: text()
      case 5: path()
      case 6: job()
      case 7: .signature("a{sv}")
      case 8, 9: .variant(any(depth + 1))
      case 10: .array(of: "v", (0..<random.below(4)).map { _ in .variant(any(depth + 1)) })
      default: .properties(["LoadState": any(depth + 1), "x": any(depth + 1)])
      }
    }

    func body() -> [BusWireValue] { (0..<random.below(4)).map { _ in any() } }

    /// What the interface promises for a call, of any content.
    func promised(_ call: BusWireCall) -> [BusWireValue] {
      switch call.strings.last {
      case "TimeoutStopUSec", "InhibitDelayMaxUSec": [.variant(time())]
      case "PreparingForSleep": [.variant(flag())]
      case "Job": [.variant(job())]
      case "JobType": [.variant(text())]
      case "org.freedesktop.systemd1.Unit":
        [.properties(["LoadState": text(), "ActiveState": text()])]
      default: []
      }
    }
  }

  /// How many inputs there were of each kind. Used by the test's thread only.
  private final class Counts {
    private var counts: [String: Int] = [:]
    subscript(kind: String) -> Int { counts[kind, default: 0] }
    func add(_ kind: String) { counts[kind, default: 0] += 1 }
  }

  /// Counts the inputs, and checks that each text is a sentence.
  private struct Worker: BusWorker {
    let source: BusSource
    let counts = Counts()

    var fileDescriptor: Int32 { source.descriptors.first?.number ?? -1 }
    /// Woken too early, it does nothing.
    var deadline: MonotonicTime { .after(.milliseconds(5)) }

    func process() {
      source.wake { input in
        switch input {
        case .unitJob: counts.add("job")
        case .event: counts.add("event")
        case .systemd: counts.add("stop")
        case .fact(.warning(let text)):
          counts.add("warning")
          if !text.hasSuffix(".") { Issue.record("no sentence: \(text)") }
        default: break
        }
      }
    }
  }
}
