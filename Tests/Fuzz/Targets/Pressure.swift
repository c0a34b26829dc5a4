// SPDX-License-Identifier: Apache-2.0
import FoundationEssentials

@testable import DaemonSystemd

extension FuzzTarget {
  /// A line each for `MEMORY_PRESSURE_WATCH` and `MEMORY_PRESSURE_WRITE`, then a file such as `/proc/self/cgroup`.
  static let pressure = FuzzTarget(name: "pressure") { input in
    let (path, write) = (input.lineText(), input.lineText())
    checkWatch(["MEMORY_PRESSURE_WATCH": path, "MEMORY_PRESSURE_WRITE": write], path, write)
    checkWatch(["MEMORY_PRESSURE_WATCH": path], path, nil)
    _ = try? PressureWatch.ownCgroup()
    checkControlGroup(input.all())
  }

  private static func checkWatch(
    _ variables: [String: String], _ path: String, _ write: String?
  ) {
    let environment = ServiceEnvironment(variables, processID: 1)
    do throws(SystemdError) {
      guard let watch = try environment.pressureWatch else {
        return require(false, "\(variables) set nothing")
      }
      require(
        watch.path == path && path.utf8.first == UInt8(ascii: "/"),
        "\(watch.path) was read of \(path)")
      guard let write, !watch.isOff else {
        return require(watch.write.isEmpty, "\(watch.write) is to be written to \(path)")
      }
      let compact = write.utf8.filter { $0 != 0x20 && !(0x09...0x0d).contains($0) }
      require(
        Array(Data(watch.write).base64EncodedString().utf8) == compact,
        "\(watch.write) was read of \(write)")
    } catch { requireSentence(error) }
  }

  /// The path stands in the file, behind the hierarchy's number.
  private static func checkControlGroup(_ file: [UInt8]) {
    do throws(SystemdError) {
      guard let path = try PressureWatch.path(inCgroupFile: file) else { return }
      _ = PressureWatch.folders(path)
      let text = String(decoding: file, as: UTF8.self)
      require(
        path.utf8.first == UInt8(ascii: "/") && !path.utf8.contains(10)
          && text.utf8.split(separator: 10).contains { line in
            let parts = line.split(
              separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
            return normalDigits(parts[0]) == "0" && parts.count == 2
              && parts[1].elementsEqual(":\(path)".utf8)
          }, "\(path) is not in \(text)")
    } catch { requireSentence(error) }
  }
}
