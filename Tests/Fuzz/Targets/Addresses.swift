// SPDX-License-Identifier: Apache-2.0
@testable import DaemonSystemd

extension FuzzTarget {
  /// `NOTIFY_SOCKET`: an address that is taken is what stands there, and fits into a socket's address.
  static let addresses = FuzzTarget(name: "addresses") { input in
    let text = input.allText()
    do throws(SystemdError) {
      let address = try NotifyAddress(text)
      let taken = (address.isAbstract ? "@" : "") + address.name
      require(address.isAbstract || address.name.utf8.first == UInt8(ascii: "/"), "\(taken)")
      require((1...107).contains(address.name.utf8.count), "\(taken)")
      require(taken.utf8.elementsEqual(text.utf8) && !taken.utf8.contains(0), "\(taken) of \(text)")
      require((try? NotifySocket(address: text)) != nil, "\(text) is refused by the socket alone")
    } catch {
      guard case .malformedVariable("NOTIFY_SOCKET", text, _) = error else {
        return require(false, "is no address's problem: \(error)")
      }
      requireSentence(error)
    }
  }
}
