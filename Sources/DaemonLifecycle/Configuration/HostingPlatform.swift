// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// A platform other than systemd that runs the daemon, and its default grace period: the time between SIGTERM and
/// SIGKILL. A process can't read that time, but it can recognize the platform.
struct HostingPlatform: Sendable {
  let name: String
  /// An environment variable that is documented to be set there.
  let marker: String
  /// The platform's default.
  let gracePeriod: Duration
  /// What else has shown it, where there is no variable.
  var containerSign: String?

  /// The more particular platforms come first, since what runs on top of Kubernetes has its marker too.
  static let all = [
    // Fly.io, "kill_timeout": default 5 s. The Machine Runtime Environment.
    HostingPlatform(name: "Fly.io", marker: "FLY_MACHINE_ID", gracePeriod: .seconds(5)),
    // Nomad, job specification, task, "kill_timeout": default 5 s. Runtime environment settings.
    HostingPlatform(name: "Nomad", marker: "NOMAD_ALLOC_ID", gracePeriod: .seconds(5)),
    // Cloud Run, container runtime contract: 10 s from SIGTERM to SIGKILL.
    HostingPlatform(name: "Cloud Run", marker: "K_SERVICE", gracePeriod: .seconds(10)),
    // Amazon ECS, task definition parameters, "stopTimeout": default 30 s. Task metadata endpoint version 4.
    HostingPlatform(
      name: "Amazon ECS", marker: "ECS_CONTAINER_METADATA_URI_V4", gracePeriod: .seconds(30)),
    // Heroku, Dyno Manager, shutdown: 30 s. Dynos, local environment variables.
    HostingPlatform(name: "Heroku", marker: "DYNO", gracePeriod: .seconds(30)),
    // Kubernetes, pod lifecycle, "terminationGracePeriodSeconds": default 30 s. Service environment variables.
    HostingPlatform(
      name: "Kubernetes", marker: "KUBERNETES_SERVICE_HOST", gracePeriod: .seconds(30)),
  ]

  /// `docker stop`, and Podman's: 10 s. They set no variable of their own.
  static func container(_ sign: String) -> HostingPlatform {
    HostingPlatform(
      name: "a container engine", marker: "", gracePeriod: .seconds(10), containerSign: sign)
  }

  /// The platform that this process runs on; `nil` when it is unknown.
  ///
  /// - Parameter containerSign: What shows that it is in a container.
  static func current(
    _ environment: ServiceEnvironment, containerSign: @autoclosure () -> String?
  ) -> HostingPlatform? {
    all.first { environment[$0.marker]?.isEmpty == false } ?? containerSign().map(container)
  }

  /// The stop timeout that fits the grace period.
  var stopTimeout: Duration { LifecycleConfiguration.stopTimeout(within: gracePeriod) }

  /// The line that is logged at the start.
  var sentence: String {
    let reason = containerSign ?? "$\(marker) is set"
    return
      "Running on \(name) (\(reason)): a stop may take \(stopTimeout.forReading) of the usual \(gracePeriod.forReading). Set"
      + " stopTimeout if the grace period differs."
  }
}

extension LifecycleConfiguration {
  /// The platform from which the stop timeout is derived, where no service manager has one; `nil` where it is set. Looked
  /// for in files.
  var platform: HostingPlatform? {
    stopTimeout == nil
      ? .current(environment, containerSign: HostingPlatform.containerSign(environment)) : nil
  }
}
