"""Prints search results and answers for a terminal."""

from rich.markup import escape

from clew.agents.answer import Answer, Results
from clew.cli.door import out
from clew.cli.tracing import print_trace, truncate_words
from clew.names import name_key
from clew.types import Citation, Passage, Route

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
    out.print(f"[dim]{found.recipe}, {found.seconds * 1000:.0f} ms[/dim]")
    if trace:
        print_trace(found.trace)


def _print_passage(number: int, passage: Passage) -> None:
    where = _format_span(passage) + (f", p. {passage.page}" if passage.page else "")
    title = f"[bold]{escape(passage.title)}[/bold]  " if passage.title else ""
    out.print(f"{number}. {title}[cyan]{escape(where)}[/cyan] [dim]score {passage.score:.3f}[/dim]")
    out.print(f"   {escape(_flatten(passage.text, _SHOWN_TEXT))}")


def format_place(doc: str, start: int, end: int) -> str:
    """Format a span of a document; spelt out, since `name:12-34` reads like line numbers."""
    return f"{doc}, characters {start}–{end}"


def _format_span(where: Passage | Citation) -> str:
    return format_place(where.doc, where.start, where.end)


def _flatten(text: str, most: int) -> str:
    return truncate_words(" ".join(text.split()), most)


def print_answer(answer: Answer, trace: bool) -> None:
    """Print an answer with its citations and the path that led there."""
    out.print(escape(answer.answer))
    if answer.citations:
        out.print("\n[bold]Cited[/bold]")
    for number, c in enumerate(answer.citations, start=1):
        # Not if the answer already quotes these words.
        quote = "" if c.quote in answer.answer else f": “{_flatten(c.quote, _SHOWN_QUOTE)}”"
        out.print(f"  \\[{number}] [cyan]{escape(_format_span(c))}[/cyan]{escape(quote)}")
    if paths := _answer_paths(answer):
        out.print("\n[bold]Path[/bold]")
        for entities, facts in paths:
            _print_path(entities, facts)
    if answer.note:
        out.print(f"\n[dim]{escape(answer.note)}[/dim]")
    if trace:
        print_trace(answer.trace)


def _answer_paths(answer: Answer) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return the path to the candidate, if there is one; without a candidate the longest paths."""
    paths = answer.evidence.paths
    if not answer.candidate:
        return [(path.entities, path.facts) for path in _maximal_paths(paths)[:2]]
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
