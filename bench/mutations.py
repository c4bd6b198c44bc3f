"""The mutations that `bench.mutants` applies to a source file, one at a time.

A mutation changes one node of the syntax tree: a comparison, an operator, a condition, a number,
a returned value, or a statement that is removed. Skipped are texts for people (error messages,
logs, docstrings, strings) and code for the type checker (annotations, asserts).
"""

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

Change = tuple[str, ast.AST]

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_OPPOSITE = {"min": "max", "max": "min", "any": "all", "all": "any"}
_TYPE_FIELDS = frozenset({"annotation", "returns", "decorator_list", "bases", "keywords"})
_LOGGERS = frozenset({"log", "logger", "logging", "warnings", "print"})
_STATEMENTS = (ast.Expr, ast.Assign, ast.AugAssign, ast.Delete, ast.Raise)
_COMPOUND = (ast.If, ast.While, ast.For, ast.AsyncFor, ast.With, ast.AsyncWith, ast.Try, ast.Match)


@dataclass(frozen=True)
class Mutation:
    """One mutation: its place, its kind, and the code before and after it."""

    number: int
    kind: str
    function: str
    """The enclosing function with its class; empty at module level."""
    line: int
    first: int
    last: int
    """Lines of the statement: a test that runs one of them may detect the mutation."""
    before: str
    after: str


@dataclass(frozen=True)
class _Site:
    node: ast.AST
    parent: ast.AST
    field: str
    at: int | None
    function: str
    statement: ast.stmt

    def replace_with(self, new: ast.AST) -> None:
        if self.at is None:
            setattr(self.parent, self.field, new)
        else:
            getattr(self.parent, self.field)[self.at] = new


def find_mutations(source: str) -> list[Mutation]:
    """Return every possible mutation of a source file, in the order of its text."""
    found: list[Mutation] = []
    for site in _iter_sites(ast.parse(source)):
        for kind, new in _iter_changes(site.node):
            first, last = _line_range(site.statement)
            line = getattr(site.node, "lineno", first)
            before, after = _source_of(site.node), _source_of(new)
            mutation = Mutation(len(found), kind, site.function, line, first, last, before, after)
            found.append(mutation)
    return found


def apply_mutation(source: str, number: int) -> str:
    """Return the source with the mutation of this number."""
    tree = ast.parse(source)
    changes = ((site, new) for site in _iter_sites(tree) for _, new in _iter_changes(site.node))
    for at, (site, new) in enumerate(changes):
        if at == number:
            site.replace_with(new)
            return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    raise ValueError(f"this file has no mutation {number}")


def _source_of(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())[:160]


def _line_range(statement: ast.stmt) -> tuple[int, int]:
    """Return the first and last line of a statement, without the statements inside it."""
    last = statement.end_lineno or statement.lineno
    if isinstance(statement, _COMPOUND):
        inside = [one.lineno for one in ast.walk(statement) if isinstance(one, ast.stmt)]
        inside = [line for line in inside if line > statement.lineno]
        last = max(statement.lineno, min(inside) - 1) if inside else last
    return statement.lineno, last


# -- places


def _iter_sites(tree: ast.Module) -> Iterator[_Site]:
    for at, statement in enumerate(tree.body):
        yield from _iter_within(_Site(statement, tree, "body", at, "", statement))


def _iter_within(site: _Site) -> Iterator[_Site]:
    node = site.node
    if _is_skipped(site):
        return
    yield site
    if isinstance(node, ast.Raise):
        return
    inner = site.function
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        inner = f"{inner}.{node.name}".lstrip(".")
    for name, value in ast.iter_fields(node):
        if name in _TYPE_FIELDS and not isinstance(node, ast.Call):
            continue
        listed = isinstance(value, list)
        for at, child in enumerate(value if listed else [value]):
            if isinstance(child, ast.AST):
                statement = child if isinstance(child, ast.stmt) else site.statement
                place = at if listed else None
                yield from _iter_within(_Site(child, node, name, place, inner, statement))


def _is_skipped(site: _Site) -> bool:
    node = site.node
    match node:
        case ast.JoinedStr() | ast.Assert() | ast.Import() | ast.ImportFrom():
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Expr(value=ast.Constant()):
            return True
        case (
            ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(value=ast.Name(id=name)))
        ):
            return name in _LOGGERS
        case ast.BinOp(op=ast.BitOr()):  # at module level a union of types
            return not site.function
    return False


# -- changes


def _iter_changes(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.stmt):
        yield from _change_statement(node)
    elif isinstance(node, (ast.Constant, ast.Call, ast.comprehension)):
        yield from _change_value(node)
    elif isinstance(node, ast.expr):
        yield from _change_expression(node)


def _change_expression(node: ast.expr) -> Iterator[Change]:
    match node:
        case ast.Compare(ops=[first, *_]):
            new = copy.deepcopy(node)
            new.ops[0] = _COMPARISONS[type(first)]()
            yield "comparison", new
        case ast.BinOp(op=op, left=left, right=right) if type(op) in _ARITHMETIC:
            if not any(map(_is_text, (left, right))):
                yield "arithmetic", ast.BinOp(left, _ARITHMETIC[type(op)](), right)
        case ast.BoolOp(op=op, values=values):
            other = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield "boolean", ast.BoolOp(other, values)
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield "boolean" if isinstance(node.op, ast.Not) else "arithmetic", operand
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield "condition", ast.IfExp(test, orelse, body)


def _change_value(node: ast.Constant | ast.Call | ast.comprehension) -> Iterator[Change]:
    match node:
        case ast.Constant(value=bool(value)):
            yield "constant", ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield "constant", ast.Constant(value + 1)
        case ast.Call(func=ast.Name(id=name)) if name in _OPPOSITE:
            new = copy.copy(node)
            new.func = ast.Name(_OPPOSITE[name], ast.Load())
            yield "opposite", new
        case ast.comprehension(ifs=[_, *_]):
            new_loop = copy.copy(node)
            new_loop.ifs = []
            yield "condition", new_loop


def _change_statement(node: ast.stmt) -> Iterator[Change]:
    match node:
        case ast.Return(value=ast.expr() as value):
            if not (isinstance(value, ast.Constant) and value.value is None):
                yield "return", ast.Return(ast.Constant(None))
        case ast.If(test=test) | ast.While(test=test):
            if not isinstance(test, (ast.Compare, ast.UnaryOp, ast.Constant)):
                new = copy.copy(node)
                new.test = ast.UnaryOp(ast.Not(), test)
                yield "condition", new
        case ast.Break():
            yield "statement", ast.Continue()
        case ast.Continue():
            yield "statement", ast.Break()
        case _ if isinstance(node, _STATEMENTS) and _is_removable(node):
            yield "statement", ast.Pass()


def _is_removable(node: ast.stmt) -> bool:
    """Whether the statement defines no name that later code needs."""
    match node:
        case ast.Expr(value=ast.Call() | ast.Await()):
            return True
        case ast.Assign(targets=targets):
            return all(isinstance(one, (ast.Attribute, ast.Subscript)) for one in targets)
    return isinstance(node, (ast.AugAssign, ast.Delete, ast.Raise))


def _is_text(node: ast.AST) -> bool:
    """Whether the node is certainly no number: changing its operator would fail in every run."""
    match node:
        case ast.JoinedStr() | ast.List() | ast.Tuple() | ast.Constant(value=str()):
            return True
        case ast.BinOp(left=left, right=right):
            return _is_text(left) or _is_text(right)
    return False
