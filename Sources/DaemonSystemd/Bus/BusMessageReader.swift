import CLinux

/// Turns the body of a message into values; whatever is in it, the worst outcome is an error.
///
/// Used only while sd-bus lends the message, within a callback.
struct BusMessageReader {
  let library: BusLibrary
  /// Lent by sd-bus for the time of the callback in which the reader is used.
  let message: OpaquePointer

  func readAll() throws(BusError) -> [BusValue] {
    var values: [BusValue] = []
    while let value = try readNext() { values.append(value) }
    return values
  }

  /// The next value of the container that is being read, `nil` at its end.
  private func readNext() throws(BusError) -> BusValue? {
    var type: CChar = 0
    var contents: UnsafePointer<CChar>?
    let result = library.call(\.bus_message_peek_type) { $0(message, &type, &contents) }
    try check(result)
    guard result > 0 else { return nil }
    let code = UInt8(bitPattern: type)
    // `contents` is the message's own memory, valid as long as the message.
    return switch Unicode.Scalar(code) {
    case "a": try array(contents)
    case "r": .structure(try inside(type, contents))
    case "e": try entry(type, contents)
    case "v": try variant(type, contents)
    default: try basic(code)
    }
  }

  private func inside(_ type: CChar, _ contents: UnsafePointer<CChar>?) throws(BusError)
    -> [BusValue]
  {
    try check(library.call(\.bus_message_enter_container) { $0(message, type, contents) })
    let values = try readAll()
    try check(library.call(\.bus_message_exit_container) { $0(message) })
    return values
  }

  private func array(_ contents: UnsafePointer<CChar>?) throws(BusError) -> BusValue {
    let element = contents.map { String(cString: $0) } ?? ""
    return .array(of: element, try inside(CChar(bitPattern: UInt8(ascii: "a")), contents))
  }

  private func entry(_ type: CChar, _ contents: UnsafePointer<CChar>?) throws(BusError) -> BusValue
  {
    let values = try inside(type, contents)
    guard values.count == 2 else { throw malformed }
    return .entry(values[0], values[1])
  }

  private func variant(_ type: CChar, _ contents: UnsafePointer<CChar>?) throws(BusError)
    -> BusValue
  {
    let values = try inside(type, contents)
    guard values.count == 1 else { throw malformed }
    return .variant(values[0])
  }

  private func basic(_ code: UInt8) throws(BusError) -> BusValue {
    switch Unicode.Scalar(code) {
    case "y": .byte(try number(code))
    // A boolean is four bytes wide in sd-bus.
    case "b": .bool(try number(code, as: Int32.self) != 0)
    case "n": .int16(try number(code))
    case "q": .uint16(try number(code))
    case "i": .int32(try number(code))
    case "u": .uint32(try number(code))
    case "x": .int64(try number(code))
    case "t": .uint64(try number(code))
    case "d": .double(Double(bitPattern: try number(code)))
    case "s": .string(try string(code))
    case "o": .objectPath(try string(code))
    case "g": .signature(try string(code))
    case "h": .descriptor(try descriptor(code))
    default: throw malformed
    }
  }

  private func number<Number: FixedWidthInteger>(
    _ code: UInt8, as type: Number.Type = Number.self
  ) throws(BusError) -> Number {
    var value: Number = 0
    // `value` has exactly the size that sd-bus writes for this type.
    try check(
      library.call(\.bus_message_read_basic) { $0(message, CChar(bitPattern: code), &value) })
    return value
  }

  private func string(_ code: UInt8) throws(BusError) -> String {
    var text: UnsafePointer<CChar>?
    // sd-bus has checked that it is UTF-8 and ends; it points into the message.
    try check(
      library.call(\.bus_message_read_basic) { $0(message, CChar(bitPattern: code), &text) })
    guard let text else { throw malformed }
    return String(cString: text)
  }

  /// The one in the message is closed with the message: keep a duplicate.
  private func descriptor(_ code: UInt8) throws(BusError) -> BusDescriptor {
    let number: Int32 = try number(code)
    let copy = clinux_duplicate(number, 3)
    guard copy >= 0 else {
      throw .system("duplicate a file descriptor from the bus", errno: clinux_errno())
    }
    return BusDescriptor(OwnedDescriptor(owning: copy))
  }

  private func check(_ result: Int32) throws(BusError) {
    if result < 0 { throw malformed }
  }

  private var malformed: BusError {
    .malformedReply("A message of the bus can't be read: its body is not what its signature says.")
  }
}
