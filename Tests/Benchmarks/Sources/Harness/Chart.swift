// SPDX-License-Identifier: Apache-2.0
import Measuring

/// What a reader wants to know first, how soon a signal is acted upon, as five bars over an axis: one SVG that is readable
/// on light and dark pages, and on a phone.
struct Chart {
  private struct Bar {
    let label: String
    let value: Double
    let isOurs: Bool
  }

  private static let row = "signal → first line"
  /// Of all contestants those whose handlers do what a daemon's do, as the table calls them, and their labels.
  private static let shown = [
    "sd-event": "sd-event, in C", "C sigaction+pipe+thread": "sigaction, pipe, thread, in C",
    "DispatchSource": "Dispatch source", "DispatchSource, actor": "Dispatch source → actor",
    "ours: async main, actor": "this package → actor",
  ]
  private static let width = 640.0
  private static let labelWidth = 230.0
  private static let barHeight = 22.0
  private static let pitch = 32.0
  private let bars: [Bar]

  /// `nil` when the row that it shows was not measured.
  init?(_ results: Results) {
    bars = results.measurements.compactMap { one in
      guard one.row == Self.row, one.metric == "p50", let label = Self.shown[one.contestant] else {
        return nil
      }
      return Bar(label: label, value: one.median, isOurs: one.contestant.hasPrefix("ours"))
    }
    .sorted { $0.value < $1.value }
    if bars.isEmpty { return nil }
  }

  var svg: String {
    let top = 44.0
    let bottom = top + Double(bars.count) * Self.pitch
    let step = Self.step(over: bars.map(\.value).max() ?? 1)
    let ticks = Int(((bars.map(\.value).max() ?? 1) / step).rounded(.up))
    // Room for the number behind the longest bar.
    let scale = (Self.width - Self.labelWidth - 40) / (Double(ticks) * step)
    let body =
      [Self.text("From a signal to its handler’s first line: µs, median", 8, 24, "title")]
      + (0...ticks).flatMap { tick in
        let value = Double(tick) * step
        return Self.tick(value, x: Self.labelWidth + value * scale, from: top - 6, to: bottom)
      }
      + bars.enumerated().flatMap { index, bar in
        Self.lines(of: bar, y: top + Double(index) * Self.pitch, scale: scale)
      }
    return """
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(Int(Self.width)) \(Int(bottom + 30))" role="img">
      <style>
        text { font: 15px system-ui, sans-serif; fill: #24292f }
        .title { font-weight: 600 } .end { text-anchor: end } .middle { text-anchor: middle }
        .ours { fill: #d9480f } .other { fill: #8c959f } .axis { stroke: #d0d7de; stroke-width: 1 }
        @media (prefers-color-scheme: dark) {
          text { fill: #e6edf3 }
          .ours { fill: #ff8f4d } .other { fill: #6e7681 } .axis { stroke: #3d444d }
        }
      </style>
      \(body.joined(separator: "\n"))
      </svg>

      """
  }

  /// A round number of which four to ten reach the maximum.
  private static func step(over maximum: Double) -> Double {
    var step = 1.0
    while true {
      for factor in [1.0, 2, 5] where maximum <= step * factor * 6 { return step * factor }
      step *= 10
    }
  }

  private static func tick(_ value: Double, x: Double, from top: Double, to bottom: Double)
    -> [String]
  {
    [
      "<line class=\"axis\" x1=\"\(short(x))\" x2=\"\(short(x))\" y1=\"\(short(top))\" y2=\"\(short(bottom))\"/>",
      text(String(Int(value)), x, bottom + 20, "middle"),
    ]
  }

  private static func lines(of bar: Bar, y: Double, scale: Double) -> [String] {
    let length = max(1, bar.value * scale)
    return [
      text(bar.label, labelWidth - 10, y + 16, "end"),
      "<rect class=\"\(bar.isOurs ? "ours" : "other")\" x=\"\(short(labelWidth))\" y=\"\(short(y))\" "
        + "width=\"\(short(length))\" height=\"\(short(barHeight))\" rx=\"2\"/>",
      text(String(Int(bar.value.rounded())), labelWidth + length + 6, y + 16, "value"),
    ]
  }

  private static func text(_ text: String, _ x: Double, _ y: Double, _ style: String) -> String {
    let safe = text.map { $0 == "&" ? "&amp;" : $0 == "<" ? "&lt;" : String($0) }.joined()
    return "<text class=\"\(style)\" x=\"\(short(x))\" y=\"\(short(y))\">\(safe)</text>"
  }
}
