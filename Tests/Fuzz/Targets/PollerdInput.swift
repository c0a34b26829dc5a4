// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonLifecycleFiles
import DaemonSystemd
import FoundationEssentials

@testable import pollerd

extension FuzzTarget {
  /// Which variable says where the state is; pollerd's command line, an argument a line; behind an empty line its
  /// configuration file, or its state.
  static let pollerd = FuzzTarget(name: "pollerd") { input in
    let place = input.byte()
    let arguments = input.arguments()
    let bytes = input.all()
    let file = file(with: bytes)
    checkState(bytes)
    do throws(UsageError) {
      let options = try Options(parsing: arguments)
      require(options.stopDelay >= .zero && options.stopDelay <= .seconds(3600), "\(options)")
      let variable = [
        UInt8(ascii: "s"): "STATE_DIRECTORY", UInt8(ascii: "x"): "XDG_STATE_HOME",
      ][place, default: "HOME"]
      let directory = try options.stateDirectory([variable: arguments.last ?? "/home"])
      require(!directory.isEmpty, "no directory")
      checkLifecycle(options, arguments.last ?? "")
      checkSettings(Configuration(file: file, overrides: options.settings))
    } catch {
      requireSentence(error)
      require(error.exitStatus == 64, "no EX_USAGE: \(error)")
      checkSettings(Configuration(file: file, overrides: PartialSettings()))
    }
  }

  private static func checkLifecycle(_ options: Options, _ period: String) {
    let environment = ServiceEnvironment(["TERMINATION_GRACE_PERIOD_SECONDS": period])
    do throws(LifecycleError) {
      let configuration = try options.lifecycle(environment)
      let ready = options.readyFile.map { configuration.interfaces.contains(.readinessFile($0)) }
      require(ready != false, "another file")
    } catch { requireSentence(error) }
  }

  private static func checkSettings(_ configuration: Configuration) {
    do throws(SettingsError) {
      let settings = try configuration.load()
      require(
        settings.interval > .zero && settings.interval <= .seconds(31_536_000), "\(settings)")
      require(!settings.source.path.isEmpty, "no source")
    } catch {
      require(error.description.contains(", line "), "no place: \(error)")
      require(error.exitStatus == 78, "no EX_CONFIG: \(error)")
    }
  }

  private static func checkState(_ bytes: [UInt8]) {
    guard let state = try? JSONDecoder().decode(PollState.self, from: Data(bytes)) else { return }
    require((0..<Int.max / 2).contains(state.count), "\(state) is no state")
    let again = try? JSONDecoder().decode(PollState.self, from: JSONEncoder().encode(state))
    require(again == state, "\(state) became \(again as Any)")
  }
}
