import CLinux

/// A value as it goes over the bus, with its type.
///
///     if case .uint64(let microseconds)? = reply.first { … }
///
/// The names are those of the D-Bus specification's types.
public indirect enum BusValue: Sendable, Hashable {
  /// `y`: 8 bits without a sign.
  case byte(UInt8)
  /// `b`: true or false.
  case bool(Bool)
  /// `n`: 16 bits with a sign.
  case int16(Int16)
  /// `q`: 16 bits without a sign.
  case uint16(UInt16)
  /// `i`: 32 bits with a sign.
  case int32(Int32)
  /// `u`: 32 bits without a sign.
  case uint32(UInt32)
  /// `x`: 64 bits with a sign.
  case int64(Int64)
  /// `t`: 64 bits without a sign; systemd's times in microseconds.
  case uint64(UInt64)
  /// `d`: a floating-point number.
  case double(Double)
  /// `s`: text.
  case string(String)
  /// `o`: the path of an object, such as `/org/freedesktop/login1`.
  case objectPath(String)
  /// `g`: types, as letters.
  case signature(String)
  /// `h`: a file descriptor.
  case descriptor(BusDescriptor)
  /// Elements that all have the signature given, which an empty array needs too.
  case array(of: String, [BusValue])
  /// A key and its value; an array of these is a dictionary.
  case entry(BusValue, BusValue)
  /// `(…)`: values of fixed types, one after another.
  case structure([BusValue])
  /// `v`: a value that carries its type along.
  case variant(BusValue)

  // MARK: Looking inside

  /// The keys and values of a dictionary whose keys are strings, variants unwrapped; `nil` for any other
  /// value. This is the form of properties (`a{sv}`).
  public var dictionary: [String: BusValue]? {
    guard case .array(let element, let entries) = self, element.hasPrefix("{s") else { return nil }
    var result: [String: BusValue] = [:]
    for case .entry(.string(let key), let value) in entries { result[key] = value.unwrapped }
    return result
  }

  /// What is inside a variant; any other value itself.
  public var unwrapped: BusValue {
    if case .variant(let value) = self { value.unwrapped } else { self }
  }

  /// The D-Bus signature of this value.
  public var signature: String {
    switch self {
    case .byte: "y"
    case .bool: "b"
    case .int16: "n"
    case .uint16: "q"
    case .int32: "i"
    case .uint32: "u"
    case .int64: "x"
    case .uint64: "t"
    case .double: "d"
    case .string: "s"
    case .objectPath: "o"
    case .signature: "g"
    case .descriptor: "h"
    case .array(let element, _): "a" + element
    case .entry(let key, let value): "{" + key.signature + value.signature + "}"
    case .structure(let members): "(" + members.map(\.signature).joined() + ")"
    case .variant: "v"
    }
  }
}

/// A file descriptor that came over the bus: duplicated, close-on-exec, closed with the last reference.
public final class BusDescriptor: Sendable, Hashable {
  private let state: MutexedDescriptor

  /// Takes over an open descriptor.
  public init(_ descriptor: consuming OwnedDescriptor) {
    state = MutexedDescriptor(descriptor.release())
  }

  deinit { close() }

  /// Closes it now; does nothing the second time.
  public func close() {
    if let number = state.take() { _ = CLinux.close(number) }
  }

  /// Hands it on to an owner of its own; `nil` when it was handed on or closed before.
  public func take() -> OwnedDescriptor? {
    guard let number = state.take() else { return nil }
    return OwnedDescriptor(owning: number)
  }

  /// Whether it is still open and here.
  public var isOpen: Bool { state.isHeld }

  /// Lends the number; it is not closed meanwhile. `nil` when it was handed on or closed before.
  func withNumber<Value>(_ body: (Int32) -> Value) -> Value? { state.with(body) }

  /// The same object; two descriptors of one open file are not the same.
  public static func == (a: BusDescriptor, b: BusDescriptor) -> Bool { a === b }
  /// By identity, as `==`.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
