import DaemonLifecycle

/// Notification types by name: the package's are known; others have a name only.
enum NotificationTypes {
  private static let known: [String: any LifecycleNotification.Type] = {
    let types: [any LifecycleNotification.Type] = [
      DidFinishLaunching.self, WillEnterForeground.self, DidEnterBackground.self,
      ShouldSaveState.self, ShouldReload.self, WillSuspend.self, DidResume.self,
      DidReceivePressure.self, CheckHealth.self, WillTerminate.self,
    ]
    return Dictionary(uniqueKeysWithValues: types.map { ("\($0)", $0) })
  }()

  static func type(_ name: String) -> (any LifecycleNotification.Type)? { known[name] }

  /// With its module where it could be taken for one of the package's.
  static func name(_ type: any LifecycleNotification.Type) -> String {
    let name = "\(type)"
    guard let known = known[name], known != type else { return name }
    return String(reflecting: type)
  }
}
