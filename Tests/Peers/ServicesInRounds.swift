// SPDX-License-Identifier: Apache-2.0
import Given
import Glibc

@testable import Recipes

/// The guide's daemon of services in rounds: SIGTERM ends them in reverse, and then what they need, with status 0.
@main struct ServicesInRounds {
  static func main() {
    Notes.expectAtExit(["jobs ended", "server ended", "database ended"])
    signal(SIGTERM, after: "database runs", "server runs", "jobs runs")
    runDaemon()
  }
}
