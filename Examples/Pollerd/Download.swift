import Foundation
import Synchronization

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The beginning of what a server sends, and no more: `URLSession.data(for:)` would keep all of it in memory, however
/// much comes.
final class Download: NSObject, URLSessionDataDelegate, Sendable {
  struct Answer: Sendable {
    var status = 0
    var bytes: [UInt8] = []
  }

  private struct Transfer {
    let limit: Int
    var bytes: [UInt8] = []
    let continuation: CheckedContinuation<Answer, any Error>
  }

  /// Those under way, by the number of their task; each is resumed by whoever takes it out.
  private let transfers = Mutex<[Int: Transfer]>([:])

  private static let shared = Download()
  private static let session = URLSession(
    configuration: .ephemeral, delegate: shared, delegateQueue: AtOnce())

  /// Calls the delegate on the thread that has received the data. On any other queue the data would wait, and pile up as
  /// fast as a server sends. Has no state of its own.
  private final class AtOnce: OperationQueue, @unchecked Sendable {
    override func addOperation(_ block: @escaping @Sendable () -> Void) { block() }
  }

  /// The status and at most `limit` bytes of the body; the connection is closed when there are more.
  static func beginning(of request: URLRequest, limit: Int) async throws -> Answer {
    let task = session.dataTask(with: request)
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        shared.transfers.withLock {
          $0[task.taskIdentifier] = Transfer(limit: limit, continuation: continuation)
        }
        task.resume()
        // Cancelled before it was there to be ended.
        if Task.isCancelled { shared.end(task, with: .failure(CancellationError())) }
      }
    } onCancel: {
      shared.end(task, with: .failure(CancellationError()))
    }
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    let whole = transfers.withLock { transfers -> [UInt8]? in
      guard var transfer = transfers.removeValue(forKey: dataTask.taskIdentifier) else {
        return nil
      }
      transfer.bytes += data.prefix(transfer.limit - transfer.bytes.count)
      transfers[dataTask.taskIdentifier] = transfer
      return transfer.bytes.count == transfer.limit ? transfer.bytes : nil
    }
    if let whole { end(dataTask, with: .success(whole)) }
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
  ) {
    end(task, with: error.map { .failure($0) } ?? .success(nil))
  }

  /// Ends the wait for this one, with these bytes or what there is so far.
  private func end(_ task: URLSessionTask, with result: Result<[UInt8]?, any Error>) {
    guard let transfer = transfers.withLock({ $0.removeValue(forKey: task.taskIdentifier) })
    else { return }
    // Elsewhere: it waits for the thread that may have called this.
    DispatchQueue.global().async { task.cancel() }
    let status = (task.response as? HTTPURLResponse)?.statusCode ?? 0
    transfer.continuation.resume(
      with: result.map { Answer(status: status, bytes: $0 ?? transfer.bytes) })
  }
}
