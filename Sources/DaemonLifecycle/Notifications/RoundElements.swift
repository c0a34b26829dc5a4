// SPDX-License-Identifier: Apache-2.0
extension AsyncSequence where Self: Sendable, Element: Sendable {
  /// Returns the elements until the round is ending: then the wait for the next one is cancelled, and the loop ends.
  ///
  /// An element that arrives at that moment is returned. An `AsyncStream` or an `AsyncThrowingStream` also returns its
  /// buffered elements, as long as the body may finish, but takes no new ones. Other sequences return nothing more.
  ///
  /// Many sequences, these two among them, end for good when a wait for an element is cancelled: create them within the
  /// round.
  ///
  /// - Returns: A sequence of the same elements and errors, which ends with the round.
  public func untilEnding(
    of round: WorkRound
  ) -> some AsyncSequence<Element, Failure> & Sendable {
    RoundElements(base: self, round: round)
  }
}

/// A sequence of another sequence's elements until a round is ending.
private struct RoundElements<Base: AsyncSequence & Sendable>: AsyncSequence, Sendable
where Base.Element: Sendable {
  let base: Base
  let round: WorkRound

  func makeAsyncIterator() -> Iterator {
    let isStream =
      base is AsyncStream<Base.Element> || base is AsyncThrowingStream<Base.Element, any Error>
    return Iterator(source: Source(base.makeAsyncIterator(), isStream: isStream, of: round))
  }

  /// Waits for each element in a separate task, which can be cancelled alone.
  struct Iterator: AsyncIteratorProtocol {
    let source: Source

    mutating func next(
      isolation _: isolated (any Actor)?
    ) async throws(Base.Failure) -> Base.Element? {
      let source = source
      let result = await source.round.resultUntilEnding { await source.next() }
      guard case .success(nil) = result, source.isStream, source.round.mayFinish, !Task.isCancelled
      else { return try result.get() }
      return try await source.buffered().get()
    }
  }

  /// Unchecked: the iterator is used by one task after another, since each is waited for before the next begins.
  final class Source: @unchecked Sendable {
    var iterator: Base.AsyncIterator
    /// Whether it returns what it has buffered to a task that is cancelled.
    let isStream: Bool
    let round: WorkRound

    init(_ iterator: Base.AsyncIterator, isStream: Bool, of round: WorkRound) {
      (self.iterator, self.isStream, self.round) = (iterator, isStream, round)
    }

    func next() async -> Result<Base.Element?, Base.Failure> {
      do throws(Base.Failure) { return .success(try await iterator.next(isolation: nil)) } catch {
        return .failure(error)
      }
    }

    /// Returns the next element that is there, and waits for none.
    func buffered() async -> Result<Base.Element?, Base.Failure> {
      let next = Task {
        withUnsafeCurrentTask { $0?.cancel() }
        return await self.next()
      }
      let result = await next.value
      if case .failure(is CancellationError) = result { return .success(nil) }
      return result
    }
  }
}
