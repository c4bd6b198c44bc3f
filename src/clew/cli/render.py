"""Search results, answers and traces as text for a terminal, or as JSON for programs."""

import re

from rich.markup import escape
from rich.tree import Tree

from clew.agents.base import Answer, Results
from clew.agents.confidence import describe_confidence
from clew.cli.common import out
from clew.context import TraceStep
from clew.text.names import name_key
from clew.text.tables import name_place
from clew.types import Citation, Passage, Route

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
        text = f" {escape(shorten(step.input))}" if step.input else ""
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


def truncate_words(text: str, most: int) -> str:
    """Truncate a long text between words."""
    return text if len(text) <= most else text[:most].rsplit(" ", 1)[0] + " …"


def shorten(text: str, most: int = 120) -> str:
    """Put a text on one line and truncate it."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"


_SHOWN_TEXT = 300
_SHOWN_QUOTE = 160
_SHOWN_REPORTS = 5


def print_results(found: Results, trace: bool) -> None:
    """Print search results."""
    for number, passage in enumerate(found.evidence.chunks, start=1):
        _print_passage(number, passage)
    for report in found.evidence.communities[:_SHOWN_REPORTS]:
        out.print(f"• [bold]{escape(report.name)}[/bold] [dim]{report.size} members[/dim]")
        out.print(f"   {escape(_flatten(report.summary, _SHOWN_TEXT))}")
    if not found.evidence.chunks:
        out.print("nothing found")
    if found.note:
        out.print(escape(found.note), style="yellow")
    out.print(f"[dim]{found.recipe}, {found.seconds * 1000:.0f} ms[/dim]")
    if trace:
        print_trace(found.trace)


def _print_passage(number: int, passage: Passage) -> None:
    where = _format_span(passage)
    title = f"[bold]{escape(passage.title)}[/bold]  " if passage.title else ""
    out.print(f"{number}. {title}[cyan]{escape(where)}[/cyan] [dim]score {passage.score:.3f}[/dim]")
    out.print(f"   {escape(_flatten(_drop_title(passage), _SHOWN_TEXT))}")


def _drop_title(passage: Passage) -> str:
    """Return the text without a first line that only repeats the title printed above it."""
    first, _, rest = passage.text.lstrip().partition("\n")
    repeated = passage.title and first.strip("#= \t") == passage.title
    return rest if repeated and rest.strip() else passage.text


def format_place(doc: str, start: int, end: int) -> str:
    """Format a span of a document; spelt out, since `name:12-34` reads like line numbers."""
    return f"{doc}, characters {start}–{end}"


def _format_span(where: Passage | Citation) -> str:
    page = f", p. {where.page}" if where.page else ""
    named = name_place(where.doc, where.heading) + page
    if isinstance(where, Passage) or where.line is None:
        return format_place(named, where.start, where.end)
    more = f"s {where.line}–{where.end_line}" if where.end_line != where.line else f" {where.line}"
    if where.file_start is None or where.file_end is None:
        return f"{named}, line{more}"
    return format_place(f"{named}, line{more}", where.file_start, where.file_end)


def _flatten(text: str, most: int) -> str:
    return truncate_words(" ".join(text.split()), most)


def print_answer(answer: Answer, trace: bool) -> None:
    """Print an answer with its citations and the path that led there."""
    short = answer.candidate if answer.verdict == "answered" else ""
    if short and name_key(short) not in name_key(answer.answer):  # a yes, or a sum
        out.print(f"[bold]Answer:[/bold] {escape(short)}\n")
    out.print(escape(answer.answer))
    if answer.citations:
        out.print("\n[bold]Cited[/bold]")
    for number, c in enumerate(answer.citations, start=1):
        # Not if the answer already quotes these words.
        quote = "" if c.quote in answer.answer else f": “{_flatten(c.quote, _SHOWN_QUOTE)}”"
        out.print(f"  \\[{number}] [cyan]{escape(_format_span(c))}[/cyan]{escape(quote)}")
    # What was found on the way does not explain why nothing answers.
    if answer.verdict == "answered" and (paths := _answer_paths(answer)):
        out.print("\n[bold]Path[/bold]")
        for entities, facts in paths:
            _print_path(entities, facts)
    if answer.verdict == "answered":
        words = describe_confidence(answer.confidence)
        out.print(f"\n[dim]{words}: confidence {answer.confidence:.2f}[/dim]")
    if answer.note:
        out.print(f"\n[dim]{escape(answer.note)}[/dim]")
    _print_prompts(answer)
    if trace:
        print_trace(answer.trace)


def describe_model_error(answer: Answer) -> str:
    """Say that the model which was to answer failed, and why."""
    return f"the model failed: {answer.model_error}"


def _print_prompts(answer: Answer) -> None:
    """Print every recorded model call: the messages as they were sent, and the reply."""
    for number, shown in enumerate(answer.prompts, start=1):
        out.print(f"\n[bold]Prompt {number}[/bold] [dim]({shown.role})[/dim]")
        for message in shown.messages:
            out.print(f"[cyan]{message.role}[/cyan]\n{escape(message.content)}", highlight=False)
        out.print(f"[cyan]reply[/cyan]\n{escape(shown.reply)}", highlight=False)


def _answer_paths(answer: Answer) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return the path to the candidate; without one, those from what is asked to what is said."""
    paths = answer.evidence.paths
    if not answer.candidate:
        asked, said = (name_key(text) for text in (answer.question, answer.answer))
        told = [
            path
            for path in _maximal_paths(paths)
            if name_key(path.entities[0]) in asked and name_key(path.entities[-1]) in said
        ]
        return [(path.entities, path.facts) for path in told[:2]]
    wanted = name_key(answer.candidate)
    for path in paths:
        keys = [name_key(entity) for entity in path.entities]
        if wanted in keys[1:]:
            last = keys.index(wanted, 1)
            return [(path.entities[: last + 1], path.facts[:last])]
    return []


def _maximal_paths(paths: tuple[Route, ...]) -> list[Route]:
    """Return the paths that are not a prefix of another one."""
    return [
        path
        for path in paths
        if not any(
            len(other.entities) > len(path.entities)
            and other.entities[: len(path.entities)] == path.entities
            for other in paths
        )
    ]


def _print_path(entities: tuple[str, ...], facts: tuple[str, ...]) -> None:
    out.print(f"  [bold]{escape(entities[0])}[/bold]")
    for fact, entity in zip(facts, entities[1:], strict=False):
        out.print(f"    └ {escape(fact)}")
        out.print(f"  → [bold]{escape(entity)}[/bold]")
