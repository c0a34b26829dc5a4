// SPDX-License-Identifier: Apache-2.0
import SwiftOperators
import SwiftParser
import SwiftSyntax

/// Finds what can be changed in a file: conditions, comparisons, `&&` and `||`, literals and statements.
///
/// What no switch can be put around is left out: declarations, patterns without an expression, `return` and `throw`.
/// Neither are there two mutants where one would do: of a conjunction its parts are negated, and not the whole.
final class MutantFinder: SyntaxVisitor {
  private let path: String
  private let converter: SourceLocationConverter
  private var nextNumber: Int
  private(set) var mutants: [Mutant] = []
  private var negated: Set<SyntaxIdentifier> = []
  /// How many there are of each description, since lines may be alike.
  private var counts: [String: Int] = [:]

  static func mutants(of text: String, _ path: String, from number: Int) -> [Mutant] {
    let parsed = Parser.parse(source: text)
    let tree = OperatorTable.standardOperators.foldAll(parsed) { _ in }
    let converter = SourceLocationConverter(fileName: path, tree: tree)
    let finder = MutantFinder(path, converter, from: number)
    finder.walk(tree)
    return finder.mutants
  }

  private init(_ path: String, _ converter: SourceLocationConverter, from number: Int) {
    self.path = path
    self.converter = converter
    nextNumber = number
    super.init(viewMode: .sourceAccurate)
  }

  // MARK: Making them

  private func add(_ node: some SyntaxProtocol, _ change: String, _ edits: (Int) -> [Mutant.Edit]) {
    let declaration = enclosingDeclaration(node)
    let count = counts["\(declaration.name): \(change)", default: 0] + 1
    counts["\(declaration.name): \(change)"] = count
    mutants.append(
      Mutant(
        number: nextNumber, path: path,
        line: converter.location(for: node.positionAfterSkippingLeadingTrivia).line,
        place: declaration.name, change: count > 1 ? "\(change), number \(count)" : change,
        declaration: declaration.extent,
        edits: edits(nextNumber)))
    nextNumber += 1
  }

  private func enclosingDeclaration(_ node: some SyntaxProtocol) -> (
    name: String, extent: Range<Int>
  ) {
    var parent: Syntax? = Syntax(node)
    while let current = parent {
      let name: String? =
        switch current.as(DeclSyntax.self)?.as(DeclSyntaxEnum.self) {
        case .functionDecl(let function): function.name.text
        case .initializerDecl: "init"
        case .deinitializerDecl: "deinit"
        case .subscriptDecl: "subscript"
        case .variableDecl(let variable) where !isLocal(variable):
          variable.bindings.first.map { $0.pattern.trimmedDescription }
        default: nil
        }
      if let name { return (name, extent(current)) }
      parent = current.parent
    }
    return ("file", 0..<0)
  }

  private func isLocal(_ variable: VariableDeclSyntax) -> Bool {
    variable.parent?.is(MemberBlockItemSyntax.self) != true
      && variable.parent?.parent?.parent?.is(SourceFileSyntax.self) != true
  }

  private func extent(_ node: some SyntaxProtocol) -> Range<Int> {
    node.positionAfterSkippingLeadingTrivia
      .utf8Offset..<node.endPositionBeforeTrailingTrivia
      .utf8Offset
  }

  /// On one line, and not all of it.
  private func brief(_ node: some SyntaxProtocol) -> String {
    let words = node.trimmedDescription.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    return words.count > 90 ? "\(words.prefix(60))…\(words.suffix(29))" : words
  }

  // MARK: Negation

  /// An expression that is a `Bool`: its parts, if it is made of several, else itself.
  private func negate(_ expression: ExprSyntax) {
    guard negated.insert(expression.id).inserted else { return }
    if let operation = expression.as(InfixOperatorExprSyntax.self),
      ["&&", "||"].contains(operation.operator.trimmedDescription)
    {
      negate(operation.leftOperand)
      negate(operation.rightOperand)
    } else if let inner = onlyElement(expression) {
      negate(inner)
    } else if let branch = expression.as(IfExprSyntax.self) {
      negateValues(of: branch)
    } else if let choice = expression.as(SwitchExprSyntax.self) {
      for case .switchCase(let one) in choice.cases { negateValue(of: one.statements) }
    } else if let ternary = expression.as(TernaryExprSyntax.self) {
      negate(ternary.thenExpression)
      negate(ternary.elseExpression)
    } else {
      add(expression, "negate `\(brief(expression))`") { number in
        wrap(expression, "mutantNot(\(number), ", ")")
      }
    }
  }

