public import DaemonSystemd

extension LifecycleConfiguration {
  /// Takes the stop budget from a variable that holds the grace period of the container: the time between its
  /// SIGTERM and its SIGKILL, which a process can't see by itself.
  ///
  ///     var configuration = LifecycleConfiguration()
  ///     try configuration.takeStopBudget(fromEnvironment: "TERMINATION_GRACE_PERIOD_SECONDS")
  ///
  /// In a pod's manifest the variable repeats `terminationGracePeriodSeconds`, since the downward API does not
  /// offer that field; for `docker stop` it repeats `--stop-timeout`.
  ///
  /// The budget is what the variable says, less `preStop`, less a margin of a tenth, at most 2 s: the grace period
  /// is counted by somebody else, who began before us. A ``stopBudget`` that is there already counts where it is
  /// less, and so does systemd's `TimeoutStopSec=`.
  ///
  /// - Parameters:
  ///   - name: The variable. Its value is a whole number of seconds (`30`), or a time with units as systemd writes
  ///     them (`30s`, `1min 30s`, `2h`).
  ///   - preStop: How long the container's `preStop` hook takes at most: it comes before SIGTERM, out of the same
  ///     grace period.
  ///   - environment: By default this process's, as it was when it was first looked at.
  /// - Returns: The new stop budget; `nil`, with nothing changed, where the variable is not set.
  /// - Throws: ``LifecycleError/invalidGracePeriod(_:_:reason:)`` when it says anything else, nothing at all, no
  ///   time, more than a year, or no more than `preStop`; nothing is changed then.
  @discardableResult
  public mutating func takeStopBudget(
    fromEnvironment name: String, preStop: Duration = .zero,
    in environment: ServiceEnvironment = .current
  ) throws(LifecycleError) -> Duration? {
    guard let text = environment.variables[name] else { return nil }
    func invalid(_ reason: String) -> LifecycleError {
      .invalidGracePeriod(name, text, reason: reason)
    }
    guard let grace = GracePeriod.parse(text) else {
      throw invalid("not a whole number of seconds, nor a time such as 1min 30s")
    }
    guard grace > .zero else { throw invalid("no time at all: SIGKILL would come with SIGTERM") }
    guard grace <= GracePeriod.longest else { throw invalid("more than a year") }
    let ours = grace - max(.zero, preStop)
    guard ours > .zero else {
      throw invalid("no more than the \(preStop.inSeconds) s that the preStop hook takes of it")
    }
    let budget = ours - min(.seconds(2), ours / 10)
    stopBudget = min(stopBudget ?? budget, budget)
    return stopBudget
  }
}

/// A time between being asked to end and being killed, as configurations write it.
enum GracePeriod {
  static let longest = Duration.seconds(366 * 24 * 3600)

  /// `30`, `30s`, `1min 30s`: numbers without a sign, each with a unit, but for one that stands alone; `nil` for
  /// anything else. What would not fit is far beyond `longest`, and given as such.
  static func parse(_ text: String) -> Duration? {
    var bytes = text.utf8[...]
    var total: UInt64 = 0
    var parts = 0
    skipSpaces(&bytes)
    while !bytes.isEmpty {
      let digits = bytes.prefix(while: \.isDigit)
      guard !digits.isEmpty else { return nil }
      bytes = bytes.dropFirst(digits.count)
      skipSpaces(&bytes)
      let letters = bytes.prefix(while: \.isLetter)
      bytes = bytes.dropFirst(letters.count)
      skipSpaces(&bytes)
      let isAlone = parts == 0 && letters.isEmpty && bytes.isEmpty
      guard let unit = isAlone ? 1 : unit(String(decoding: letters, as: UTF8.self)) else {
        return nil
      }
      // What does not fit is too much, whatever the unit.
      let number = UInt64(decimal(digits, as: UInt32.self) ?? .max)
      total = min(total + number * unit, UInt64(UInt32.max))
      parts += 1
    }
    return parts == 0 ? nil : .seconds(total)
  }

  private static func skipSpaces(_ bytes: inout Substring.UTF8View) {
    bytes = bytes.drop { $0 == UInt8(ascii: " ") }
  }

  private static func unit(_ name: String) -> UInt64? {
    switch name {
    case "s", "sec", "second", "seconds": 1
    case "m", "min", "minute", "minutes": 60
    case "h", "hr", "hour", "hours": 3600
    default: nil
    }
  }
}
