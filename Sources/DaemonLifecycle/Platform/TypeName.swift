// SPDX-License-Identifier: Apache-2.0
extension String {
  /// The name of a type, without those that it is nested in: the text of `String(describing:)`, which first searches all
  /// conformances of the program for a description that the type might have, and takes ten times as long as the rest
  /// of a stop. An interpolation knows a type from what is of that type.
  init(nameOf type: any Any.Type) { self = "\(type)" }
}