  private func onlyElement(_ expression: ExprSyntax) -> ExprSyntax? {
    guard let tuple = expression.as(TupleExprSyntax.self), tuple.elements.count == 1 else {
      return nil
    }
    return tuple.elements.first?.expression
  }

  private func negateValues(of branch: IfExprSyntax) {
    negateValue(of: branch.body.statements)
    switch branch.elseBody {
    case .ifExpr(let next): negateValues(of: next)
    case .codeBlock(let block): negateValue(of: block.statements)
    default: break
    }
  }

  /// Of statements that are only there for the value of the one.
  private func negateValue(of statements: CodeBlockItemListSyntax) {
    guard statements.count == 1, let item = statements.first?.item else { return }
    if case .expr(let value) = item { negate(value) }
    if case .stmt(let statement) = item,
      let value = statement.as(ExpressionStmtSyntax.self)?.expression
    {
      negate(value)
    }
  }

  private func wrap(_ node: some SyntaxProtocol, _ before: String, _ after: String) -> [Mutant.Edit]
  {
    [.before(extent(node), before), .after(extent(node), after)]
  }

  // MARK: Conditions

  override func visit(_ node: ConditionElementSyntax) -> SyntaxVisitorContinueKind {
    switch node.condition {
    // What follows `while true` is never reached, and the compiler knows.
    case .expression(let condition) where condition.trimmedDescription == "true": break
    case .expression(let condition): negate(condition)
    case .optionalBinding, .matchingPattern:
      add(node, "never `\(brief(node.condition))`") { number in
        [.before(extent(node), "mutantIsNot(\(number)), ")]
      }
    default: break
    }
    return .visitChildren
  }

  override func visit(_ node: WhereClauseSyntax) -> SyntaxVisitorContinueKind {
    negate(node.condition)
    return .visitChildren
  }

  override func visit(_ node: TernaryExprSyntax) -> SyntaxVisitorContinueKind {
    negate(node.condition)
    return .visitChildren
  }

  override func visit(_ node: PrefixOperatorExprSyntax) -> SyntaxVisitorContinueKind {
    if node.operator.text == "!" { negate(ExprSyntax(node)) }
    return .visitChildren
  }

  // MARK: Operators

  private static let swaps = [
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "&&": "||", "||": "&&",
  ]

  override func visit(_ node: InfixOperatorExprSyntax) -> SyntaxVisitorContinueKind {
    let sign = node.operator.trimmedDescription
    if let other = Self.swaps[sign] {
      negate(ExprSyntax(node))
      let parts = "`\(brief(node.leftOperand)) \(sign) \(brief(node.rightOperand))`"
      add(node, "`\(other)` in \(parts)") { number in
        switch sign {
        case "&&", "||":
          wrap(node, "mutantJunction(\(number), ", ")")
            + [.instead(extent(node.operator), ", isAnd: \(sign == "&&"), ")]
        default:
          wrap(node, "mutantComparison(\(number), ", ")")
            + [.instead(extent(node.operator), ", \(sign), \(other), ")]
        }
      }
    } else if ["==", "!=", "===", "!=="].contains(sign) {
      negate(ExprSyntax(node))
    }
    return .visitChildren
  }

  // MARK: Literals

  override func visit(_ node: IntegerLiteralExprSyntax) -> SyntaxVisitorContinueKind {
    let digits = node.literal.text.filter { $0 != "_" }
    let value =
      digits.hasPrefix("0x") ? UInt64(digits.dropFirst(2), radix: 16) : UInt64(digits)
    if let value, value < UInt64(Int64.max) {
      let line = node.parent.flatMap { $0.as(LabeledExprSyntax.self) }.map { brief($0) }
      let around = line ?? node.parent.map { brief($0) } ?? ""
      add(node, "\(value + 1) for `\(node.literal.text)` in `\(around)`") { number in
        wrap(node, "mutantLiteral(\(number), ", ", \(value + 1))")
      }
    }
    return .skipChildren
  }

