// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Connections that say nothing, to a server on this machine, and what becomes of them:
///
///     crowd PORT CONNECTIONS COMMAND...
///
/// Runs the shell command when the kernel has taken all connections, whether or not the server has accepted them. Then it
/// ends its side of each, and waits until the server has ended the other side. The exit status is 0 if the command has
/// succeeded and all connections have ended.
func crowd(port: UInt16, connections: Int, _ command: String) -> Never {
  allowManyDescriptors()
  let sockets = (0..<connections).map { number in
    guard let socket = connected(port) else {
      say("crowd: connection \(number): errno \(errno)")
      exit(1)
    }
    return socket
  }
  say("crowd: \(connections) connections")
  let status = system(command)
  for socket in sockets { shutdown(socket, Int32(SHUT_WR)) }
  let left = sockets.count { !hasEnded($0, by: monotonicSeconds() + 20) }
  say("crowd: the command's status is \(status), and \(left) connections have not ended")
  exit(status == 0 && left == 0 ? 0 : 1)
}

private func allowManyDescriptors() {
  var limit = rlimit()
  getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  limit.rlim_cur = limit.rlim_max
  setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
}

private func connected(_ port: UInt16) -> Int32? {
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_port = port.bigEndian
  address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
  let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
  let result = withUnsafePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
    }
  }
  return socket >= 0 && result == 0 ? socket : nil
}

/// A reset is no end: it could have taken answers.
private func hasEnded(_ socket: Int32, by deadline: Double) -> Bool {
  var ready = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
  let milliseconds = Int32(max(0, deadline - monotonicSeconds()) * 1000)
  guard poll(&ready, 1, milliseconds) > 0 else { return false }
  var byte: UInt8 = 0
  return recv(socket, &byte, 1, 0) == 0
}
