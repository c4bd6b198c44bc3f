"""The commands that change a knowledge base: init, add, update, rm, reembed, backup."""

import json
import shlex
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.bars import progress, spent
from clew.cli.door import AsJson, Debug, Door, Kb, enter, out, plain, run
from clew.config import TEMPLATE, Settings
from clew.errors import ConfigError
from clew.ingest.build import Added
from clew.ingest.named import documents_named, gone_files
from clew.ingest.plan import Plan

if TYPE_CHECKING:
    from clew.engine import KnowledgeBase

_SHOWN_SKIPS = 5
_SHOWN_REASONS = 4
_SHOWN_GONE = 3

Paths = Annotated[list[Path], typer.Argument(help="Files and folders.", metavar="PATH…")]
Extractor = Annotated[
    str | None, typer.Option(help="How entities and facts are found: offline needs no model.")
]


def register(app: typer.Typer) -> None:
    """Register this module's commands."""
    for command in (init, add, update, rm, reembed, backup):
        app.command()(command)


def init(
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    kb: Kb = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Write a commented clew.toml here."""
    # Not `load_context`: an invalid file may be here, which is then to be overwritten.
    run(lambda: _init(Door(Settings(), as_json), kb, force), debug)


async def _init(ctx: Door, kb: Path | None, force: bool) -> None:
    file = _settings_written(kb, force)
    ctx.show({"file": file}, lambda: out.print("wrote clew.toml; next: `clew add PATH…`"))


def _settings_written(kb: Path | None, force: bool) -> Path:
    path = Path("clew.toml")
    if path.exists() and not force:
        raise ConfigError("clew.toml is already here; `clew init --force` overwrites it")
    try:
        path.write_bytes(_template(kb).encode())
    except UnicodeEncodeError as error:
        raise ConfigError(f"clew.toml cannot name {str(kb)!r}, which is not UTF-8") from error
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise ConfigError(f"cannot write {path}: {why}") from error
    return path


def _template(kb: Path | None) -> str:
    """Return the commented settings file, with `kb` set if a folder is given."""
    if kb is None:
        return TEMPLATE
    # TOML accepts JSON strings, but not escaped surrogate pairs: so no ASCII escapes.
    return TEMPLATE.replace('# kb = "kb"', f"kb = {json.dumps(str(kb), ensure_ascii=False)}", 1)


def add(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Files and folders.", metavar="PATH…")
    ] = None,
    extractor: Extractor = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="Take up chunks that failed; needs no PATH.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would cost, and do nothing.")
    ] = False,
    kb: Kb = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Build a knowledge base from files and folders, or extend it; unchanged files cost nothing."""
    if not paths and not retry:
        raise typer.BadParameter("name at least one file or folder", param_hint="PATH…")
    if dry_run:
        run(lambda: _plan(enter(kb, as_json), paths or [], extractor), debug)
    else:
        run(lambda: _add(enter(kb, as_json), paths or [], extractor, retry), debug)


def update(
    paths: Paths,
    extractor: Extractor = None,
    kb: Kb = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Take in files that changed, as add does, and name those that are no longer there."""
    run(lambda: _update(enter(kb, as_json), paths, extractor), debug)


async def _add(ctx: Door, paths: list[Path], extractor: str | None, retry: bool = False) -> None:
    await ctx.check_first(paths)
    async with ctx.kb(create=True) as base:
        added = await _added(base, ctx, paths, extractor, retry)
    ctx.show(added, lambda: _tell_added(added))
    _fail_if_nothing(added)


async def _update(ctx: Door, paths: list[Path], extractor: str | None) -> None:
    await ctx.check_first(paths)
    async with ctx.kb(create=True) as base:
        added = await _added(base, ctx, paths, extractor)
        gone = await gone_files(base.store, paths)

    def people() -> None:
        _tell_added(added)
        if gone:
            out.print(_no_longer_there(gone), style="yellow", markup=False)

    ctx.show(plain(added) | {"gone": gone}, people)
    _fail_if_nothing(added)


async def _added(
    base: "KnowledgeBase", ctx: Door, paths: list[Path], extractor: str | None, retry: bool = False
) -> Added:
    with progress(ctx.json, lambda: base.models.meter.total) as tell:
        return await base.add(paths, extractor=extractor, retry=retry, progress=tell)


def _fail_if_nothing(added: Added) -> None:
    if added.skipped and not (added.added or added.updated or added.unchanged):
        raise typer.Exit(1)


def _no_longer_there(files: list[str]) -> str:
    shown = " ".join(shlex.quote(file) for file in files[:_SHOWN_GONE])
    if len(files) == 1:
        return f"1 file is no longer there; `clew rm {shown}` removes what it said"
    more = f" … ({len(files)} names; all of them with --json)" * (len(files) > _SHOWN_GONE)
    return f"{len(files)} files are no longer there; `clew rm {shown}`{more} removes what they said"


async def _plan(ctx: Door, paths: list[Path], extractor: str | None) -> None:
    # For a knowledge base that does not exist yet, use an empty one in a temporary folder.
    with tempfile.TemporaryDirectory(prefix="clew-plan-") as folder:
        exists = (ctx.settings.kb / "kb.sqlite").exists()
        target = ctx if exists else replace(ctx, settings=ctx.at(Path(folder) / "kb"))
        async with target.kb(create=not exists) as base:
            plan = await base.plan(paths, extractor=extractor)
    ctx.show(plan, lambda: _tell_plan(plan))


def _tell_plan(plan: Plan) -> None:
    out.print(
        f"{plan.documents} documents to take in ({plan.unchanged} unchanged, "
        f"{len(plan.skipped)} skipped{_gone(plan.removed)}), {plan.chunks} chunks"
    )
    if plan.calls or plan.cached_calls:
        out.print(
            f"{plan.calls} model calls ({plan.cached_calls} more already paid for), "
            f"{plan.prompt_tokens} + {plan.completion_tokens} tokens, {plan.money:.4f} in money"
        )
    else:
        out.print("no model calls")
    guess = " (a first guess; the next one knows this model better)" if plan.guessed else ""
    out.print(f"about {plan.seconds:.0f} s{guess}; nothing was written")


def _gone(rows: int) -> str:
    return f", {rows} gone from their files" if rows else ""


def _tell_added(added: Added) -> None:
    counts = added.counts
    out.print(
        f"{added.added} added, {added.updated} updated, {added.unchanged} unchanged, "
        f"{len(added.skipped)} skipped{_gone(added.removed)}"
    )
    if usage := spent(added.usage):
        out.print(f"the model: {usage} ({added.usage.cached_calls} calls were remembered)")
    if added.dropped:
        most = sorted(added.dropped.items(), key=lambda one: (-one[1], one[0]))
        reasons = ", ".join(f"{many} × {reason}" for reason, many in most[:_SHOWN_REASONS])
        more = f", … ({len(most)} reasons; all of them with --json)" * (len(most) > _SHOWN_REASONS)
        out.print(f"left out of its answers: {reasons}{more}", markup=False)
    for skip in added.skipped[:_SHOWN_SKIPS]:
        where = f", line {skip.line}" if skip.line else ""
        out.print(f"  skipped {skip.name}{where}: {skip.reason}", style="yellow", markup=False)
    if len(added.skipped) > _SHOWN_SKIPS:
        out.print(f"  … and {len(added.skipped) - _SHOWN_SKIPS} more (all of them with --json)")
    out.print(
        f"knowledge base: {counts.documents} documents, {counts.chunks} chunks, "
        f"{counts.entities} entities, {counts.facts} facts"
    )
    if counts.failed:
        out.print(
            f"{counts.failed} chunks failed: see `clew status`, then `clew add --retry`",
            style="yellow",
        )


def rm(
    documents: Annotated[
        list[str], typer.Argument(help="Names of documents, or of their folders.", metavar="DOC…")
    ],
    kb: Kb = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Remove documents and all that only they said."""
    run(lambda: _rm(enter(kb, as_json), documents), debug)


async def _rm(ctx: Door, documents: list[str]) -> None:
    async with ctx.kb(embed=False) as base:
        has_tree = (await base.status())["communities"] > 0
    # Updating a tree needs vectors; without a tree the embedder is not loaded.
    async with ctx.kb(embed=has_tree) as base:
        names = documents_named(documents, await base.store.sources())
        counts = await base.remove(names)
    ctx.show(
        {"removed": names, "counts": counts},
        lambda: out.print(f"removed {len(names)}; {counts.documents} documents remain"),
    )


def reembed(kb: Kb = None, as_json: AsJson = False, debug: Debug = False) -> None:
    """Make all vectors anew with the embedder of the settings."""
    run(lambda: _reembed(enter(kb, as_json)), debug)


async def _reembed(ctx: Door) -> None:
    async with ctx.kb() as base:
        with progress(ctx.json) as tell:
            embedder = await base.reembed(tell)
    ctx.show({"embedder": embedder}, lambda: out.print(f"embedded anew with {embedder}"))


def backup(
    file: Annotated[Path, typer.Argument(help="Where to write the copy of kb.sqlite.")],
    kb: Kb = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Copy the truth (kb.sqlite) while others read and write; the rest is derived from it."""
    run(lambda: _backup(enter(kb, as_json), file), debug)


async def _backup(ctx: Door, file: Path) -> None:
    async with ctx.kb(embed=False) as base:
        size = await base.backup(file)
    ctx.show(
        {"file": file, "bytes": size}, lambda: out.print(f"wrote {file} ({size / 1e6:.1f} MB)")
    )
