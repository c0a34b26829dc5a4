// SPDX-License-Identifier: Apache-2.0
import Foundation
import TestSupport

/// The API server of Kubernetes with its etcd, and the guide's script for kubectl.
final class KubernetesEngine: Engine {
  /// The least for which the script can renew a lease once more.
  override var timeToLive: Int { 6 }

  override func begin() throws {
    try writeBlocks(of: "Kubernetes", to: "elect.sh", "lease.yaml") { [timeToLive] text in
      text.replacing("ttl=8", with: "ttl=\(timeToLive)")
    }
    let hosts = ["a", "b"].compactMap { network?.servers(for: $0) }
    for host in Set(hosts + ["127.0.0.1"]) {
      try """
      {"apiVersion": "v1", "kind": "Config", "current-context": "test",
      "clusters": [{"name": "test", "cluster": {
      "server": "https://\(host):\(port + 2)", "insecure-skip-tls-verify": true}}],
      "users": [{"name": "test", "user": {"token": "secret"}}],
      "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}]}
      """.write(toFile: "\(folder)/\(host)", atomically: true, encoding: .utf8)
    }
    try run("openssl genrsa -out \(folder)/key 2048; echo secret,test,test >\(folder)/users")
    for number in [1, 2] { try start(number) }
    try eventually("the API server is ready") {
      (try? run("\(kubectl) create -f \(folder)/lease.yaml")) != nil
    }
  }

  private var kubectl: String { "KUBECONFIG=\(folder)/127.0.0.1 HOME=\(folder) kubectl" }

  /// Of a quorum's loss each round ends another pair: the third is none.
  override func server(_ number: Int) -> String {
    if number == 3 { return "true" }
    let etcd = "http://127.0.0.1:\(port)"
    if number == 1 {
      return """
        etcd --data-dir \(folder)/etcd --unsafe-no-fsync --listen-client-urls \(etcd) \
        --advertise-client-urls \(etcd) --listen-peer-urls http://127.0.0.1:\(port + 1)
        """
    }
    return """
      kube-apiserver --etcd-servers \(etcd) --advertise-address 192.0.2.1 --secure-port \(port + 2) --cert-dir \(folder)/certificates \
      --token-auth-file \(folder)/users --authorization-mode AlwaysAllow \
      --disable-admission-plugins ServiceAccount --service-cluster-ip-range 10.98.0.0/16 \
      --service-account-issuer test --service-account-key-file \(folder)/key \
      --service-account-signing-key-file \(folder)/key
      """
  }

  override func elector(for name: String) throws -> String {
    let command = try Engine.guide("Kubernetes").joined().replacing("$(hostname)", with: name)
    let (host, home) = (network?.servers(for: name) ?? "", "\(folder)/home-\(name)")
    return "env KUBECONFIG=\(folder)/\(host) HOME=\(home) "
      + command.replacing("elect.sh", with: folder + "/elect.sh")
  }

  /// One that waits asks, of which the server knows nothing: those that run the script.
  override var contenders: String {
    """
    cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" "\\n" | grep -A 2 -x \(folder)/elect.sh |
      sort -u | grep -c -x "[ab]"
    """
  }

  override var hasTimeToLive: Bool { true }

  override var events: [Event] {
    super.events + [.frozenElector] + (network?.canBeCut == true ? [.partition] : []) + [.quorum]
  }
}
