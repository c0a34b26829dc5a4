// SPDX-License-Identifier: Apache-2.0
/// One way in which a daemon is controlled or observed from outside: signals, systemd, the log, a probe's file.
///
/// An interface that is not in ``LifecycleConfiguration/interfaces`` does not exist for the daemon. Without systemd,
/// its interfaces do nothing. Files for probes are in `DaemonLifecycleFiles`; a mock has these, a lease and a numbered
/// descriptor, besides signals and a log.
public struct LifecycleInterface: Sendable {
  /// The role of an interface, which is known before it is connected.
  package enum Role: Sendable {
    /// Handled from the very beginning: a start that can't handle them fails.
    case signals(SignalMap)
    /// Receives the problems of all other interfaces.
    case log(LifecycleLogging, LogQueue?)
    /// Says where threads wait, a sentence each.
    case traces(@Sendable () -> [String])
    /// Belongs to the process or its service manager: for one subject of a process only, and for no mock.
    case service
    /// Depends on nothing but the daemon, so a mock has it, too.
    case local
    /// Depends on something outside, so a mock does not have it.
    case outside
  }

  /// The kind of interface, in a word or two.
  package let kind: String
  /// The file or unit that it is about.
  package let subject: String?
  package let role: Role
  /// Makes its parts as the subject starts, on the starting thread and without a lock. They are opened later.
  package let connect: @Sendable (inout LifecycleWiring) -> Void

  package init(
    _ kind: String, of subject: String? = nil, _ role: Role,
    connect: @escaping @Sendable (inout LifecycleWiring) -> Void = { _ in }
  ) {
    (self.kind, self.subject, self.role, self.connect) = (kind, subject, role, connect)
  }

  /// Whether both are of one kind, and about the same file or unit.
  func isSame(as other: Self) -> Bool { kind == other.kind && subject == other.subject }

  /// Signals, each with its meaning: ``LifecycleConfiguration/signals``.
  public static func signals(_ map: SignalMap = .standard) -> Self {
    Self("signals", .signals(map))
  }

  /// What is logged: ``LifecycleConfiguration/logging``.
  public static func log(_ logging: LifecycleLogging = .timelines) -> Self {
    Self("log", .log(logging, nil))
  }

  /// A custom log, in place of the journal and standard error: for JSON lines in a container, or swift-log.
  ///
  /// ```swift
  /// configuration.interfaces.append(
  ///   .log { entry in
  ///     if entry.priority.rawValue <= JournalPriority.info.rawValue {
  ///       log("\(entry.priority): \(entry.message)")
  ///     }
  ///   })
  /// ```
  ///
  /// It receives all that the journal would: problems, warnings, each transition, the timeline of each stop.
  /// <doc:UsingWithSwiftPackages> has examples.
  ///
  /// The handler is called for one entry at a time, in order, on a thread of its own, and may block. If it throws for
  /// an entry, or has not taken it within a second, the entry is written to standard error; so are entries that a third
  /// signal, the exit grace or a lost lease cuts off, with the line that reports that. `run` and `runAndExit` wait for the last
  /// entries, a second and a half at most. A mock has the interface, too.
  ///
  /// - Parameter handler: Takes an entry, whose members need `import DaemonSystemd`.
  public static func log(
    to handler: @escaping @Sendable (LifecycleLogEntry) throws -> Void
  ) -> Self {
    Self("log", .log(.all, LogQueue(handler)))
  }
}
