import CLinux

/// Appends values to a message that is being made.
struct BusMessageWriter {
  let library: BusLibrary
  /// A message that its maker holds a reference to while this value is used.
  let message: OpaquePointer

  func append(_ values: [BusValue]) throws(BusError) {
    for value in values { try append(value) }
  }

  private func append(_ value: BusValue) throws(BusError) {
    switch value {
    case .byte(let number): try basic("y", number)
    case .bool(let flag): try basic("b", Int32(flag ? 1 : 0))
    case .int16(let number): try basic("n", number)
    case .uint16(let number): try basic("q", number)
    case .int32(let number): try basic("i", number)
    case .uint32(let number): try basic("u", number)
    case .int64(let number): try basic("x", number)
    case .uint64(let number): try basic("t", number)
    case .double(let number): try basic("d", number.bitPattern)
    case .string(let text): try string("s", text)
    case .objectPath(let text): try string("o", text)
    case .signature(let text): try string("g", text)
    case .descriptor(let descriptor): try append(descriptor)
    case .array(let element, let values): try container("a", element, values)
    case .structure(let values): try container("r", contents(values), values)
    case .entry(let key, let value): try container("e", contents([key, value]), [key, value])
    case .variant(let value): try container("v", value.signature, [value])
    }
  }

  private func contents(_ values: [BusValue]) -> String { values.map(\.signature).joined() }

  private func basic<Number: FixedWidthInteger>(
    _ type: Unicode.Scalar, _ number: Number
  ) throws(BusError) {
    var number = number
    try check(library.call(\.bus_message_append_basic) { $0(message, Self.code(type), &number) })
  }

  private func string(_ type: Unicode.Scalar, _ text: String) throws(BusError) {
    guard !text.utf8.contains(0) else {
      throw .invalidArgument("A string with a zero byte can't be sent over the bus.")
    }
    try check(
      text.withCString { text in
        library.call(\.bus_message_append_basic) { $0(message, Self.code(type), text) }
      })
  }

  /// sd-bus duplicates the descriptor.
  private func append(_ descriptor: BusDescriptor) throws(BusError) {
    let result = descriptor.withNumber { number in
      var number = number
      return library.call(\.bus_message_append_basic) { $0(message, Self.code("h"), &number) }
    }
    guard let result else {
      throw .invalidArgument("A file descriptor that was closed can't be sent over the bus.")
    }
    try check(result)
  }

  private func container(
    _ type: Unicode.Scalar, _ contents: String, _ values: [BusValue]
  ) throws(BusError) {
    try check(
      contents.withCString { contents in
        library.call(\.bus_message_open_container) { $0(message, Self.code(type), contents) }
      })
    try append(values)
    try check(library.call(\.bus_message_close_container) { $0(message) })
  }

  private func check(_ result: Int32) throws(BusError) {
    guard result < 0 else { return }
    throw .invalidArgument(
      "An argument can't be sent over the bus: \(String(cString: strerror(-result))).")
  }

  private static func code(_ type: Unicode.Scalar) -> CChar {
    CChar(truncatingIfNeeded: type.value)
  }
}
