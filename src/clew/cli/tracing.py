"""Formats a trace for reading: steps by name, operators as calls, counts in words."""

import ast
import re

from rich.markup import escape
from rich.tree import Tree

from clew.cli.door import out
from clew.context import TraceStep

_SIZES = re.compile(r"chunks=\d+( \w+=\d+)+")
_AMOUNT = re.compile(r"(\w+)=(\d+)")
_KIND_WORDS = {
    "chunks": ("passage", "passages"),
    "entities": ("entity", "entities"),
    "facts": ("fact", "facts"),
    "paths": ("path", "paths"),
    "communities": ("community", "communities"),
}
_CHAIN = re.compile(r"\bChain\(name='([^']+)'")
_STEP_NAME = re.compile(r"<?(?:function )?(\w+)[(.\s]")
_OPERATOR = re.compile(r"(?:Retrieve|Filter|Sort|Aggregate|Compare|Combine|Get)\(.*\)")
_NUMBERED = re.compile(r"; (?=#\d+ [A-Z][a-z]+\()")
_MAX_OUTPUT = 200


def print_trace(trace: tuple[TraceStep, ...]) -> None:
    """Print the steps as a tree."""
    tree = Tree("[bold]Trace[/bold]")
    _add_steps(tree, trace)
    out.print(tree, soft_wrap=False)  # wraps long lines instead of cropping them


def _add_steps(tree: Tree, steps: tuple[TraceStep, ...]) -> None:
    """Add one branch per step: its input, output, cost and inner steps."""
    for step in steps:
        cost = f"{step.seconds * 1000:.0f} ms"
        if calls := step.usage.calls + step.usage.cached_calls:
            cost += f", {calls} {'call' if calls == 1 else 'calls'}"
        if _SIZES.fullmatch(step.output):
            tree.add(f"{escape(_summarise_step(step))} [dim]({cost})[/dim]")
            continue
        text = f" {escape(shorten(format_input(step.input)))}" if step.input else ""
        node = tree.add(f"[bold]{escape(shorten(step.step, 60))}[/bold]{text} [dim]({cost})[/dim]")
        if step.output:
            node.add(f"[green]→[/green] {escape(shorten(step.output, _MAX_OUTPUT))}")
        _add_steps(node, step.steps)


def _summarise_step(step: TraceStep) -> str:
    """Format a retrieval step on one line: its name and the sizes of its output."""
    amounts = [(kind, int(number)) for kind, number in _AMOUNT.findall(step.output)]
    sizes = [f"{n} {_KIND_WORDS[kind][n != 1]}" for kind, n in amounts if n and kind in _KIND_WORDS]
    return ": ".join(filter(None, (step_name(step.step), ", ".join(sizes))))


def step_name(shown: str) -> str:
    """Return the name in a step's repr: a chain's own name, for a fork those of its branches."""
    chains: list[str] = list(dict.fromkeys(_CHAIN.findall(shown)))
    if shown.startswith("Chain("):
        return chains[0]
    found = _STEP_NAME.match(shown)
    name = found[1] if found else shown
    return f"{name} of {' and '.join(chains)}" if name == "Fork" and chains else name


def format_input(given: str) -> str:
    """Format a step's input, with each operator of a plan as `count(#1)`."""
    parts = []
    for part in _NUMBERED.split(given):
        number, space, shown = part.partition(" ") if part.startswith("#") else ("", "", part)
        parts.append(f"{number}{space}{_format_operator(shown)}")
    return "; ".join(parts)


def _format_operator(shown: str) -> str:
    """Format an operator in plan notation; text that is not one is returned unchanged."""
    if not _OPERATOR.fullmatch(shown):
        return shown
    try:
        call = ast.parse(shown, mode="eval").body
        assert isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        fields = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
    except (SyntaxError, ValueError, AssertionError):
        return shown
    if fields.get("asks"):
        return str(fields["asks"])
    refs = [f"#{fields.pop(key)}" for key in ("of", "left", "right") if key in fields]
    how = fields.pop("how", "")
    name = call.func.id.lower()
    if name in ("aggregate", "combine"):
        return f"{how}({', '.join(refs)})"
    rest = [str(value) for value in (how, *map(_format_argument, fields.items())) if value]
    return f"{name}({', '.join([*refs, *rest])})"


def _format_argument(field: tuple[str, object]) -> str:
    """Format an argument without its name: `falling` is the order, and place 0 means all."""
    name, value = field
    if name == "falling":
        return "desc" if value else "asc"
    return "" if name == "place" and not value else str(value)


def truncate_words(text: str, most: int) -> str:
    """Truncate a long text between words."""
    return text if len(text) <= most else text[:most].rsplit(" ", 1)[0] + " …"


def shorten(text: str, most: int = 120) -> str:
    """Put a text on one line and truncate it."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"
