import CLinux

/// The way to the journal's native socket.
///
/// It is not connected: each datagram names the path, so a journal that was stopped and started is found
/// again. Any thread may send; one call of the kernel is one entry.
final class JournalSocket: Sendable {
  enum Outcome: Equatable {
    case taken
    /// The journal does not keep up, and the caller would have to wait.
    case full
    /// errno: no journal there, or it can't have this entry.
    case failed(Int32)
  }

  private let path: String
  /// Nil when the process has no descriptor to spare.
  private let descriptor: Int32?

  init(path: String, bufferSize: Int32 = 8 << 20) {
    self.path = path
    let number = clinux_journal_socket(bufferSize)
    descriptor = number >= 0 ? number : nil
  }

  deinit { if let descriptor { close(descriptor) } }

  /// Whether somebody listens there now.
  var answers: Bool {
    descriptor != nil && clinux_journal_answers(path, path.utf8.count)
  }

  func send(_ bytes: [UInt8], waiting: Bool) -> Outcome {
    guard let descriptor else { return .failed(EMFILE) }
    let failure = clinux_journal_send(
      descriptor, path, path.utf8.count, bytes, bytes.count, -1, waiting)
    switch failure {
    case 0: return .taken
    // EAGAIN: perhaps only our own buffer is full, and a datagram without payload still fits.
    case EMSGSIZE, ENOBUFS, EAGAIN:
      return sendMemoryFile(bytes, on: descriptor, waiting: waiting)
    default: return .failed(failure)
    }
  }

  private func sendMemoryFile(_ bytes: [UInt8], on descriptor: Int32, waiting: Bool) -> Outcome {
    let file = clinux_sealed_memfd("journal-entry", bytes, bytes.count)
    guard file >= 0 else { return .failed(clinux_errno()) }
    defer { close(file) }
    let failure = clinux_journal_send(
      descriptor, path, path.utf8.count, nil, 0, file, waiting)
    switch failure {
    case 0: return .taken
    case EAGAIN, ENOBUFS: return .full
    default: return .failed(failure)
    }
  }
}
