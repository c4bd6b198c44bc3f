"""The commands that inspect a knowledge base or machine: status, show, verify, doctor, demo."""

from typing import Annotated, Any

import typer
from rich.markup import escape

from clew import demo as demo_corpus
from clew.cli.bars import progress
from clew.cli.door import AsJson, Debug, Door, Kb, enter, err, fail, out, run, tell_no_embedder
from clew.cli.naming import tell_why
from clew.cli.telling import place
from clew.doctor import examine
from clew.show import Shown

_SHOWN = 10


def register(app: typer.Typer) -> None:
    """Register this module's commands."""
    for command in (status, show, verify, doctor, demo):
        app.command()(command)


def status(
    documents: Annotated[bool, typer.Option("--documents", help="List every document.")] = False,
    kb: Kb = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Say how much the knowledge base holds."""
    run(lambda: _status(enter(kb, as_json), documents), debug)


async def _status(ctx: Door, documents: bool) -> None:
    async with ctx.kb(embed=False) as base:
        found = await base.status()
        names = sorted(await base.store.sources()) if documents else []
        failures = await base.store.failures()
    if documents:
        found["names"] = names
    if failures:
        found["failures"] = failures

    def people() -> None:
        for key, value in found.items():
            if key not in ("names", "failures"):
                out.print(f"{key:>12}  {_figure(key, value)}", markup=False)
        for failure in failures[:_SHOWN]:
            out.print(f"  chunk {failure.chunk[:12]}: {failure.reason}", markup=False)
        for name in names:
            out.print(f"  {name}", markup=False)

    ctx.show(found, people)


def _figure(key: str, value: Any) -> str:
    """Format a status figure with its unit."""
    if key == "bytes":
        return f"{value / 1e6:.1f} MB"
    if key == "spent":
        return f"{value:.4f} in money" if value else "nothing"
    return str(value) or "none"


def show(
    name: Annotated[str, typer.Argument(help="An entity's or a document's name.")],
    why: Annotated[
        bool, typer.Option("--why", help="Say which names were merged into it, and why.")
    ] = False,
    kb: Kb = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show what the knowledge base holds on one entity or document, and where it is said."""
    run(lambda: _show(enter(kb, as_json), name, why), debug)


async def _show(ctx: Door, name: str, why: bool) -> None:
    async with ctx.kb(embed=False) as base:
        if why:
            things = await base.identity.why(name)
            ctx.show({"name": name, "things": things}, lambda: tell_why(things))
            return
        found = await base.show(name)
    ctx.show(found, lambda: _tell_shown(found))


def _tell_shown(found: Shown) -> None:
    for document in found.documents:
        out.print(
            f"[bold]document[/bold] {escape(document['name'])}  "
            f"{escape(document['title'])}  {document['characters']} characters, "
            f"{document['chunks']} chunks"
        )
    for entity in found.entities:
        kind = f" ({entity['type']})" if entity["type"] else ""
        times = "1 chunk" if entity["support"] == 1 else f"{entity['support']} chunks"
        out.print(f"[bold]{escape(entity['name'])}[/bold]{escape(kind)}  in {times}")
        if entity["aliases"]:
            out.print(f"  also: {escape(', '.join(entity['aliases']))}")
        for fact in entity["facts"][:_SHOWN]:
            where = place(fact["doc"], fact["start"], fact["end"])
            out.print(f"  • {escape(fact['text'])} [cyan]{escape(where)}[/cyan]")
        if len(entity["facts"]) > _SHOWN:
            out.print(
                f"  … and {len(entity['facts']) - _SHOWN} more facts (all of them with --json)"
            )


def verify(
    repair: Annotated[
        bool, typer.Option("--repair", help="Derive arrays and vectors anew.")
    ] = False,
    kb: Kb = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Check that the knowledge base is whole: truth, arrays, vectors, spans."""
    run(lambda: _verify(enter(kb, as_json), repair), debug)


async def _verify(ctx: Door, repair: bool) -> None:
    async with ctx.kb(embed=repair) as base:
        if repair:
            with progress(ctx.json) as tell:
                await base.repair(tell)
        problems = await base.verify()

    def people() -> None:
        for problem in problems:
            out.print(f"  {problem}", style="red", markup=False)
        out.print("whole" if not problems else f"{len(problems)} problems; `clew verify --repair`")

    ctx.show({"ok": not problems, "problems": problems}, people)
    if problems:
        raise typer.Exit(1)


def doctor(kb: Kb = None, as_json: AsJson = False, debug: Debug = False) -> None:
    """Check this machine: Python, extras, embedder, models, the knowledge base."""
    run(lambda: _doctor(enter(kb, as_json)), debug)


async def _doctor(ctx: Door) -> None:
    checks = await examine(ctx.settings)

    def people() -> None:
        for check in checks:
            mark = {"ok": "[green]✓[/green]", "missing": "[yellow]–[/yellow]"}.get(
                check.state, "[red]✗[/red]"
            )
            out.print(f"{mark} {check.name}: {escape(check.message)}")

    ctx.show(checks, people)
    if any(check.state == "broken" for check in checks):
        raise typer.Exit(1)


def demo(
    question: Annotated[str, typer.Argument(help="What to ask.")] = demo_corpus.QUESTION,
    kb: Kb = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Build a small bundled corpus and answer a two-hop question over it."""
    run(lambda: _demo(enter(kb, as_json), question, kept=kb is not None), debug)


async def _demo(ctx: Door, question: str, *, kept: bool) -> None:
    from clew.cli.shapes import answer_json  # imported late: only the demo answers
    from clew.cli.telling import tell_answer

    async with demo_corpus.opened(ctx.settings, kept=kept) as base:
        if base.embed is None and not ctx.json:
            tell_no_embedder()
        with progress(ctx.json) as tell:
            added = await base.take(demo_corpus.documents(), progress=tell)
        if not added.counts.documents:
            fail("the bundled corpus is missing from this installation; reinstall clew")
        answer = await base.ask(question, k=3)
    if not ctx.json:
        counts = added.counts
        err.print(
            f"[dim]built {counts.documents} documents: {counts.entities} entities, "
            f"{counts.facts} facts[/dim]\n"
        )
        out.print(f"[bold]{escape(question)}[/bold]\n")
    ctx.show(answer_json(answer), lambda: tell_answer(answer, trace=False))
