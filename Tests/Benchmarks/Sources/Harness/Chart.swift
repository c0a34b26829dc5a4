// SPDX-License-Identifier: Apache-2.0
import Measuring

/// Bars for the README, as one SVG that is readable on light and dark pages.
struct Chart {
  private struct Panel {
    let title: String
    let bars: [Bar]
  }

  private struct Bar {
    let label: String
    let value: Double
    /// Where a thin line ends; the same as the value without one.
    let tail: Double
    let text: String
    let isOurs: Bool
  }

  private static let width = 760.0
  private static let labelWidth = 250.0
  private static let barHeight = 16.0
  private static let pitch = 22.0
  private var panels: [Panel] = []

  /// `nil` when the rows that it shows were not measured.
  init?(_ results: Results) {
    addPanel(
      results, row: "signal → first line", metric: "p50", tail: "p99",
      title: "From a signal to the first line of its handler: µs, median (line: 99th percentile)")
    addPanel(
      results, row: "delivery to 10000, per observer", metric: "time", tail: nil,
      title: "To tell one of 10,000 observers: ns, median")
    if panels.isEmpty { return nil }
  }

  private mutating func addPanel(
    _ results: Results, row: String, metric: String, tail: String?, title: String
  ) {
    let bars = results.measurements.filter { $0.row == row && $0.metric == metric }.map { one in
      let end = tail.flatMap { results.measurement(row, one.contestant, $0) }?.median
      return Bar(
        label: one.contestant, value: one.median, tail: end ?? one.median,
        text: short(one.median) + (end.map { " (\(short($0)))" } ?? ""),
        isOurs: one.contestant.hasPrefix("ours"))
    }
    if !bars.isEmpty { panels.append(Panel(title: title, bars: bars)) }
  }

  var svg: String {
    var y = 8.0
    var body: [String] = []
    for panel in panels {
      body.append(Self.text(panel.title, x: 8, y: y + 16, style: "title"))
      y += 28
      // Room for the number behind the longest bar.
      let room = Self.width - Self.labelWidth - 110
      let scale = room / (panel.bars.map(\.tail).max() ?? 1)
      for bar in panel.bars {
        body += Self.lines(of: bar, y: y, scale: scale)
        y += Self.pitch
      }
      y += 14
    }
    return """
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(Int(Self.width)) \(Int(y))" role="img">
      <style>
        text { font: 13px system-ui, sans-serif; fill: #24292f }
        .title { font-weight: 600 }
        .ours { fill: #d9480f } .other { fill: #8c959f } .tail { stroke: #57606a; stroke-width: 2 }
        @media (prefers-color-scheme: dark) {
          text { fill: #e6edf3 }
          .ours { fill: #ff8f4d } .other { fill: #6e7681 } .tail { stroke: #9da7b3 }
        }
      </style>
      \(body.joined(separator: "\n"))
      </svg>

      """
  }

  private static func lines(of bar: Bar, y: Double, scale: Double) -> [String] {
    let length = max(1, bar.value * scale)
    let end = labelWidth + max(length, bar.tail * scale)
    let middle = y + barHeight / 2
    var lines = [
      text(bar.label, x: labelWidth - 8, y: y + 13, style: "label\" text-anchor=\"end"),
      "<rect class=\"\(bar.isOurs ? "ours" : "other")\" x=\"\(short(labelWidth))\" y=\"\(short(y))\" "
        + "width=\"\(short(length))\" height=\"\(short(barHeight))\" rx=\"2\"/>",
    ]
    if bar.tail > bar.value {
      lines.append(
        "<line class=\"tail\" x1=\"\(short(labelWidth + length))\" x2=\"\(short(end))\" "
          + "y1=\"\(short(middle))\" y2=\"\(short(middle))\"/>")
    }
    return lines + [text(bar.text, x: end + 6, y: y + 13, style: "value")]
  }

  private static func text(_ text: String, x: Double, y: Double, style: String) -> String {
    let safe = text.map { $0 == "&" ? "&amp;" : $0 == "<" ? "&lt;" : String($0) }.joined()
    return "<text class=\"\(style)\" x=\"\(short(x))\" y=\"\(short(y))\">\(safe)</text>"
  }
}
