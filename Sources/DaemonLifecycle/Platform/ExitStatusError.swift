// SPDX-License-Identifier: Apache-2.0
/// An error that determines the exit status of the daemon that it ends: thrown by the set-up of
/// ``LifecycleSubject/runAndExit(configuration:_:)``, by a hook of the launch or by work. A hook of the stop ends
/// nothing: whatever it throws, the status is 70.
///
/// ```swift
/// struct BadConfiguration: ExitStatusError, CustomStringConvertible {
///   let description: String
///   var exitStatus: Int32 { 78 }  // EX_CONFIG; RestartPreventExitStatus=78
/// }
/// ```
public protocol ExitStatusError: Error {
  /// The status for exit(3), from 1 to 255.
  var exitStatus: Int32 { get }
}
