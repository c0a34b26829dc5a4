import DaemonLifecycle

@main struct Loadwatch {
  static func main() {
    LifecycleSubject.runAndExit { lifecycle in
      let monitor = Monitor(lifecycle: lifecycle)
      lifecycle.addForeground(name: "samples") { try await monitor.work() }
    }
  }
}
