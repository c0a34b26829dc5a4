// SPDX-License-Identifier: Apache-2.0
// The C library, for all files of the module: with the static Linux SDK it is another one.
#if canImport(Musl)
  @_exported import Musl
  /// What pthread_create(3) puts the new thread into: a pointer here, a number there.
  typealias CreatedThread = pthread_t?
#else
  @_exported import Glibc
  typealias CreatedThread = pthread_t
#endif