  // What needs a literal.
  override func visit(_ node: EnumCaseDeclSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
  override func visit(_ node: AttributeSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
  override func visit(_ node: AvailabilityConditionSyntax) -> SyntaxVisitorContinueKind {
    .skipChildren
  }

  // MARK: Statements

  override func visit(_ node: CodeBlockItemListSyntax) -> SyntaxVisitorContinueKind {
    let isValue = node.count == 1 && !isVoidBody(node)
    for item in node where !isValue {
      guard case .expr(let expression) = item.item, !isKept(expression) else { continue }
      add(expression, "drop `\(brief(expression))`") { number in
        wrap(expression, "if mutantIsNot(\(number)) { ", " }")
      }
    }
    return .visitChildren
  }

  /// Whether one statement alone is one that can be dropped, and not the value of what it is the body of.
  private func isVoidBody(_ list: CodeBlockItemListSyntax) -> Bool {
    guard let parent = list.parent else { return true }
    if parent.is(ClosureExprSyntax.self) || parent.is(AccessorBlockSyntax.self) { return false }
    if let function = parent.parent?.as(FunctionDeclSyntax.self) {
      return function.signature.returnClause == nil
    }
    if let accessor = parent.parent?.as(AccessorDeclSyntax.self) {
      return accessor.accessorSpecifier.text != "get"
    }
    if parent.is(SwitchCaseSyntax.self) || parent.parent?.is(IfExprSyntax.self) == true {
      return !isValueOfBranch(parent)
    }
    return true
  }

  /// Whether an `if` or `switch` stands where a value is wanted.
  private func isValueOfBranch(_ node: Syntax) -> Bool {
    var current = node
    while let parent = current.parent {
      if parent.is(CodeBlockItemSyntax.self) {
        guard let list = parent.parent?.as(CodeBlockItemListSyntax.self) else { return false }
        return list.count == 1 && !isVoidBody(list)
      }
      if parent.is(InitializerClauseSyntax.self) || parent.is(ReturnStmtSyntax.self)
        || parent.is(InfixOperatorExprSyntax.self)
      {
        return true
      }
      current = parent
    }
    return false
  }

  /// What a body does not compile without.
  private func isKept(_ expression: ExprSyntax) -> Bool {
    if expression.is(IfExprSyntax.self) || expression.is(SwitchExprSyntax.self) { return true }
    if let inner = expression.as(TryExprSyntax.self)?.expression { return isKept(inner) }
    if let call = expression.as(FunctionCallExprSyntax.self) {
      return ["self.init", "super.init", "fatalError"].contains(
        call.calledExpression.trimmedDescription)
    }
    guard let operation = expression.as(InfixOperatorExprSyntax.self),
      operation.operator.is(AssignmentExprSyntax.self)
    else { return false }
    return initializes(operation.leftOperand)
  }

  /// Whether an assignment may be the first: in an initializer, or to something that was declared without a value.
  private func initializes(_ target: ExprSyntax) -> Bool {
    let names = target.tokens(viewMode: .sourceAccurate).map(\.text)
    var parent = target.parent
    while let current = parent {
      if current.is(InitializerDeclSyntax.self) { return true }
      if let list = current.as(CodeBlockItemListSyntax.self) {
        for case .decl(let declaration) in list.map(\.item) {
          guard let bindings = declaration.as(VariableDeclSyntax.self)?.bindings else { continue }
          for binding in bindings where binding.initializer == nil {
            let declared = binding.pattern.tokens(viewMode: .sourceAccurate).map(\.text)
            if declared.contains(where: { $0 != "(" && names.contains($0) }) { return true }
          }
        }
      }
      parent = current.parent
    }
    return false
  }

  // MARK: Values of a Bool

  override func visit(_ node: FunctionDeclSyntax) -> SyntaxVisitorContinueKind {
    if let body = node.body, returnType(of: node) == "Bool" { negateValue(of: body.statements) }
    return .visitChildren
  }

  override func visit(_ node: PatternBindingSyntax) -> SyntaxVisitorContinueKind {
    if case .getter(let statements) = node.accessorBlock?.accessors,
      node.typeAnnotation?.type.trimmedDescription == "Bool"
    {
      negateValue(of: statements)
    }
    return .visitChildren
  }

  override func visit(_ node: ReturnStmtSyntax) -> SyntaxVisitorContinueKind {
    if let value = node.expression, returnType(around: node) == "Bool" { negate(value) }
    return .visitChildren
  }

  /// Of the function or property whose body a statement is in; `nil` in a closure, whose type is not written there.
  private func returnType(around node: some SyntaxProtocol) -> String? {
    var parent = node.parent
    while let current = parent {
      if current.is(ClosureExprSyntax.self) { return nil }
      if let function = current.as(FunctionDeclSyntax.self) {
        return returnType(of: function)
      }
      if let binding = current.as(PatternBindingSyntax.self), binding.accessorBlock != nil {
        return binding.typeAnnotation?.type.trimmedDescription
      }
      parent = current.parent
    }
    return nil
  }

  private func returnType(of function: FunctionDeclSyntax) -> String? {
    function.signature.returnClause?.type.trimmedDescription
  }
}
