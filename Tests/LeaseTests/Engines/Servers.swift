// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport

/// Three nodes of etcd.
final class EtcdEngine: Engine {
  private func url(_ host: String, _ number: Int, _ offset: Int = 0) -> String {
    "http://\(host):\(port + number * 2 + offset)"
  }

  private func endpoints(_ host: String) -> String {
    (1...3).map { url(host, $0) }.joined(separator: ",")
  }

  override func begin() throws {
    for number in 1...3 { try start(number) }
    try eventually("etcd has a leader") { (try? run(isHealthy)) != nil }
  }

  override func server(_ number: Int) -> String {
    let peer = url("127.0.0.1", number, 1)
    let all = (1...3).map { "n\($0)=\(url("127.0.0.1", $0, 1))" }.joined(separator: ",")
    // No power fails here, and a busy disk would be what is measured.
    return """
      etcd --name n\(number) --data-dir \(folder)/n\(number) --unsafe-no-fsync \
      --listen-client-urls \(url("0.0.0.0", number)) \
      --advertise-client-urls \(url("127.0.0.1", number)) \
      --listen-peer-urls \(peer) --initial-advertise-peer-urls \(peer) --initial-cluster \(all)
      """
  }

  private var ctl: String { "etcdctl --endpoints \(endpoints("127.0.0.1")) --command-timeout=2s" }
  private var isHealthy: String { "\(ctl) endpoint health >/dev/null 2>&1" }

  override func elector(for name: String) throws -> String {
    let host = network?.servers(for: name) ?? ""
    return try Engine.guide("etcd").joined(separator: " ").split(separator: " ").map { word in
      if word.hasPrefix("--endpoints=") { return "--endpoints=\(endpoints(host))" }
      if word.hasPrefix("--ttl=") { return "--ttl=\(timeToLive)" }
      return word == "\\" ? "" : String(word)
    }.joined(separator: " ")
  }

  override var options: String { "--token-key create_revision " }

  override var contenders: String {
    "\(isHealthy) && \(ctl) get --prefix --keys-only ledger | grep -c ledger"
  }

  override var hasTimeToLive: Bool { true }

  override var events: [Event] {
    super.events + [.frozenElector, .place] + (network?.canBeCut == true ? [.partition] : [])
      + [.node, .quorum]
  }
}

/// A PostgreSQL, with the guide's settings.
final class PostgresEngine: Engine {
  /// The folder of the newest.
  static let programs: String =
    Folder.names("/usr/lib/postgresql").last.map { "/usr/lib/postgresql/\($0)/bin" } ?? "/none"

  /// It does not run as root.
  private var user: String {
    getuid() == 0 ? "setpriv --reuid=65534 --regid=65534 --clear-groups " : ""
  }

  override func begin() throws {
    try run(
      """
      \(user)\(Self.programs)/initdb --no-sync --no-locale --encoding=UTF8 --auth=trust \
      --username=ledger --pgdata \(folder)/data
      echo host all all 10.99.0.0/16 trust >> \(folder)/data/pg_hba.conf
      """)
    try start(1)
    try eventually("PostgreSQL is ready") { (try? sql("select 1", "postgres")) != nil }
    try sql("create database ledger", "postgres")
    try sql("create sequence ledger_fence")
    try writeBlocks(of: "PostgreSQL", to: "elect.sql")
  }

  @discardableResult private func sql(_ text: String, _ database: String = "ledger") throws
    -> [String]
  { try run(psql(text, database)) }

  private func psql(_ text: String, _ database: String = "ledger") -> String {
    "psql -XAtq -h 127.0.0.1 -p \(port) -U ledger -d \(database) -c \"\(text)\""
  }

  override func server(_ number: Int) -> String {
    let settings = [
      "port=\(port)", "listen_addresses=*", "unix_socket_directories=", "fsync=off",
      "shared_buffers=16MB", "tcp_keepalives_idle=1", "tcp_keepalives_interval=1",
      "tcp_keepalives_count=3", "tcp_user_timeout=3000",
    ]
    return user + "\(Self.programs)/postgres -D \(folder)/data "
      + settings.map { "-c \($0)" }.joined(separator: " ")
  }

  override func elector(for name: String) throws -> String {
    try Engine.guide("PostgreSQL").joined(separator: "\n")
      .replacing("elect.sql", with: folder + "/elect.sql")
      .replacing("host=db", with: "host=\(network?.servers(for: name) ?? "") port=\(port)")
  }

  override var contenders: String {
    psql("select count(*) from pg_locks where objid = 7433")
  }

  override var events: [Event] {
    super.events + (network?.canBeCut == true ? [.partition] : []) + [.crash]
  }
}
