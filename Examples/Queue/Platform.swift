// SPDX-License-Identifier: Apache-2.0
// The C library, for all files of the module: with the static Linux SDK it is another one.
#if canImport(Musl)
  @_exported import Musl
#else
  @_exported import Glibc
#endif
