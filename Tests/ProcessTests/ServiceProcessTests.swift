import Foundation
import TestSupport
import XCTest

/// The async server as a process.
final class ServiceProcessTests: XCTestCase {
  private func started() throws -> (daemon: ChildProcess, address: String) {
    let daemon = try ChildProcess(built("clockd"), ["0"], stderrToStdout: true)
    let line = try daemon.expect("clockd: serving ")
    return (daemon, String(line.split(separator: " ")[2]))
  }

  func testAnswersUntilItIsTerminated() throws {
    let (daemon, address) = try started()
    let (first, second) = (try Peer(address), try Peer(address))
    first.send("wa")
    second.send("wait 0\nhello\ntime\n")
    XCTAssertTrue(second.hears("waited 0 s\nerror: say \"time\", or \"wait\""))
    first.send("it 0.01\n")
    XCTAssertTrue(first.hears("waited 0.01 s\n"))
    first.endSending()
    XCTAssertTrue(first.hearsTheEnd)
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
  }

  /// An idle connection ends, an answer under way is sent before the end, and who comes waits.
  func testAPauseDrainsAndAResumeGoesOn() throws {
    let (daemon, address) = try started()
    let (idle, busy) = (try Peer(address), try Peer(address))
    idle.send("wait 0\n")
    XCTAssertTrue(idle.hears("waited 0 s\n"))
    // The first answer shows that it is served, the third line that nothing new is begun.
    busy.send("wait 0\nwait 0.5\ntime\n")
    XCTAssertTrue(busy.hears("waited 0 s\n"))
    daemon.send(SIGUSR1)
    XCTAssertTrue(idle.hearsTheEnd)
    let late = try Peer(address)
    late.send("wait 0\n")
    _ = busy.receive(100)
    daemon.send(SIGUSR2)
    XCTAssertTrue(late.hears("waited 0 s\n"))
    daemon.send(SIGTERM)
    XCTAssertTrue(late.hearsTheEnd)
    XCTAssertEqual(try daemon.wait(), .status(0))
    // Where it serves, and the timeline of its end.
    XCTAssertTrue(
      daemon.output.dropFirst().first?.hasPrefix("lifecycle: terminate (SIGTERM") == true)
    XCTAssertEqual(daemon.output.filter { !$0.hasPrefix(" ") }.count, 2, "\(daemon.output)")
  }

  /// Who is served is served on, and who comes waits until one leaves.
  func testWithoutDescriptorsItWaitsForSome() throws {
    let daemon = try ChildProcess(
      "/bin/sh", ["-c", "ulimit -n 64; exec \"$0\" 0", built("clockd")], stderrToStdout: true)
    let address = String(try daemon.expect("clockd: serving ").split(separator: " ")[2])
    let first = try Peer(address)
    var others = try (0..<100).map { _ in try Peer(address) }
    try daemon.expect("clockd: Could not accept a client: Too many open files.")
    first.send("wait 0\n")
    XCTAssertTrue(first.hears("waited 0 s\n"))
    let last = others.removeLast()
    last.send("wait 0\n")
    others = []
    XCTAssertTrue(last.hears("waited 0 s\n"))
    daemon.send(SIGTERM)
    XCTAssertEqual(try daemon.wait(), .status(0))
  }

  func testArguments() throws {
    for (arguments, status) in [(["x"], 64), (["1", "2"], 64), (["--help"], 0)]
      as [([String], Int32)]
    {
      let daemon = try ChildProcess(built("clockd"), arguments, stderrToStdout: true)
      XCTAssertEqual(try daemon.wait(), .status(status))
      XCTAssertEqual(daemon.output.count, 1)
    }
    let (daemon, address) = try started()
    let port = String(address.split(separator: ":")[1])
    let second = try ChildProcess(built("clockd"), [port], stderrToStdout: true)
    XCTAssertEqual(try second.wait(), .status(71))
    XCTAssertTrue(second.output.joined().contains("Could not listen at 127.0.0.1:\(port)"))
    daemon.send(SIGINT)
    XCTAssertEqual(try daemon.wait(), .status(0))
  }
}
