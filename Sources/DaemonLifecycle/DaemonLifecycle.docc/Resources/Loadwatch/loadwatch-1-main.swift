import DaemonLifecycle

@main struct Loadwatch {
  static func main() {
    LifecycleSubject.runAndExit { _ in }
  }
}
