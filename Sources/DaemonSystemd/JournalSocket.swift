// SPDX-License-Identifier: Apache-2.0
import CLinux

/// The connection to the journal's native socket.
///
/// The socket is not connected: each datagram names the path, so a restarted journal is found again. Any thread may
/// send; one system call sends one entry.
final class JournalSocket: Sendable {
  enum Outcome: Equatable {
    case taken
    /// The journal does not keep up, so the caller would have to wait.
    case full
    /// There is no journal, or it can't accept this entry.
    case failed
  }

  private let path: String
  /// The descriptor; `nil` when the process had none left.
  private let descriptor: Int32?

  init(path: String, bufferSize: Int32 = 8 << 20) {
    self.path = path
    let number = clinux_journal_socket(bufferSize)
    descriptor = number >= 0 ? number : nil
  }

  deinit { if let descriptor { close(descriptor) } }

  var answers: Bool {
    descriptor != nil && clinux_journal_answers(path, path.utf8.count)
  }

  func send(_ bytes: [UInt8], waiting: Bool) -> Outcome {
    guard let descriptor else { return .failed }
    let count = path.utf8.count
    var failure = clinux_journal_send(
      descriptor, path, count, bytes, bytes.count, -1, waiting)
    // EAGAIN: perhaps only this socket's buffer is full, and a datagram without payload still fits.
    if [EMSGSIZE, ENOBUFS, EAGAIN].contains(failure) {
      guard let file = try? OwnedDescriptor.memory(named: "journal-entry", bytes) else {
        return .failed
      }
      failure = clinux_journal_send(descriptor, path, count, nil, 0, file.rawValue, waiting)
    }
    return switch failure {
    case 0: .taken
    case EAGAIN, ENOBUFS: .full
    default: .failed
    }
  }
}
