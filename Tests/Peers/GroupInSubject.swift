// SPDX-License-Identifier: Apache-2.0
import Given
import Glibc

@testable import Recipes

/// The guide's daemon of services that a pause does not end: SIGTERM ends the services in reverse, with status 0.
@main struct GroupInSubject {
  static func main() async throws {
    Notes.expectAtExit(["jobs ended", "server ended"])
    signal(SIGTERM, after: "server runs", "jobs runs")
    try await groupInSubject()
  }
}
