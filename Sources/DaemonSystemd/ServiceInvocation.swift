/// Which run of which service this is, and what caused it.
extension ServiceEnvironment {
  /// The id of this run of the unit (`INVOCATION_ID`, 232): 32 hexadecimal digits, new with each start.
  public var invocationID: String? {
    get throws(SystemdError) {
      guard let id = variables["INVOCATION_ID"] else { return nil }
      let valid = id.utf8.allSatisfy { byte in
        byte.isDigit || byte >= 0x61 && byte <= 0x66 || byte >= 0x41 && byte <= 0x46
      }
      guard valid, id.utf8.count == 32 else {
        throw malformed("INVOCATION_ID", "is not 32 hexadecimal digits")
      }
      return id
    }
  }

  /// What standard output or standard error is if it goes to the journal (`JOURNAL_STREAM`, 231). Compare it with
  /// fstat(2) of the descriptor: a shell may have redirected it.
  public var journalStream: JournalStream? {
    get throws(SystemdError) {
      guard let text = variables["JOURNAL_STREAM"] else { return nil }
      return try JournalStream(text)
    }
  }

  /// The service manager's own process (`MANAGERPID`), as a user's services see it.
  public var managerPID: Int32? {
    get throws(SystemdError) { try processID(in: "MANAGERPID") }
  }

  /// The main process of the unit (`MAINPID`, 209), as the commands of `ExecReload=` and `ExecStop=` see it.
  public var mainPID: Int32? {
    get throws(SystemdError) { try processID(in: "MAINPID") }
  }

  /// `PIDFile=` of the unit (`PIDFILE`).
  public var pidFile: String? {
    get throws(SystemdError) { try absolutePath(in: "PIDFILE") }
  }

  /// How the service ended, as `ExecStop=` and `ExecStopPost=` see it (`SERVICE_RESULT`, 232): `success`,
  /// `exit-code`, `watchdog` and so on.
  public var serviceResult: String? { variables["SERVICE_RESULT"] }

  /// `exited`, `killed` or `dumped` (`EXIT_CODE`, 232), seen where ``serviceResult`` is.
  public var exitCode: String? { variables["EXIT_CODE"] }

  /// The exit status or the name of the signal (`EXIT_STATUS`, 232), seen where ``serviceResult`` is.
  public var exitStatus: String? { variables["EXIT_STATUS"] }

  /// The peer of a connection that a socket unit with `Accept=yes` has passed on (`REMOTE_ADDR`).
  public var remoteAddress: String? { variables["REMOTE_ADDR"] }

  /// The port of ``remoteAddress`` (`REMOTE_PORT`).
  public var remotePort: String? { variables["REMOTE_PORT"] }

  /// The timer or path unit that has started this one (`TRIGGER_UNIT`, 252).
  public var triggerUnit: String? { variables["TRIGGER_UNIT"] }

  /// The path that ``triggerUnit`` was watching (`TRIGGER_PATH`, 252).
  public var triggerPath: String? { variables["TRIGGER_PATH"] }
}
