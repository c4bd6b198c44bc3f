"""Commands that show what there is: status, show, verify, doctor, and the demo."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from clew.cli.common import (
    CommandContext,
    DebugOption,
    JsonOption,
    KbOption,
    command,
    count_of,
    describe_counts,
    err,
    fail,
    load_context,
    out,
    run,
    warn_no_embedder,
)
from clew.cli.entities import print_merges
from clew.cli.progress import show_progress
from clew.cli.render import format_place, shorten
from clew.config import Settings
from clew.doctor import check_nearest, run_checks
from clew.engine import KnowledgeBase
from clew.errors import EmbedderMismatch, Locked, StoreError
from clew.labels import hide_after_loss
from clew.show import NameDetails
from clew.text.tables import name_place
from clew.text.unicode import clean, digest
from clew.types import Document

QUESTION = "In which town was the engineer of the Marrow Bridge born?"


async def load_documents() -> AsyncIterator[Document]:
    """Yield the bundled documents: one Markdown file each, its first line the title."""
    for path in sorted((files("clew") / "demo_corpus").iterdir(), key=lambda path: path.name):
        if path.name.endswith(".md"):
            head, _, body = clean(path.read_text(encoding="utf-8")).partition("\n")
            title, text = head.lstrip("# ").strip(), body.strip()
            yield Document(digest(title, text), text, title, (path.name,))


@asynccontextmanager
async def open_demo(settings: Settings, *, kept: bool) -> AsyncIterator[KnowledgeBase]:
    """Open a knowledge base in the configured folder, or in a temporary one."""
    with tempfile.TemporaryDirectory(prefix="clew-demo-") as folder:
        used = settings if kept else settings.model_copy(update={"kb": Path(folder) / "kb"})
        base = await KnowledgeBase.open(used, create=True)
        try:
            yield base
        finally:
            await base.close()


_MAX_SHOWN = 10
_MAX_DESCRIPTION = 500  # characters


def register(app: typer.Typer) -> None:
    """Register this module's commands."""
    for one in (status, verify, doctor, demo):
        app.command()(one)
    # A name may be that of an option: `clew show --onto`.
    app.command(context_settings={"ignore_unknown_options": True})(show)


@command
async def status(
    ctx: CommandContext,
    documents: Annotated[bool, typer.Option("--documents", help="List every document.")] = False,
) -> None:
    """Show the size and state of the knowledge base."""
    async with ctx.open_kb(embed=False) as base:
        found = await base.status()
        names = sorted(await base.store.sources()) if documents else []
        failures = await base.store.failures()
    if documents:
        found["names"] = names
    if failures:
        found["failures"] = failures

    def people() -> None:
        for key, value in found.items():
            if key not in ("names", "failures", "by_rules", "calls", "tokens"):
                shown = _format_spent(found) if key == "spent" else _format_figure(key, value)
                if key == "failed" and found["by_rules"]:
                    shown += f" ({found['by_rules']} more by rules; `clew add --retry` asks again)"
                out.print(f"{key:>12}  {shown}", markup=False)
        for failure in failures[:_MAX_SHOWN]:
            out.print(f"  chunk {failure.chunk[:12]}: {failure.reason}", markup=False)
        for name in names:
            out.print(f"  {name}", markup=False)

    ctx.show(found, people)


def _format_figure(key: str, value: Any) -> str:
    """Format a status figure with its unit."""
    if key == "bytes":
        return f"{value / 1e6:.1f} MB"
    if key == "trees":
        return ", ".join(f"{name} ({state})" for name, state in value.items()) or "none"
    return str(value) or "none"


def _format_spent(status: dict[str, Any]) -> str:
    """Format what models have cost: calls without a price are not "nothing"."""
    calls, tokens, money = status["calls"], status["tokens"], status["spent"]
    if not calls:
        return f"{money:.4f}" if money else "nothing"
    used = f"{count_of(calls, 'model call')}, {count_of(tokens, 'token')}"
    return f"{money:.4f} ({used})" if money else f"{used} (no price is set for this model)"


@command
async def show(
    ctx: CommandContext,
    name: Annotated[str, typer.Argument(help="An entity's or a document's name.")],
    why: Annotated[
        bool, typer.Option("--why", help="Show which names were merged into it, and why.")
    ] = False,
) -> None:
    """Show the facts about an entity or document, with their sources."""
    async with ctx.open_kb(embed=False) as base:
        if why:
            things = await base.identity.explain(name)
            ctx.show({"name": name, "things": things}, lambda: print_merges(things))
            return
        found = await base.show(name)
    ctx.show(found, lambda: _print_shown(found))


