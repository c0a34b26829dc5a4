// SPDX-License-Identifier: Apache-2.0
import DaemonSystemd

/// The kinds of entries that the lifecycle writes to the journal: `journalctl MESSAGE_ID=…`. They never change.
enum LifecycleMessageID {
  static let problem = MessageID(known: "1a2a6468bf014f33adee1696a91e7114")
  /// A request that failed and changed nothing, such as a reload.
  static let rejection = MessageID(known: "1d77c0d4d7e94a9489defa2ba0a76a24")
  static let statusNote = MessageID(known: "396132203e9c4391a79d47e32401418c")
  static let draining = MessageID(known: "52cd9a03f8b44cc2bc3c800f95d7f13a")
  /// The termination begins; its end is `of(.termination)`.
  static let stopping = MessageID(known: "e4b7e8363c7c45e49a99b37ae5a42e3d")

  static func of(_ transition: LifecycleTransition) -> MessageID? {
    transition.row.messageID.map { MessageID(known: $0) }
  }
}
