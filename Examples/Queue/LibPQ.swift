// SPDX-License-Identifier: Apache-2.0
/// The functions of libpq, PostgreSQL's client library, which is opened when the daemon starts: whoever builds this package
/// needs neither the library nor its headers.
///
/// Each type is the declaration in `libpq-fe.h`. One thread at a time may use a connection.
struct LibPQ: Sendable {
  typealias Text = UnsafePointer<CChar>
  /// `PGconn *`, `PGresult *`, and what else only libpq looks into.
  typealias Pointer = OpaquePointer

  let parse: @convention(c) @Sendable (Text, Pointer?) -> Pointer? = function("PQconninfoParse")
  let freeParsed: @convention(c) @Sendable (Pointer?) -> Void = function("PQconninfoFree")
  let connectStart: @convention(c) @Sendable (Text) -> Pointer? = function("PQconnectStart")
  let connectPoll: @convention(c) @Sendable (Pointer) -> Int32 = function("PQconnectPoll")
  let finish: @convention(c) @Sendable (Pointer) -> Void = function("PQfinish")
  let status: @convention(c) @Sendable (Pointer) -> Int32 = function("PQstatus")
  let socket: @convention(c) @Sendable (Pointer) -> Int32 = function("PQsocket")
  let errorMessage: @convention(c) @Sendable (Pointer) -> Text = function("PQerrorMessage")
  let sendQuery:
    @convention(c) @Sendable (
      Pointer, Text, Int32, Pointer?, UnsafePointer<Text?>, Pointer?, Pointer?, Int32
    ) -> Int32 = function("PQsendQueryParams")
  let consumeInput: @convention(c) @Sendable (Pointer) -> Int32 = function("PQconsumeInput")
  let isBusy: @convention(c) @Sendable (Pointer) -> Int32 = function("PQisBusy")
  let getResult: @convention(c) @Sendable (Pointer) -> Pointer? = function("PQgetResult")
  let resultStatus: @convention(c) @Sendable (Pointer) -> Int32 = function("PQresultStatus")
  let rows: @convention(c) @Sendable (Pointer) -> Int32 = function("PQntuples")
  let columns: @convention(c) @Sendable (Pointer) -> Int32 = function("PQnfields")
  let value: @convention(c) @Sendable (Pointer, Int32, Int32) -> Text = function("PQgetvalue")
  let clear: @convention(c) @Sendable (Pointer) -> Void = function("PQclear")

  private init() {}

  static func opened() throws(Missing) -> LibPQ {
    guard library != nil else { throw Missing() }
    return LibPQ()
  }

  /// Safe, as nothing changes it; `nil` when it is not installed.
  nonisolated(unsafe) private static let library = dlopen("libpq.so.5", RTLD_NOW)

  /// Safe for a type that is the function's. Every libpq.so.5 has all of them.
  private static func function<Function>(_ name: String) -> Function {
    unsafeBitCast(dlsym(library, name)!, to: Function.self)
  }

  struct Missing: Error, CustomStringConvertible {
    let description = "libpq.so.5 is missing: install libpq5."
  }
}
