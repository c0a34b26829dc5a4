// SPDX-License-Identifier: Apache-2.0
import Given
import Glibc

@testable import Recipes

/// The guide's lifecycle as a service: the SIGTERM of the group ends it first, and then what is below it.
@main struct SubjectInGroup {
  static func main() async throws {
    signal(SIGTERM, after: "database runs", "work runs")
    try await subjectInGroup()
    Notes.expect("work ended", "database ended")
  }
}
