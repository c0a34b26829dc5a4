// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycleCodable
import Foundation
import TestSupport
import Testing

@testable import DaemonLifecycleState

@Suite("State: values", .offThePool) struct CodableStateStoreTests {
  private struct Progress: Codable, Equatable {
    var count = 0
    var name: String?
  }
  private struct OldProgress: Codable { let polls: Int }

  private let memory = StateMemory()

  private func store() throws -> CodableStateStore<Progress> {
    CodableStateStore(try StateStore(memory: memory))
  }

  @Test func whatIsSavedIsLoaded() throws {
    do {
      let store = try store()
      #expect(try store.load() == nil)
      try store.save(Progress(count: 7, name: "seven"))
      #expect(try store.load() == Progress(count: 7, name: "seven"))
      #expect(try !store.saveIfChanged(Progress(count: 7, name: "seven")))
    }
    #expect(
      memory.contents["state.0"]?.suffix(26) == Array("{\"count\":7,\"name\":\"seven\"}".utf8)[...])
    #expect(try store().load()?.count == 7)
  }

  @Test func whatDoesNotDecodeIsNotOverwritten() throws {
    try StateStore(memory: memory).save(Array("{\"count\":\"x\"}".utf8))
    let before = memory.contents["state.0"]
    let store = try store()
    let expected = error { () throws(StateError) in try store.save(Progress()) }
    guard case .undecodable(path: "(memory)/state.0", let reason) = expected else {
      Issue.record("\(String(describing: expected))")
      return
    }
    #expect(reason.hasPrefix("count: "), "\(reason)")
    #expect(error { () throws(StateError) in _ = try store.load() } == expected)
    #expect(error { () throws(StateError) in try store.save(Progress()) } == expected)
    #expect(memory.contents["state.0"] == before && memory.contents["state.1"] == nil)

    var sentences: [String] = []
    #expect(try store.loadOrSetAside { sentences.append($0) } == nil)
    #expect(sentences.count == 1 && sentences[0].hasSuffix("It is kept as (memory)/state.0.bad."))
    try store.save(Progress(count: 1))
    #expect(memory.contents["state.0.bad"] == before)
  }

  @Test func whatAnotherAttemptMayMendIsNotSetAside() throws {
    try StateStore(memory: memory, version: 9).save([1])
    let store = try store()
    #expect(
      error { () throws(StateError) in _ = try store.loadOrSetAside { Issue.record("\($0)") } }
        == .newerVersion(path: "(memory)/state.0", found: 9, known: 1))
    #expect(memory.contents["state.0"] != nil)
  }

  @Test func aFallbackIsSaid() throws {
    let store = try store()
    try store.save(Progress(count: 1))
    try store.save(Progress(count: 2))
    memory.contents["state.1"] = []
    var sentences: [String] = []
    #expect(try store.loadOrSetAside { sentences.append($0) }?.count == 1)
    #expect(try store.store.loadOrSetAside { _ in }?.bytes == Array(#"{"count":1}"#.utf8))
    #expect(sentences == ["(memory)/state.1 is empty. The state before it is used."])
  }

  @Test func valuesOfAnEarlierVersionAreDecodedAsThatVersion() throws {
    try StateStore(memory: memory).save(Array("{\"polls\":3}".utf8))
    let bytes = try StateStore(memory: memory, version: 2)
    let store = CodableStateStore<Progress>(bytes) {
      Array(try JSONEncoder().encode($0))
    } decode: { version, bytes in
      version == 1
        ? Progress(count: try JSONDecoder().decode(OldProgress.self, from: Data(bytes)).polls)
        : try JSONDecoder().decode(Progress.self, from: Data(bytes))
    }
    #expect(try store.load() == Progress(count: 3))
    try store.save(Progress(count: 4))
    #expect(try store.load() == Progress(count: 4))
  }

  @Test func theEncoderIsTheCallers() throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .prettyPrinted
    let store = CodableStateStore<Progress>(try StateStore(memory: memory), encoder: encoder)
    try store.save(Progress(count: 1))
    #expect(memory.contents["state.0"]?.contains(0x0a) == true)
    #expect(try store.load()?.count == 1)
  }

  @Test func whatCannotBeEncodedIsAnError() throws {
    let store = CodableStateStore<Double>(try StateStore(memory: memory))
    guard case .unencodable = error({ () throws(StateError) in try store.save(.infinity) }) else {
      Issue.record("no error")
      return
    }
    #expect(try store.load() == nil)
  }
}
