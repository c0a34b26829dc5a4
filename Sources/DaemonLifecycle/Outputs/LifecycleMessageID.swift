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
    switch transition {
    case .launch: MessageID(known: "7661d9a0b7f44df78cf89eca95be801a")
    case .foreground: MessageID(known: "7a23e78e7d1e43de9af80e749ceb84c1")
    case .background: MessageID(known: "b9ab8dc464b24c518935721cb1171b33")
    case .suspend: MessageID(known: "f556588cc7c245f892b8c54198eab283")
    case .resume: MessageID(known: "388fcb70bd6e41f7bee3cf21bfab7bf2")
    case .errand(let errand): MessageID(known: errand.row.messageID)
    case .pressure: MessageID(known: "da8a1d4827a24e28ad4c8e19906c1dc3")
    case .termination: MessageID(known: "5abc37cbba064215b4294a5299559cdc")
    case .post, .catchUp: nil
    }
  }
}
