// SPDX-License-Identifier: Apache-2.0
/// The name of an observer or closure in a report.
enum ObserverName: Sendable {
  /// The type of the observer, and its number among those of the same type.
  case type(any Any.Type, number: Int = 1)
  /// The name that the user gave.
  case given(String)
  case closure(file: StaticString, line: UInt)
  case foreground(file: StaticString, line: UInt)
  case task(file: StaticString, line: UInt)

  static func given(_ name: String?, orElse other: Self) -> Self {
    name.map { .given($0) } ?? other
  }
}

extension ObserverName: CustomStringConvertible {
  /// The name as text. It is rendered when a report is read, not when it is made, since naming a type takes half a
  /// microsecond.
  var description: String {
    switch self {
    case .type(let type, 1): String(nameOf: type)
    case .type(let type, let number): "\(type) \(number)"
    case .given(let name): name
    case .closure(let file, let line): "closure at \(file):\(line)"
    case .foreground(let file, let line): "foreground at \(file):\(line)"
    case .task(let file, let line): "task at \(file):\(line)"
    }
  }
}

extension String {
  /// The name of a type, without those that it is nested in: the text of `String(describing:)`, which first searches all
  /// conformances of the program for a description that the type might have, and takes ten times as long as the rest
  /// of a stop. An interpolation knows a type from what is of that type.
  init(nameOf type: any Any.Type) { self = "\(type)" }
}
