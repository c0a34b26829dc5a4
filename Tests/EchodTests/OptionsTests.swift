// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import echod

@Suite struct OptionsTests {
  @Test func defaultsNeedNoArguments() throws {
    #expect(try Options(parsing: []) == Options())
  }

  @Test func bothFormsOfAnOption() throws {
    let options = try Options(parsing: ["--listen", "[::1]:80", "--config=/etc/a=b"])
    #expect(options.listen == "[::1]:80" && options.configFile == "/etc/a=b")
    #expect(try Options(parsing: ["--ready-file", "/run/ready"]).readyFile == "/run/ready")
    #expect(try Options(parsing: ["-h", "--nonsense"]).wantsHelp)
  }

  @Test(arguments: [["--listen"], ["--listen="], ["--loud"], ["17"], [""], ["--config", ""]])
  func badArguments(_ arguments: [String]) {
    #expect(throws: UsageError.self) { try Options(parsing: arguments) }
  }

  @Test func settings() throws {
    let settings = try Settings(parsing: "# a comment\n\n prefix = you said: \nline-limit=100\n")
    #expect(settings.prefix == "you said:" && settings.lineLimit == 100)
    #expect(try Settings(parsing: "") == Settings())
    #expect(try Settings(parsing: "prefix =").prefix == "")
    #expect(try Settings.load(nil) == Settings())
  }

  @Test(arguments: [
    "prefix", "line-limit = 0", "line-limit = 2000000", "line-limit = x", "limit = 1",
    "prefix = " + String(repeating: "x", count: 65),
  ])
  func badSettings(_ text: String) {
    let error = #expect(throws: SettingsError.self) { try Settings(parsing: "\n" + text) }
    #expect(error?.description.hasPrefix("line 2: ") == true)
  }

  @Test func aFileThatIsNotThereIsAnError() {
    #expect(throws: SettingsError.self) { try Settings.load("/no/such/file") }
  }
}
