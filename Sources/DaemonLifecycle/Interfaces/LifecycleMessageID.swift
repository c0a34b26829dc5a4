// SPDX-License-Identifier: Apache-2.0
/// The kinds of entries that the lifecycle writes to the journal: `journalctl MESSAGE_ID=…`, besides those of
/// `LifecycleTransition.Row`. They never change.
enum LifecycleMessageID {
  static let problem: StaticString = "1a2a6468bf014f33adee1696a91e7114"
  /// A request that failed and changed nothing, such as a reload.
  static let rejection: StaticString = "1d77c0d4d7e94a9489defa2ba0a76a24"
  static let statusNote: StaticString = "396132203e9c4391a79d47e32401418c"
  static let draining: StaticString = "52cd9a03f8b44cc2bc3c800f95d7f13a"
  /// The termination begins.
  static let stopping: StaticString = "e4b7e8363c7c45e49a99b37ae5a42e3d"
}
