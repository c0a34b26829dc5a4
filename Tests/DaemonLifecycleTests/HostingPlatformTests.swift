// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Testing

@testable import DaemonLifecycle

/// How long a stop may take where nobody says so.
@Suite struct HostingPlatformTests {
  private func platform(
    _ variables: [String: String], isProcessOne: Bool = false
  ) -> HostingPlatform? {
    .current(ServiceEnvironment(variables), isProcessOne: isProcessOne)
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

  @Test func processOneIsInAContainer() {
    #expect(platform([:], isProcessOne: true)?.gracePeriod == .seconds(10))
    #expect(platform([:]) == nil)
  }

  @Test func whatIsConfiguredWins() {
    let nomad = HostingPlatform.all.first { $0.name == "Nomad" }
    #expect(LifecycleConfiguration().settled(on: nomad).stopTimeout == .milliseconds(4500))
    #expect(
      LifecycleConfiguration(stopTimeout: .seconds(60)).settled(on: nomad).stopTimeout
        == .seconds(60))
    #expect(LifecycleConfiguration().settled(on: nil).stopTimeout == nil)
  }
}
