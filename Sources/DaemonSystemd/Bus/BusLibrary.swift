import CLinux

/// sd-bus of a libsystemd found at run time.
struct BusLibrary: Sendable {
  /// Any libsystemd since 240 has this name.
  static let standardName = "libsystemd.so.0"

  /// Pointers to code that is never unloaded, and never written after `load`: any thread may read them.
  let functions: clinux_sdbus

  /// May read from disk, once for a process; later loads are a look-up in what is loaded.
  static func load(_ name: String) throws(BusError) -> BusLibrary {
    var functions = clinux_sdbus()
    if let reason = clinux_sdbus_load(name, &functions) {
      throw .unavailable("\(name) can't be used (\(String(cString: reason)))")
    }
    return BusLibrary(functions: functions)
  }

  /// Calls a function, which is not missing after `load`; -ENOSYS otherwise rather than a crash.
  @inline(__always)
  func call<Function>(
    _ function: KeyPath<clinux_sdbus, Function?>, _ body: (Function) -> Int32
  ) -> Int32 {
    guard let function = functions[keyPath: function] else { return -ENOSYS }
    return body(function)
  }
}
