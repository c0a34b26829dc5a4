// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonSystemd

/// A worker of a job queue in PostgreSQL. Pause, stop or kill any of them at any moment, restart the server: no job is
/// lost, and none is done twice.
///
///     echo "host=/run/postgresql dbname=postgres" >/tmp/queue; export QUEUE_DATABASE=/tmp/queue
///     swift build --product queued; .build/debug/queued --schema | psql "$(cat /tmp/queue)"
///     .build/debug/queued & .build/debug/queued & sleep 1
///     psql "$(cat /tmp/queue)" -c "INSERT INTO jobs (payload) SELECT 'a job of five words' FROM generate_series(1, 30)"
///     kill -USR1 %1; sleep 1; kill -USR2 %1; sleep 1; kill -9 %1; sleep 9; kill %2
///     psql "$(cat /tmp/queue)" -c "TABLE results"
///
/// `Worker` uses the lifecycle, `Database` is the queue, `LibPQ` the client library, and `perform` below the work:
/// yours goes there.
///
/// | what happens | to the job in hand |
/// | --- | --- |
/// | SIGUSR1, SIGTERM | it is finished; one that takes longer than 2 s is handed back, and another worker does it from the beginning |
/// | SIGKILL, a crash, a lost connection | it is handed back, and not counted as failed: one that kills its worker is tried for ever, before the others |
/// | its work throws | it is done again after the others; after five times its state is `failed` |
/// | SIGHUP | it is finished; the next is taken from the database that the file names now |
///
/// A job is taken with `FOR UPDATE SKIP LOCKED` in a transaction that lasts until it is done. So what is written in this
/// transaction, here the job's result, is written once. What the work does elsewhere, such as a payment or a mail, is
/// done *at least* once: pass the job's id on as the idempotency key.
///
/// A transaction holds a connection and delays VACUUM, so this is for jobs of seconds; after 60 s the server ends it, which
/// is a lost connection.
/// Jobs of hours need leases in the table instead, which expire.
///
/// It checks once a second for new jobs; LISTEN and NOTIFY would be sooner.
@main struct Queued {
  private static let usage = """
    Usage: queued [--check-config | --schema | --version]

    Does the jobs in a table of PostgreSQL's, one after the other. For more at once, start more of it.

      --check-config  check the file with the connection string, and end: status 0 or 78
      --schema        print the statements that create the tables
      --version       print the version
      --help          print this

    $QUEUE_DATABASE names a file with a connection string, such as "host=db.example.org user=queue
    password=secret". It is read at start and on SIGHUP.

    Signals: SIGUSR1 pauses, SIGUSR2 resumes, SIGHUP reloads, SIGTERM and SIGINT end.

    Exit status: 0 all well, 64 bad arguments, 71 libpq is missing, 78 no connection string, 124 a job was abandoned.

    """

  /// The work: counts the words of a text, a tenth of a second each.
  @Sendable static func perform(_ job: Job, _ clock: LifecycleClock) async throws -> String {
    let words = job.payload.split(separator: " ")
    if words.isEmpty { throw NoWords() }
    for _ in words { try await clock.sleep(for: .milliseconds(100)) }
    return "\(words.count) words"
  }

  struct NoWords: Error, CustomStringConvertible { let description = "there are no words" }

  static func main() {
    do {
      let arguments = CommandLine.arguments.dropFirst()
      switch (arguments.first, arguments.count) {
      case ("--help", _), ("-h", _): print(usage, terminator: "")
      case ("--version", _): print("queued 1.0.0")
      case ("--schema", 1): print(Database.schema, terminator: "")
      case ("--check-config", 1):
        let settings = try settings(.opened())
        _ = try settings.connectionString()
        print("queued: \(VisibleText.line(settings.file)) is valid")
      case (nil, _): serve()
      default:
        Journal.writeLine("There is no option \"\(arguments.last!)\" (see queued --help).", .error)
        exit(64)
      }
      exit(0)
    } catch {
      Journal.writeLine("\(error)", .error)
      exit((error as? any ExitStatusError)?.exitStatus ?? 71)
    }
  }

  private static func settings(_ libpq: LibPQ) throws(SettingsError) -> Settings {
    guard let file = ServiceEnvironment.current.variables["QUEUE_DATABASE"] else {
      throw SettingsError("$QUEUE_DATABASE does not name the file with the connection string.")
    }
    return Settings(file: file) { connectionString in
      // The reason is not read: libpq's sentence may quote the password.
      let parsed = libpq.parse(connectionString, nil)
      defer { libpq.freeParsed(parsed) }
      return parsed != nil
    }
  }

  private static func serve() -> Never {
    LifecycleSubject.runAndExit { lifecycle in
      let libpq = try LibPQ.opened()
      let worker = try Worker(settings(libpq)) {
        Database(libpq, lifecycle)
      } perform: {
        try await perform($0, lifecycle.clock)
      } say: {
        Journal.writeLine($0)
      }
      worker.work(in: lifecycle)
    }
  }
}
