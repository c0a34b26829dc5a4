import DaemonSystemd
import Glibc

/// An HTTP server on 127.0.0.1 that answers with the request's Authorization header.
func mirror(port: UInt16) throws -> Never {
  signal(SIGPIPE, SIG_IGN)
  let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_port = port.bigEndian
  address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
  let bound = withUnsafePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      bind(listener, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
    }
  }
  guard bound == 0, listen(listener, 16) == 0 else {
    say("can't listen on port \(port): \(errno)")
    exit(71)
  }
  try NotifySocket(address: ServiceEnvironment.current.notifySocket).send([.ready])
  while true {
    let client = accept(listener, nil, nil)
    if client < 0 { continue }
    var request = ""
    var buffer = [UInt8](repeating: 0, count: 4096)
    while !request.contains("\r\n\r\n"), case let count = read(client, &buffer, 4096), count > 0 {
      request += String(decoding: buffer.prefix(count), as: UTF8.self)
    }
    let header = request.split(separator: "\r\n").first { $0.hasPrefix("Authorization: ") }
    let body = (header ?? "no Authorization") + "\n"
    var answer =
      "HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\nConnection: close\r\n\r\n" + body
    answer.withUTF8 { _ = write(client, $0.baseAddress, $0.count) }
    close(client)
  }
}
