// SPDX-License-Identifier: Apache-2.0
import CLinux

/// pipe2(2) with O_CLOEXEC, which Glibc's module lacks. In a file of its own: where `CLinux` is imported beside `Glibc`,
/// an optimized build no longer finds some names of the C library.
func openPipe(_ ends: inout [Int32]) -> Bool { clinux_pipe(&ends) == 0 }
