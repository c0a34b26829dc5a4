// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Synchronization

/// The source of an author's own requests: their work runs in a task, from the start to the end of the daemon.
final class RequestSource: LifecyclePart {
  typealias Work = @Sendable (@escaping @Sendable (LifecycleRequest) -> Void) async throws -> Void

  private let name: String
  private let work: Work
  private let take: @Sendable (SourceInput) -> Void
  private let task = Mutex<Task<Void, Never>?>(nil)

  init(_ name: String, take: @escaping @Sendable (SourceInput) -> Void, _ work: @escaping Work) {
    (self.name, self.take, self.work) = (name, take, work)
  }

  @discardableResult func open() -> MonotonicTime? {
    let task = Task.detached { [name, work, take] in
      do {
        try await work { take(.event(LifecycleEvent($0, cause: LifecycleCause(.other(name))))) }
      } catch {
        if !Task.isCancelled { take(.fact(.warning("No more requests from \(name): \(error)"))) }
      }
    }
    self.task.withLock { $0 = task }
    return nil
  }

  @discardableResult func receive(_ fact: LifecycleFact) -> MonotonicTime? {
    if case .terminated = fact { for input in close() { take(input) } }
    return nil
  }

  func close() -> [SourceInput] { task.withLock { $0.take() }.map { [.ended($0)] } ?? [] }
}

extension LifecycleInterface {
  /// A custom interface, such as a control socket.
  ///
  /// ```swift
  /// configuration.interfaces.append(
  ///   .requests(from: "the control socket") { send in
  ///     for await command in commands {
  ///       switch command {
  ///       case "pause": send(.pause)
  ///       case "resume": send(.resume)
  ///       default: break
  ///       }
  ///     }
  ///   })
  /// ```
  ///
  /// A request that arrives before the launch has ended is handled after that. An error of `work` is logged, and the
  /// daemon goes on without the interface. A mock does not have the interface: `mock.send` takes its place.
  ///
  /// - Parameters:
  ///   - name: The cause that reports show.
  ///   - work: Sends the requests. It begins when the daemon starts, goes on during pauses, and is cancelled when the
  ///     daemon has ended.
  public static func requests(
    from name: String,
    _ work:
      @escaping @Sendable (_ send: @escaping @Sendable (LifecycleRequest) -> Void) async throws
      -> Void
  ) -> Self {
    Self("requests", of: name, .outside) { wiring in
      wiring.parts.append(RequestSource(name, take: wiring.take, work))
    }
  }
}
