// SPDX-License-Identifier: Apache-2.0
import TestSupport
import Testing

@testable import DaemonLifecycle
@testable import DaemonSystemd

/// Whatever comes over the bus is read as what its interface promises, or refused with a sentence.
@Suite(.enabled(if: BusTests.hasLibrary, "libsystemd.so.0 is not here"), .offThePool)
struct BusValueFuzzTests {
  private static let words = [
    "", "active", "ActiveState", "LoadState", "loaded", "not-found", "type", "reboot", "Display",
    "LockedHint", "Active", "ä",
  ]
  private static let paths = ["/", "/a", "/org/freedesktop/login1/session/_31"]
  private static let signatures = ["s", "b", "t", "v", "(uo)", "{sv}", "o"]

  /// A value of a type that has the signature.
  private static func value(
    _ random: inout SeededGenerator, of signature: String, depth: Int
  ) -> BusWireValue {
    switch signature {
    case "y": .byte(UInt8(random.below(256)))
    case "b": .bool(random.below(2) == 0)
    case "i": .int32(Int32(truncatingIfNeeded: random.next()))
    case "u": .uint32(UInt32(random.below(3)))
    case "t": .uint64(random.below(3) == 0 ? .max : random.next())
    case "d": .double(Double(bitPattern: random.next()))
    case "s": .string(words[random.below(words.count)])
    case "o": .objectPath(paths[random.below(paths.count)])
    case "g": .signature(signatures[random.below(signatures.count)])
    case "v": .variant(any(&random, depth: depth + 1))
    case "(uo)":
      .structure([
        value(&random, of: "u", depth: depth), value(&random, of: "o", depth: depth),
      ])
    case "(so)":
      .structure([
        value(&random, of: "s", depth: depth), value(&random, of: "o", depth: depth),
      ])
    case "{sv}":
      .entry(value(&random, of: "s", depth: depth), value(&random, of: "v", depth: depth))
    default:
      .array(
        of: String(signature.dropFirst()),
        (0..<random.below(4)).map { _ in
          value(&random, of: String(signature.dropFirst()), depth: depth + 1)
        })
    }
  }

  private static func any(_ random: inout SeededGenerator, depth: Int = 0) -> BusWireValue {
    let simple = ["y", "b", "i", "u", "t", "d", "s", "o", "g", "(uo)", "(so)"]
    let deep = ["v", "v", "a{sv}", "a{sv}", "as", "av", "aas"]
    let all = depth < 3 ? simple + deep : simple
    return value(&random, of: all[random.below(all.count)], depth: depth)
  }

  private static func body(_ random: inout SeededGenerator) -> [BusWireValue] {
    (0..<random.below(4)).map { _ in any(&random) }
  }

  /// What the interface promises for a call, of any content.
  private static func promised(
    _ random: inout SeededGenerator, _ call: BusWireMessage
  ) -> [BusWireValue] {
    func variant(_ signature: String) -> [BusWireValue] {
      [.variant(value(&random, of: signature, depth: 0))]
    }
    func properties(_ all: [(String, String)]) -> [BusWireValue] {
      [
        .array(
          of: "{sv}",
          all.map { name, signature in
            .entry(.string(name), .variant(value(&random, of: signature, depth: 0)))
          })
      ]
    }
    return switch call.strings.last {
    case "TimeoutStopUSec", "InhibitDelayMaxUSec": variant("t")
    case "PreparingForSleep", "PreparingForShutdown": variant("b")
    case "Job": variant("(uo)")
    case "JobType": variant("s")
    case "org.freedesktop.systemd1.Unit": properties([("LoadState", "s"), ("ActiveState", "s")])
    case "org.freedesktop.login1.User": properties([("UID", "u"), ("Display", "(so)")])
    case "org.freedesktop.login1.Session": properties([("Active", "b"), ("LockedHint", "b")])
    default: []
    }
  }

  private static let members = [
    "PrepareForSleep", "PrepareForShutdown", "PrepareForShutdownWithMetadata", "SessionNew",
    "SessionRemoved",
  ]

  @Test func anyValueIsReadOrRefusedWithASentence() throws {
    let generator = Generator()
    let peer = BusPeer()
    peer.answer = { call in
      .reply(
        generator.random.below(2) == 0
          ? Self.promised(&generator.random, call) : Self.body(&generator.random))
    }
    let unit = BusObject(
      destination: BusObject.systemd.destination, path: try UnitName("x.service").objectPath,
      interface: "org.freedesktop.systemd1.Unit")
    let source = BusSource(
      .address(peer.address),
      [.stopTimeout, .unitJob, .sleep, .shutdown, .unit("x.service"), .session],
      options: BusTests.options)
    try source.open()
    let worker = Worker(source: source)
    for _ in 0..<SeededGenerator.inputs(usual: 20_000) / 16 {
      let count = worker.counts["job"]
      source.receive(.terminating(LifecycleCause(.api)))
      // Everything is read again.
      for (name, owner) in peer.owners { peer.setOwner(of: name, to: owner) }
      for member in Self.members {
        peer.signal(member, of: .logind, from: ":1.10", Self.body(&generator.random))
      }
      var change = Self.body(&generator.random)
      if generator.random.below(2) == 0 {
        change = [
          .string(unit.interface), Self.value(&generator.random, of: "a{sv}", depth: 0),
          Self.value(&generator.random, of: "as", depth: 0),
        ]
      }
      peer.signal("PropertiesChanged", of: unit.properties, from: ":1.1", change)
      try #require(pump(worker, peer) { worker.counts["job"] > count })
    }
    for expected in ["event", "stop", "warning"] {
      #expect(worker.counts[expected] > 0, "\(expected)")
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

    func process() {
      for input in source.read(PolledDescriptor(number: fileDescriptor)) {
        switch input {
        case .unitJob: counts.add("job")
        case .event: counts.add("event")
        case .stopTimeout: counts.add("stop")
        case .warning(let text):
          counts.add("warning")
          if !text.hasSuffix(".") { Issue.record("no sentence: \(text)") }
        default: break
        }
      }
    }
  }

  /// Used by the test's thread only.
  private final class Generator {
    var random = SeededGenerator(seed: 2026)
  }
}
