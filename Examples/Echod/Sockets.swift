// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The system calls that the daemon makes on sockets, with sentences for errors.
enum Sockets {
  #if canImport(Musl)
    static let (stream, closeOnExec, nonBlocking) = (SOCK_STREAM, SOCK_CLOEXEC, SOCK_NONBLOCK)
  #else
    static let stream = Int32(SOCK_STREAM.rawValue)
    static let closeOnExec = Int32(SOCK_CLOEXEC.rawValue)
    static let nonBlocking = Int32(SOCK_NONBLOCK.rawValue)
  #endif

  /// Listens at `127.0.0.1:7777`, `[::1]:7777` or a path.
  static func listener(at address: String) throws(SystemError) -> Int32 {
    let purpose = "listen at \(address)"
    let isPath = address.hasPrefix("/")
    let socket = isPath ? try bindPath(address, purpose) : try bindHost(address, purpose)
    guard listen(socket.rawValue, SOMAXCONN) == 0 else { throw SystemError(purpose) }
    makeReady(socket.rawValue)
    return socket.release()
  }

  private static func bindPath(
    _ path: String, _ purpose: String
  ) throws(SystemError) -> OwnedDescriptor {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let fits = withUnsafeMutableBytes(of: &address.sun_path) { space in
      guard path.utf8.count < space.count else { return false }
      space.copyBytes(from: path.utf8)
      return true
    }
    guard fits else { throw SystemError(purpose, code: ENAMETOOLONG) }
    let socket = try make(AF_UNIX, purpose)
    let number = socket.rawValue
    let size = socklen_t(MemoryLayout<sockaddr_un>.size)
    let isBound = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        if bind(number, address, size) == 0 { return true }
        // A socket that a killed run has left refuses, and is removed; one with a listener, and any other file, stays.
        guard errno == EADDRINUSE else { return false }
        guard isLeftOver(path, address, size), unlink(path) == 0 else {
          errno = EADDRINUSE
          return false
        }
        return bind(number, address, size) == 0
      }
    }
    guard isBound else { throw SystemError(purpose) }
    return socket
  }

  /// Whether a socket is there without a listener.
  private static func isLeftOver(
    _ path: String, _ address: UnsafePointer<sockaddr>, _ size: socklen_t
  ) -> Bool {
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else { return false }
    let client = socket(AF_UNIX, stream | closeOnExec | nonBlocking, 0)
    guard client >= 0 else { return false }
    defer { close(client) }
    return connect(client, address, size) != 0 && errno == ECONNREFUSED
  }

  private static func bindHost(
    _ address: String, _ purpose: String
  ) throws(SystemError) -> OwnedDescriptor {
    guard let colon = address.lastIndex(of: ":") else {
      throw SystemError(purpose + ", which is no HOST:PORT", code: EINVAL)
    }
    var host = address[..<colon]
    if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
    var hints = addrinfo()
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE
    hints.ai_socktype = stream
    var found: UnsafeMutablePointer<addrinfo>?
    let port = String(address[address.index(after: colon)...])
    // getaddrinfo takes 65537 for 1.
    guard UInt16(port) != nil, getaddrinfo(String(host), port, &hints, &found) == 0,
      let info = found
    else {
      throw SystemError(purpose + ", which is no HOST:PORT of numbers", code: EINVAL)
    }
    defer { freeaddrinfo(found) }
    let socket = try make(info.pointee.ai_family, purpose)
    var on: Int32 = 1
    setsockopt(socket.rawValue, SOL_SOCKET, SO_REUSEADDR, &on, 4)
    guard bind(socket.rawValue, info.pointee.ai_addr, info.pointee.ai_addrlen) == 0 else {
      throw SystemError(purpose)
    }
    return socket
  }

  private static func make(
    _ family: Int32, _ purpose: String
  ) throws(SystemError) -> OwnedDescriptor {
    let number = socket(family, stream | closeOnExec, 0)
    guard number >= 0 else { throw SystemError(purpose) }
    return OwnedDescriptor(owning: number)
  }

  /// Never waits, and no child has it.
  static func makeReady(_ socket: Int32) {
    _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
    _ = fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK)
  }

  /// The next client, ready for use; `nil` when none waits. Throws what should not go on at once, such as EMFILE.
  static func nextClient(of listener: Int32) throws(SystemError) -> Int32? {
    while true {
      let socket = accept(listener, nil, nil)
      if socket >= 0 {
        makeReady(socket)
        // Refused on Unix sockets, where neither is needed. Answers must not wait for more, and a dead peer must be
        // noticed.
        var on: Int32 = 1
        setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &on, 4)
        setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, 4)
        return socket
      }
      switch errno {
      case EAGAIN: return nil
      case EINTR, ECONNABORTED: continue
      default: throw SystemError("accept a connection")
      }
    }
  }

  /// The number that the next descriptor gets, which is the lowest that is free; `nil` when there is none.
  static func nextNumber(besides socket: Int32) -> Int32? {
    let number = fcntl(socket, F_DUPFD_CLOEXEC, 0)
    guard number >= 0 else { return nil }
    close(number)
    return number
  }

  /// Where a socket listens, for the log: `127.0.0.1:7777`, a path.
  static func address(of socket: Int32) -> String {
    var storage = sockaddr_storage()
    var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutableBytes(of: &storage) { bytes in
      let address = bytes.assumingMemoryBound(to: sockaddr.self).baseAddress!
      guard getsockname(socket, address, &size) == 0 else { return "?" }
      if address.pointee.sa_family == sa_family_t(AF_UNIX) {
        let path = bytes.dropFirst(MemoryLayout<sa_family_t>.size)
        return String(decoding: path.prefix { $0 != 0 }, as: UTF8.self)
      }
      var (host, port) = ([CChar](repeating: 0, count: 64), [CChar](repeating: 0, count: 16))
      getnameinfo(address, size, &host, 64, &port, 16, NI_NUMERICHOST | NI_NUMERICSERV)
      let (name, number) = (text(host), text(port))
      return name.contains(":") ? "[\(name)]:\(number)" : "\(name):\(number)"
    }
  }

  private static func text(_ characters: [CChar]) -> String {
    String(
      decoding: characters.prefix { $0 != 0 }.map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self)
  }
}

/// A system call failed: `Could not listen at 127.0.0.1:80: Permission denied.`
struct SystemError: Error, CustomStringConvertible {
  let purpose: String
  let code: Int32

  /// The code is that of the call that has just failed.
  init(_ purpose: String, code: Int32 = errno) {
    self.purpose = purpose
    self.code = code
  }

  var description: String { "Could not \(purpose): \(String(cString: strerror(code)))." }
}

/// Logs a line for operators. Never waits: without room it is lost.
func say(_ sentence: String, _ priority: JournalPriority = .info) {
  Journal.writeLine(sentence, priority)
}
