// SPDX-License-Identifier: Apache-2.0
import CLinux
import DaemonSystemd
import Glibc
import TestSupport
import Testing

@testable import DaemonLifecycle

/// How long a stop may take where nobody says so.
@Suite struct HostingPlatformTests {
  private func platform(
    _ variables: [String: String], containerSign: String? = nil
  ) -> HostingPlatform? {
    .current(ServiceEnvironment(variables), containerSign: containerSign)
  }

  @Test(arguments: HostingPlatform.all) func itIsKnownByItsMarker(_ known: HostingPlatform) {
    #expect(platform([known.marker: "x"])?.name == known.name)
    #expect(platform([known.marker: ""]) == nil)
    #expect(known.stopTimeout < known.gracePeriod && known.stopTimeout >= .seconds(4))
    #expect(known.sentence.contains("$\(known.marker)"))
  }

  @Test func theMoreParticularComesFirst() {
    #expect(
      platform(["KUBERNETES_SERVICE_HOST": "10.0.0.1", "K_SERVICE": "a"])?.name == "Cloud Run")
  }

  /// A file of the root directory and its text, a value of `container`, and what is said.
  private static let signs: [(String, String, String, says: String?)] = [
    (".dockerenv", "", "", "/.dockerenv is there"),
    ("run/.containerenv", "", "", "/run/.containerenv is there"),
    ("proc/1/comm", "docker-init\n", "", "process 1 is docker-init"),
    ("proc/1/comm", "catatonit\n", "", "process 1 is catatonit"),
    ("proc/1/comm", "tini", "", "process 1 is tini"), ("proc/1/comm", "systemd\n", "", nil),
    ("proc/1/comm", "", "", nil), ("proc/1/comm", "systemd\n", "podman", "$container is set"),
    ("etc/passwd", "", "", nil),
  ]

  /// Also where another process is the first, as with `docker run --init`.
  @Test(arguments: signs.indices) func aContainerIsKnown(index: Int) throws {
    let (file, text, container, sentence) = Self.signs[index]
    let folder = try Folder()
    for name in ["run", "proc", "proc/1", "etc"] { mkdir(folder.path(name), 0o700) }
    try folder.write(text, to: file)
    let environment = ServiceEnvironment(["container": container])
    let sign = HostingPlatform.containerSign(environment, processID: 7, root: folder.path)
    #expect(sign == sentence)
    let known = platform([:], containerSign: sign)
    #expect(known?.gracePeriod == (sentence == nil ? nil : .seconds(10)))
    #expect(known?.sentence.contains("a container engine (\(sentence ?? "")):") ?? true)
  }

  @Test func processOneIsInAContainer() {
    let sign = HostingPlatform.containerSign(ServiceEnvironment([:]), processID: 1, root: "/none")
    #expect(sign == "the daemon is process 1")
  }

  /// With `PrivatePIDs=` systemd's own service is process 1.
  @Test func whatSystemdHasStartedAsProcessOneIsNot() {
    let environment = ServiceEnvironment(["SYSTEMD_EXEC_PID": "1"], processID: 1)
    #expect(HostingPlatform.containerSign(environment, processID: 1, root: "/none") == nil)
  }

  /// What process 1 is started as, the signals that it handles, this process's parent, and the shell that is named.
  private static let shells: [(String, caught: UInt64, parent: Int32, String?)] = [
    ("sh\0-c\0mydaemon; true\0", 0x10000, 1, "sh"), ("/bin/bash\0/entrypoint.sh\0", 0, 1, "bash"),
    ("-bash\0", 0, 1, "bash"), ("/bin/busybox\0sh\0", 0, 1, "busybox"),
    ("sh\0-c\0mydaemon; true\0", 0, 7, nil), ("/sbin/init\0", 0, 1, nil), ("", 0, 1, nil),
    // It has a trap, and may pass the signal on.
    ("bash\0/entrypoint.sh\0", 0x4000, 1, nil),
  ]

  @Test(arguments: shells.indices) func aShellAsProcessOneIsKnown(index: Int) throws {
    let (line, caught, parent, name) = Self.shells[index]
    let folder = try Folder()
    for name in ["proc", "proc/1"] { mkdir(folder.path(name), 0o700) }
    try folder.write(line, to: "proc/1/cmdline")
    let mask = String(caught, radix: 16)
    try folder.write("Name:\tx\nSigCgt:\t\(mask)\nCapInh:\t0\n", to: "proc/1/status")
    let problem = HostingPlatform.shellProblem(parent: parent, root: folder.path)
    #expect(problem.map { $0.prefix { $0 != "," } } == name.map { "Process 1 is \($0)" })
  }

  @Test func whatIsConfiguredWins() {
    let nomad = HostingPlatform.all.first { $0.name == "Nomad" }
    func timeout(_ own: Duration?, _ platform: HostingPlatform?) -> Duration? {
      LifecycleMachine.Policy(configuration: .init(stopTimeout: own), platform: platform)
        .stopTimeout
    }
    #expect(timeout(nil, nomad) == .milliseconds(4500))
    #expect(timeout(.seconds(60), nomad) == .seconds(60))
    #expect(timeout(nil, nil) == nil)
  }
}
