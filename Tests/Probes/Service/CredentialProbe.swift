// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import FoundationEssentials
import Glibc

/// Says what the credentials named are, or why they can't be read; then that it is ready.
func readCredentials(_ names: [String]) throws {
  let environment = ServiceEnvironment.current
  let directory = try environment.credentialsDirectory ?? "/nowhere"
  for name in names {
    let text = try? String(contentsOfFile: "\(directory)/\(name)", encoding: .utf8)
    say("credential \(name): \(text ?? "none")")
  }
  for problem in environment.problems { say("problem: \(problem)") }
  try NotifySocket(environment).send([.ready])
  while true { pause() }
}
