// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import Dispatch

/// The queue in PostgreSQL, over a connection that never blocks a thread of Swift's pool.
///
/// A job is taken, worked on and marked as done in one transaction, so whatever ends the connection hands it back: a
/// pause, a kill, a crash of either side. After a COMMIT without an answer the job is done, result and all, or waits.
actor Database: JobStore {
  private let libpq: LibPQ
  private let clock: LifecycleClock
  private var connection: LibPQ.Pointer?
  /// On the lifecycle's own threads: libpq blocks while it looks up the server's name, which nothing can shorten.
  private let executor: LifecycleSerialExecutor
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  static let schema = """
    CREATE TABLE IF NOT EXISTS jobs (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      payload text NOT NULL,
      state text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'done', 'failed')),
      attempts integer NOT NULL DEFAULT 0,  -- that failed
      taken_by text                         -- the process that has done it
    );
    CREATE INDEX IF NOT EXISTS jobs_waiting ON jobs (attempts, id) WHERE state = 'waiting';
    CREATE TABLE IF NOT EXISTS results (job bigint NOT NULL REFERENCES jobs, result text NOT NULL);

    """

  init(_ libpq: LibPQ, _ lifecycle: any LifecycleObservable) {
    (self.libpq, clock, executor) = (libpq, lifecycle.clock, lifecycle.makeSerialExecutor())
  }

  // MARK: Jobs

  func withNextJob(_ work: @escaping Work) async throws -> Bool {
    try await execute("BEGIN")
    // Those that have failed come last.
    let rows = try await execute(
      """
      SELECT id, payload FROM jobs WHERE state = 'waiting'
      ORDER BY attempts, id LIMIT 1 FOR UPDATE SKIP LOCKED
      """)
    guard let row = rows.first else {
      try await execute("ROLLBACK")
      return false
    }
    let job = Job(id: row[0], payload: row[1])
    try await execute("SAVEPOINT before_work")
    do {
      let result = try await work(job)
      try await execute("INSERT INTO results VALUES ($1, $2)", job.id, result)
      try await execute(
        """
        UPDATE jobs SET state = 'done', taken_by = current_setting('application_name')
        WHERE id = $1
        """, job.id)
    } catch {
      if Task.isCancelled || isLost { throw error }
      // No other worker takes it before its failure is counted.
      try await execute("ROLLBACK TO before_work")
      try await execute(
        """
        UPDATE jobs SET attempts = attempts + 1,
          state = CASE WHEN attempts < 4 THEN 'waiting' ELSE 'failed' END
        WHERE id = $1
        """, job.id)
      try await execute("COMMIT")
      throw JobFailure(job: job, error: error)
    }
    try await execute("COMMIT")
    return true
  }

  // MARK: The connection

  func open(_ connectionString: String) async throws {
    connection = libpq.connectStart(connectionString)
    guard let connection, !isLost else { throw failure() }
    let deadline = clock.now.advanced(by: Self.patience)
    // As if PQconnectPoll had said so, by libpq's manual.
    var step = ConnectionStep.write
    while step != .done {
      try await wait(until: step == .read ? .readable : .writable, deadline)
      step = ConnectionStep(rawValue: libpq.connectPoll(connection)) ?? .failed
      if step == .failed { throw failure() }
    }
    // The server hands back what a worker has that is gone without a word, as by a loss of power.
    try await execute(
      """
      SELECT set_config('application_name', $1, false), set_config('statement_timeout', '5s', false),
        set_config('idle_in_transaction_session_timeout', '60s', false)
      """, "queued \(getpid())")
  }

  func close() {
    if let connection { libpq.finish(connection) }
    connection = nil
  }

  /// PostgresPollingStatusType.
  private enum ConnectionStep: Int32 { case failed, read, write, done }

  /// CONNECTION_BAD.
  private var isLost: Bool { connection.map { libpq.status($0) == 1 } ?? true }

  /// How long the server may take to answer.
  private static let patience = Duration.seconds(10)

  /// Sends one statement, and returns the rows of the answer.
  @discardableResult
  private func execute(_ statement: String, _ values: String...) async throws -> [[String]] {
    guard let connection else { throw failure() }
    let copies = values.map { strdup($0) }
    defer { for copy in copies { free(copy) } }
    // Sent at once: a socket has room for this much, as there is one statement at a time.
    let isSent = libpq.sendQuery(
      connection, statement, Int32(copies.count), nil, copies.map { UnsafePointer($0) }, nil, nil, 0
    )
    guard isSent == 1 else { throw failure() }
    var rows: [[String]] = []
    var error: DatabaseError?
    let deadline = clock.now.advanced(by: Self.patience)
    while let result = try await nextResult(deadline) {
      defer { libpq.clear(result) }
      // Neither PGRES_COMMAND_OK nor PGRES_TUPLES_OK.
      if !(1...2).contains(libpq.resultStatus(result)) { error = failure() }
      for row in 0..<libpq.rows(result) {
        var values: [String] = []
        for column in 0..<libpq.columns(result) {
          values.append(String(cString: libpq.value(result, row, column)))
        }
        rows.append(values)
      }
    }
    if let error { throw error }
    return rows
  }

  /// `nil` after the last one of a statement.
  private func nextResult(_ deadline: LifecycleClock.Instant) async throws -> LibPQ.Pointer? {
    while let connection {
      if libpq.isBusy(connection) == 0 { return libpq.getResult(connection) }
      try await wait(until: .readable, deadline)
      guard libpq.consumeInput(connection) == 1 else { break }
    }
    throw failure()
  }

  /// What libpq says of its last call, without its hints. It never says a password.
  private func failure() -> DatabaseError {
    let text = connection.map { String(cString: libpq.errorMessage($0)) } ?? "not connected"
    return DatabaseError(description: String(text.prefix { !$0.isNewline }))
  }

  /// Returns when the socket is ready, or at the deadline: then it closes the connection, which owes an answer.
  private func wait(until readiness: Readiness, _ deadline: LifecycleClock.Instant) async throws {
    guard let connection, clock.now < deadline else {
      close()
      throw DatabaseError(description: "the server does not answer")
    }
    try await readiness.wait(libpq.socket(connection), until: deadline, on: clock)
  }
}

/// What a socket is waited for.
private enum Readiness {
  case readable, writable

  /// Returns when the socket is ready, or at the deadline, and throws `CancellationError` when the task is cancelled.
  func wait(
    _ socket: Int32, until deadline: LifecycleClock.Instant, on clock: LifecycleClock
  ) async throws {
    let queue = DispatchQueue.global()
    // Dispatch's objects may be used from any thread, but are not declared to be `Sendable`.
    nonisolated(unsafe) let source: any DispatchSourceProtocol =
      switch self {
      case .readable: DispatchSource.makeReadSource(fileDescriptor: socket, queue: queue)
      case .writable: DispatchSource.makeWriteSource(fileDescriptor: socket, queue: queue)
      }
    let end: @Sendable () -> Void = { source.cancel() }
    let limit = Task {
      try await clock.sleep(until: deadline)
      end()
    }
    defer { limit.cancel() }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        source.setEventHandler(handler: end)
        // It runs once, when Dispatch no longer uses the descriptor, which may then be closed.
        source.setCancelHandler { continuation.resume() }
        source.activate()
      }
    } onCancel: {
      end()
    }
    try Task.checkCancellation()
  }
}

struct DatabaseError: Error, CustomStringConvertible { let description: String }
