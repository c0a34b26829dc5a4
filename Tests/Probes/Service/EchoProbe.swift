// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd
import Glibc

/// Says what the credentials named are, or why they can't be read; then that it is ready.
func readCredentials(_ names: [String]) throws {
  let environment = ServiceEnvironment.current
  let credentials = try Credentials(environment)
  for name in names {
    do throws(SystemdError) {
      say("credential \(name): \(try credentials.string(named: name) ?? "none")")
    } catch { say("credential \(name): \(error)") }
  }
  for problem in environment.problems { say("problem: \(problem)") }
  try NotifySocket(address: environment.notifySocket).send([.ready])
  while true { pause() }
}
