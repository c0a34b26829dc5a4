// SPDX-License-Identifier: Apache-2.0
import DaemonLifecycle
import DaemonSystemd
import Dispatch
// For `stdout`, a variable of C.
@preconcurrency import Glibc

/// Prints through the C library before the start and in a hook; `say` goes past it. `buffered` gives
/// standard output a large buffer first, `held` has a thread that never lets go of it, `saving` prints in the save, too.
let prints: @Sendable ([String]) async throws -> Void = { arguments in
  if arguments.contains("buffered") {
    // Never freed, as the stream needs it until the end.
    setvbuf(stdout, .allocate(capacity: 1 << 16), _IOFBF, 1 << 16)
  }
  if arguments.contains("held") {
    let isHeld = DispatchSemaphore(value: 0)
    DispatchQueue.global().async {
      flockfile(stdout)
      isHeld.signal()
      blockThread()
    }
    waitBlocking(for: isHeld)
  } else {
    print("before the start")
  }
  let lifecycle = loggedSubject()
  let saving = lifecycle.observe(ShouldSaveState.self) { _ in
    if arguments.contains("saving") { print("saving") }
  }
  defer { withExtendedLifetime(saving) {} }
  try await lifecycle.runToTheEnd(
    lifecycle.observe(DidFinishLaunching.self) { _ in
      if !arguments.contains("held") { print("in a hook") }
    })
}

/// Has a log of its own, which `throws` or `blocks`. Without either each entry is a line of standard output.
let ownLog: @Sendable ([String]) async throws -> Void = { arguments in
  struct Full: Error {}
  var configuration = LifecycleConfiguration(escalationDelay: .zero)
  configuration.interfaces.append(
    .log { entry in
      if arguments.contains("throws") { throw Full() }
      if arguments.contains("blocks") { blockThread() }
      let event = entry.fields.first { $0.name == "LIFECYCLE_EVENT" }?.value ?? "-"
      say("entry \(entry.priority) \(event) \(entry.message)")
    })
  let lifecycle = loggedSubject(configuration)
  try await lifecycle.runToTheEnd(
    lifecycle.observe(ShouldReload.self, name: "settings") { _ in throw Full() },
    lifecycle.observe(DidEnterBackground.self) { notification in
      guard arguments.contains("hangs") else { return }
      say("hangs")
      try? await lifecycle.clock.sleep(for: .seconds(1000))
      say("is cancelled")
      blockThread()
    })
}

private func waitBlocking(for semaphore: DispatchSemaphore) { semaphore.wait() }
