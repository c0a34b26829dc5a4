// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import DaemonSystemd

@Suite struct VisibleTextTests {
  @Test(arguments: [
    ("", ""), ("plain text, 100 %", "plain text, 100 %"), ("Grüße, 漢字 👩‍👩‍👧", "Grüße, 漢字 👩‍👩‍👧"),
    ("a\nb\r\n\tc", #"a\nb\r\n\tc"#), ("\u{0}\u{1b}[2J\u{7f}", #"\u{0}\u{1b}[2J\u{7f}"#),
    ("\u{85}\u{9b}31m\u{2028}\u{2029}", #"\u{85}\u{9b}31m\u{2028}\u{2029}"#),
    (
      "\u{202a}\u{202e}\u{2066}\u{2069}\u{200e}\u{200f}\u{61c}",
      #"\u{202a}\u{202e}\u{2066}\u{2069}\u{200e}\u{200f}\u{61c}"#
    ),
    ("a\u{200b}b\u{2060}c\u{feff}d\u{ad}", #"a\u{200b}b\u{2060}c\u{feff}d\u{ad}"#),
    ("ro\u{200d}\u{200c}ot", "ro\\u{200d}\\u{200c}ot"),
    ("ro\u{200d}ot نامه\u{200c}ای", "ro\\u{200d}ot نامه\u{200c}ای"), (#"C:\new"#, #"C:\new"#),
  ])
  func whatMovesBreaksOrHidesIsEscaped(_ text: String, _ shown: String) {
    #expect(VisibleText.line(text).unicodeScalars.elementsEqual(shown.unicodeScalars))
    #expect(VisibleText.line(shown) == shown, "twice is once")
  }

  /// A bus or a variable may have a text of any length.
  @Test func anExcerptIsShort() {
    let long = String(repeating: "x", count: 200)
    #expect(VisibleText.excerpt(long) == long && VisibleText.excerpt(long + "y") == long + "…")
    let combined = "a" + String(repeating: "\u{301}", count: 200_000)
    #expect(VisibleText.excerpt(combined).utf8.count < 500)
    let error = SystemdError.malformedVariable(name: "A", value: combined, reason: "is not one")
    #expect("\(error)".utf8.count < 1000)
  }

  @Test func bytesThatAreNoTextAreSeen() {
    let text = String(decoding: [0x61, 0xff, 0xc3] as [UInt8], as: UTF8.self)
    #expect(VisibleText.line(text) == "a\u{fffd}\u{fffd}")
    let none = [0xfdd0, 0x1ffff].compactMap { Unicode.Scalar($0 as UInt32) }
    let shown = VisibleText.line(String(String.UnicodeScalarView(none)))
    #expect(shown == #"\u{fdd0}\u{1ffff}"#)
  }

  /// The code points that are not characters end where an Arabic ligature begins.
  @Test func besideWhatIsNoCharacterThereAreCharacters() {
    #expect(VisibleText.line("\u{fdcf}\u{fdf0}") == "\u{fdcf}\u{fdf0}")
    let last = Unicode.Scalar(0xfdef as UInt32).map { String(Character($0)) }
    #expect(last.map { VisibleText.line($0) } == #"\u{fdef}"#)
    for (text, shown) in [
      (" ~", " ~"), ("\u{1f}", #"\u{1f}"#), ("\u{7f}", #"\u{7f}"#), ("a\u{7f}", #"a\u{7f}"#),
    ] { #expect(VisibleText.line(text) == shown) }
  }

  /// Whatever is put in: one line, and nothing that a terminal acts on.
  @Test func anyTextBecomesOneLine() {
    var all = String.UnicodeScalarView()
    for value in 0...0x2fff as ClosedRange<UInt32> { Unicode.Scalar(value).map { all.append($0) } }
    let line = VisibleText.line(String(all))
    #expect(!line.contains { $0.isNewline })
    let acting: [Unicode.GeneralCategory] = [.control, .lineSeparator, .paragraphSeparator]
    #expect(!line.unicodeScalars.contains { acting.contains($0.properties.generalCategory) })
  }
}