def _print_shown(found: NameDetails) -> None:
    for document in found.documents:
        what = "row" if "document" in document else "document"
        out.print(
            f"[bold]{what}[/bold] {escape(document['name'])}  "
            f"{escape(document['title'])}  {document['characters']} characters, "
            f"{count_of(document['chunks'], 'chunk')}"
        )
        out.print(f"  {escape(shorten(document['text'], _MAX_DESCRIPTION))}")
    for entity in found.entities:
        kind = f" ({entity['type']})" if entity["type"] else ""
        times = count_of(entity["support"], "chunk")
        out.print(f"[bold]{escape(entity['name'])}[/bold]{escape(kind)}  in {times}")
        if entity["aliases"]:
            out.print(f"  also: {escape(', '.join(entity['aliases']))}")
        if entity["description"]:
            out.print(f"  {escape(shorten(entity['description'], _MAX_DESCRIPTION))}")
        for name, value in entity["attributes"].items():
            out.print(f"  {escape(name)}: {escape(shorten(str(value), _MAX_DESCRIPTION))}")
        for fact in entity["facts"][:_MAX_SHOWN]:
            named = name_place(fact["doc"], fact["heading"])
            where = format_place(named, fact["start"], fact["end"])
            out.print(f"  • {escape(fact['text'])} [cyan]{escape(where)}[/cyan]")
        if len(entity["facts"]) > _MAX_SHOWN:
            out.print(
                f"  … and {len(entity['facts']) - _MAX_SHOWN} more facts (all of them with --json)"
            )


_HIDDEN = (
    "  labels were lost: {} without a known label can be seen by no reader with labels until "
    "`clew label DOC…` says who may"
)
_REMEDIES = (
    "{}; `clew verify --repair` derives again what can be derived, "
    "`clew restore FILE` restores a backup"
)
_NOT_DERIVED = (
    "{} left that cannot be derived again; restore a backup: `clew restore FILE`, "
    "or add the documents to a new knowledge base"
)


@command
async def verify(
    ctx: CommandContext,
    repair: Annotated[
        bool, typer.Option("--repair", help="Rebuild arrays and missing vectors.")
    ] = False,
) -> None:
    """Check the integrity of the knowledge base: database, arrays, vectors, spans."""
    async with ctx.open_kb(embed=repair, check=False) as base:
        lost = await base.store.find_losses() if repair else []
        hidden: list[str] = []
        problems = await _repair(base, ctx.json) if repair else []
        if problems:
            lost = []  # nothing was changed
        elif repair:
            hidden = await hide_after_loss(base.store)
            await base.store.accept_losses()
        problems = problems or await base.verify()

    def people() -> None:
        for loss in lost:
            out.print(f"  accepted: {loss}", style="yellow", markup=False)
        if hidden:
            out.print(_HIDDEN.format(count_of(len(hidden), "document")), style="yellow")
        for problem in problems:
            out.print(f"  {problem}", style="red", markup=False)
        remedy = _NOT_DERIVED if repair else _REMEDIES
        told = remedy.format(count_of(len(problems), "problem")) if problems else "OK"
        out.print(told, markup=False)

    ctx.show({"ok": not problems, "problems": problems, "accepted": lost, "hidden": hidden}, people)
    if problems:
        raise typer.Exit(1)


async def _repair(base: KnowledgeBase, quiet: bool) -> list[str]:
    """Derive again what can be; return the damage of the tables that prevents it."""
    try:
        with show_progress(quiet) as report:
            await base.repair(report)
    except (Locked, EmbedderMismatch):
        raise  # no damage: they say themselves what to do
    except StoreError:
        if problems := await base.verify():
            return problems
        raise
    return []


@command
async def doctor(
    ctx: CommandContext,
    ann: Annotated[
        bool, typer.Option(help="Measure the recall of approximate vector search, too.")
    ] = False,
) -> None:
    """Check the installation: Python, extras, embedder, models, knowledge base."""
    checks = await run_checks(ctx.settings)
    if ann:
        checks += await check_nearest(ctx.settings)

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
    question: Annotated[str, typer.Argument(help="What to ask.")] = QUESTION,
    kb: KbOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Build a small bundled corpus and answer a two-hop question over it."""
    run(lambda: _demo(load_context(kb, as_json), question, kept=kb is not None), debug)


async def _demo(ctx: CommandContext, question: str, *, kept: bool) -> None:
    from clew.cli.render import print_answer
    from clew.json_output import answer_json

    async with open_demo(ctx.settings, kept=kept) as base:
        if base.embed is None and not ctx.json:
            warn_no_embedder()
        with show_progress(ctx.json) as report:
            added = await base.take(load_documents(), progress=report)
        if not added.counts.documents:
            fail("the bundled corpus is missing from this installation; reinstall clew")
        answer = await base.ask(question, k=3)
    if not ctx.json:
        counts = added.counts
        err.print(f"[dim]built {describe_counts(counts)}[/dim]\n")
        out.print(f"[bold]{escape(question)}[/bold]\n")
    ctx.show(answer_json(answer), lambda: print_answer(answer, trace=False))
