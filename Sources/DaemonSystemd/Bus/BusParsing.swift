/// Values of the types that interfaces promise; anything else is an error that names what it was about.
extension BusValue {
  func asBool(_ name: String) -> Result<Bool, BusError> {
    guard case .bool(let value) = self else { return wrongType(name, "a boolean") }
    return .success(value)
  }

  func asString(_ name: String) -> Result<String, BusError> {
    guard case .string(let value) = self else { return wrongType(name, "a string") }
    return .success(value)
  }

  /// A time span of systemd's; `nil` is its infinity.
  func asMicroseconds(_ name: String) -> Result<Duration?, BusError> {
    guard case .uint64(let value) = self else { return wrongType(name, "a number of microseconds") }
    guard value != .max else { return .success(nil) }
    return .success(.seconds(Int64(value / 1_000_000)) + .microseconds(Int64(value % 1_000_000)))
  }

  func wrongType<Value>(_ name: String, _ expected: String) -> Result<Value, BusError> {
    .failure(.malformedReply("\(name) should be \(expected), and is \(self)."))
  }
}

extension BusSignal {
  /// The boolean that a signal begins with.
  var flag: Result<Bool, BusError> {
    guard let first = arguments.first else {
      return .failure(.malformedReply("The signal \(member) has no argument."))
    }
    return first.asBool(member)
  }

  /// The names that a `PropertiesChanged` is about, and the values that it brings.
  var changedProperties: (names: Set<String>, values: [String: BusValue])? {
    guard arguments.count == 3, let values = arguments[1].dictionary,
      case .array(_, let invalidated) = arguments[2]
    else { return nil }
    var names = Set(values.keys)
    for case .string(let name) in invalidated { names.insert(name) }
    return (names, values)
  }
}

extension BusSession {
  /// `BusConnection.call` from any thread.
  func call(
    _ method: BusMethod, arguments: [String] = [], timeout: Duration = .seconds(25),
    completion: @escaping @Sendable (Result<[BusValue], BusError>) -> Void
  ) {
    perform { connection in
      switch connection {
      case .failure(let error): completion(.failure(error))
      case .success(let connection):
        connection.call(method, arguments: arguments, timeout: timeout, completion: completion)
      }
    }
  }

  /// `BusConnection.property` from any thread.
  func property(
    _ name: String, of object: BusObject,
    completion: @escaping @Sendable (Result<BusValue, BusError>) -> Void
  ) {
    perform { connection in
      switch connection {
      case .failure(let error): completion(.failure(error))
      case .success(let connection):
        connection.property(name, of: object, completion: completion)
      }
    }
  }
}
