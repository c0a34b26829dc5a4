// SPDX-License-Identifier: Apache-2.0
// What the examples of documents and doc comments take for granted: a module that each of them imports, and that is
// never run. What an example declares itself takes precedence.
import DaemonLifecycle
import DaemonLifecycleCodable
import DaemonLifecycleExploring
import DaemonLifecycleFiles
import DaemonLifecycleFoundation
import DaemonLifecycleLease
import DaemonLifecycleState
import DaemonLifecycleTesting
import DaemonSystemd
import Foundation

private func some<T>() -> T { fatalError() }

// MARK: A daemon

public let lifecycle = LifecycleSubject()
public nonisolated(unsafe) var configuration = LifecycleConfiguration()
public nonisolated(unsafe) var token: LifecycleToken?
public let report: LifecycleReport = some()
public let result: LifecycleExit = some()
public let commands = AsyncStream<String> { $0.finish() }
public func lines(of command: String) -> AsyncStream<String> { commands }
public func work() async throws {}
public struct RotateLogs: CustomNotification { public init() {} }
public func handOver() {}
public func stopPolling() {}
public func save() async throws {}
public func log(_ sentence: String) {}
public struct Missing: Error { public init() {} }

public actor Poller: BackgroundObserver, SaveObserver {
  public private(set) var saved: [UInt8]?
  public var bytes: [UInt8] { [] }
  public var bookmark: Bookmark { Bookmark() }
  public init() {}
  public func poll() async throws {}
  public func work() async throws {}
  public func work(_ lifecycle: any LifecycleObservable) async throws {}
  public func didEnterBackground(_ notification: DidEnterBackground) {}
  public func shouldSaveState(_ notification: ShouldSaveState) { saved = bytes }
}
public let poller = Poller()
public nonisolated(unsafe) var nextPoll = lifecycle.clock.now

public actor Server: LifecycleObserver {
  public init(_ lifecycle: any LifecycleObservable) { lifecycle.addObserver(self) }
}
public struct Client: Sendable {
  public let requests: AsyncStream<String>
  public func answer(_ request: String, close: Bool) async throws {}
}
public struct Listener: Sendable {
  public init(port: Int) throws {}
  public func clients() -> AsyncStream<Client> { some() }
  public func close() {}
}
public let lease = Lease("ledger", command: [])
public let ledger: Ledger = some()
public struct Refused: Error { public init() {} }
public actor Ledger {
  public init() throws {}
  public func post(fencedBy token: String) async throws {}
}
public struct Job: Sendable { public func run() async throws {} }
public actor Queue {
  public func next() async throws -> Job? { nil }
  public func handBack(_ job: Job) async throws {}
}
public let listener: Listener = some()
public let queue = Queue()
public let round: WorkRound = some()
public func work(on job: Job) async throws {}
public typealias Saver = Poller
public let orders = Saver()
public let consumer: Job = some()
@Sendable public func serve(_ client: Client, _ round: WorkRound) async {}
public let (database, worker): (Server, Server) = some()

public final class Cache: Sendable {
  public func drop(_ region: String) {}
  public func flush(within time: Duration) {}
  public func removeAll() {}
}
public let cache = Cache()
public struct Settings: Sendable { public func reload() throws {} }
public let settings = Settings()

// MARK: Its work

public let journalIsLong = true
public func writeJournal() async throws {}
public func drainQueue() async {}
public func closeConnections() {}
public struct Broker: Sendable { public func beat() async throws {} }
public let broker = Broker()
public func finishConnections() async {}

// MARK: Its state

public let store: StateStore = some()
public nonisolated(unsafe) var state: StoredState?
public let folder = "/run/mydaemon"
public let bytes: [UInt8] = []
public func parse(_ bytes: [UInt8]) -> Int { 0 }
public func restore(_ bytes: [UInt8]) {}
public struct Bookmark: Codable, Sendable {
  public var page = 0
  public init() {}
  public init(_ old: OldBookmark) {}
}
public struct OldBookmark: Codable, Sendable {}
public func encode(_ value: some Encodable) throws -> [UInt8] { [] }
public func decode<T: Decodable>(_ type: T.Type, _ bytes: [UInt8]) throws -> T { some() }

// MARK: Its connections

public let peer = OwnedDescriptor(owning: 4)
public func resume(_ peer: borrowing OwnedDescriptor, _ name: String) {}
public func listen(on descriptor: Int32) {}
public func goOn(with peer: Int32, _ name: String, _ state: [UInt8]?) {}
public func halfLinesAndUnsentAnswers() -> [UInt8] { [] }
public func serve(_ descriptor: Int32) {}

// MARK: systemd

public let preservation: Preservation = some()
public let mock = MockLifecycleSubject()
public let run: ExploredRun = some()
public struct FakeStore: Sendable {
  public let saved = 0
  public let accepted = 0
  public init(fails: @escaping @Sendable () -> Bool) {}
}
public typealias FakeDisk = FakeStore
public struct Lost: Error { public init(_ store: FakeStore) {} }
public actor Orders: LifecycleObserver { public init(_ store: FakeStore) {} }
public let notify: NotifySocket = some()
public let source = ""

// MARK: Its configuration

public struct Configuration: Sendable {
  public let interval: Duration = .seconds(1)
  public init(contentsOf path: String) throws {}
}
public actor Worker: LifecycleObserver {
  public let configuration: Configuration = some()
  public init(path: String) throws {}
}
public let path = "/etc/mydaemon.conf"
public func write(_ text: String, to path: String) throws {}

// MARK: Others who know NotificationCenter

public typealias NoPath = Missing
public struct CacheInvalidated: CustomNotification {
  public let region: String
  public init(region: String = "") { self.region = region }
}
public struct FileGrew: CustomNotification {
  public let path: String
  public init(path: String) { self.path = path }
}
public struct Index: Sendable { public func update(_ path: String) async {} }
public let index = Index()

// MARK: Who looks at it

public struct Metrics: Sendable {
  public func record(_ observer: String, _ duration: Duration) {}
}
public let metrics = Metrics()
public enum HTTPResponse { public enum Status: Sendable { case ok, serviceUnavailable } }
public struct Router: Sendable {
  public func get(
    _ path: String, _ answer: @escaping @Sendable (Int, Int) async throws -> HTTPResponse.Status
  ) {}
}
public let router = Router()
