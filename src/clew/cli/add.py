"""The commands that change a knowledge base: init, add, update, rm, reembed, backup, restore."""

import asyncio
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clew.cli.common import (
    CommandContext,
    DebugOption,
    JsonOption,
    KbOption,
    command,
    count_of,
    describe_counts,
    describe_missing_files,
    err,
    out,
    run,
)
from clew.cli.progress import format_usage, no_usage, show_progress
from clew.config import Settings
from clew.config_template import TEMPLATE
from clew.errors import ConfigError, InputError
from clew.ingest.build import AddResult
from clew.ingest.cost import CostEstimate
from clew.ingest.document_names import find_missing_files, resolve_document_names
from clew.ingest.fetch import STDIN, document_name_of, fetch_sources, split_sources
from clew.ingest.readers.source import Skipped, SourceFile
from clew.json_output import to_json_value
from clew.kb_address import DatabaseAddress, KbLocation
from clew.labels import check_labels, save_labels
from clew.llm.roles import has_model

if TYPE_CHECKING:
    from clew.engine import KnowledgeBase

_SHOWN_SKIPS = 5
_MINUTE = 60  # seconds
_SHOWN_REASONS = 4
# Advice that a failure carries itself; the command says it once.
_OWN_ADVICE = re.compile(
    r"(?:: (?:try a larger model|raise max_tokens)|; a longer timeout may help)\b(?=[.\s]*$|[;,.])"
)
SourcesArgument = Annotated[
    list[str] | None,
    typer.Argument(help="Files, folders, web addresses, or - for standard input.", metavar="PATH…"),
]
PathsArgument = Annotated[list[Path], typer.Argument(help="Files and folders.", metavar="PATH…")]
ExtractorOption = Annotated[
    str | None, typer.Option(help="Extraction method; offline needs no model.")
]
ForRecipeOption = Annotated[
    str | None, typer.Option(help="Split documents as this recipe wants it (its `chunk`).")
]
LabelOption = Annotated[
    list[str] | None,
    typer.Option(help="Label of the documents, for readers with that right: team=legal."),
]
RunnerOption = Annotated[
    str | None,
    typer.Option(help="Who extracts and embeds: workers, auto (Ray), or ray://HOST:PORT."),
]
BudgetOption = Annotated[
    float | None, typer.Option(min=0, help="With --on: money that this build may spend.")
]


def register(app: typer.Typer) -> None:
    """Register this module's commands."""
    for one in (init, add, update, rm, label_, reembed, backup, restore):
        app.command(name=one.__name__.rstrip("_"))(one)


def init(
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    kb: KbOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Write a commented clew.toml here."""
    # Not `load_context`: an invalid file may be here, which is then to be overwritten.
    run(lambda: _init(CommandContext(Settings(), as_json), kb, force), debug)


async def _init(ctx: CommandContext, kb: KbLocation | None, force: bool) -> None:
    file = _write_settings(kb, force)

    def people() -> None:
        if isinstance(kb, DatabaseAddress) and kb.has_password:
            out.print(
                "clew.toml holds the password of the database, so only you may read it; to keep it "
                "out of the file, leave it to PGPASSWORD or ~/.pgpass"
            )
        out.print("wrote clew.toml; next: `clew add PATH…`")

    ctx.show({"file": file}, people)


def _write_settings(kb: KbLocation | None, force: bool) -> Path:
    path = Path("clew.toml")
    if path.exists() and not force:
        raise ConfigError("clew.toml already exists; `clew init --force` overwrites it")
    try:
        text = _settings_template(kb).encode()
        if isinstance(kb, DatabaseAddress) and kb.has_password:
            # Before the password is in it: also where others may read the file that is there.
            path.touch(mode=0o600)
            path.chmod(0o600)
        path.write_bytes(text)
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"the path {str(kb)!r} is not valid UTF-8 and cannot be written to clew.toml"
        ) from error
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise ConfigError(f"cannot write {path}: {why}") from error
    return path


def _settings_template(kb: KbLocation | None) -> str:
    """Return the commented settings file, with `kb` set if a folder is given."""
    if kb is None:
        return TEMPLATE
    # TOML accepts JSON strings, but not escaped surrogate pairs: so no ASCII escapes.
    return TEMPLATE.replace(
        '# kb = "kb"', f"kb = {json.dumps(_write_location(kb), ensure_ascii=False)}", 1
    )


def _write_location(kb: KbLocation) -> str:
    """The location as it is read again; a database's without the default schema's name."""
    return kb.full_url if isinstance(kb, DatabaseAddress) else str(kb)


@command
async def add(
    ctx: CommandContext,
    paths: SourcesArgument = None,
    extractor: ExtractorOption = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="Retry chunks whose extraction failed; needs no PATH.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Estimate the cost without writing anything.")
    ] = False,
    probe: Annotated[
        bool, typer.Option("--probe", help="With --dry-run: time one model call.")
    ] = False,
    fallback: Annotated[
        bool, typer.Option("--fallback", help="Extract by rules where the model fails.")
    ] = False,
    recipe: ForRecipeOption = None,
    label: LabelOption = None,
    name: Annotated[
        str, typer.Option(help="What standard input is called; else it is named by its content.")
    ] = "",
    allow_private: Annotated[
        bool, typer.Option("--allow-private", help="Fetch web addresses of a private network too.")
    ] = False,
    on: RunnerOption = None,
    budget: BudgetOption = None,
) -> None:
    """Build a knowledge base from files and folders, or extend it; unchanged files cost nothing."""
    if not paths and not retry:
        raise typer.BadParameter("give at least one file or folder", param_hint="PATH…")
    check_recipe(ctx, recipe)
    ctx = _with_fallback(ctx) if fallback else ctx
    files, outside = split_sources(paths or [])
    await ctx.check_paths(files)
    with tempfile.TemporaryDirectory(prefix="clew-fetch-") as folder:
        fetched, lost = await _fetch(outside, Path(folder), name, allow_private, bool(files))
        if dry_run:
            await _dry_run(ctx, [*files, *fetched], extractor, recipe, probe)
            return
        async with ctx.open_kb(create=True) as base, _run_elsewhere(base, on, budget):
            how = {"extractor": extractor, "recipe": recipe, "labels": check_labels(label or ())}
            added = await run_add(base, ctx, [*files, *fetched], retry=retry, **how)
            reason = await _find_common_reason(base, added)
    added = replace(added, skipped=(*lost, *added.skipped))
    if said := _name_input(outside, fetched):
        added = replace(added, note=" ".join(filter(None, (said, added.note))))
    by_rules = ctx.settings.extract.fallback == "offline"
    ctx.show(added, lambda: print_added(added, by_rules=by_rules, reason=reason))
    _fail_if_nothing_added(added, by_rules=by_rules)


def _name_input(outside: Sequence[str], fetched: Sequence[SourceFile]) -> str:
    """Say what standard input is called."""
    if STDIN not in outside:
        return ""
    pages = {document_name_of(one) for one in outside if one != STDIN}
    called = [one.name for one in fetched if one.name not in pages]
    return f"standard input is the document {called[0]}" if called else ""


async def _fetch(
    outside: Sequence[str], folder: Path, name: str, allow_private: bool, has_files: bool
) -> tuple[list[SourceFile], list[Skipped]]:
    """Fetch what is no file; return what came, and what did not beside it."""
    if name and STDIN not in outside:
        raise ConfigError("--name is for standard input; use it with `clew add -`")
    found = await asyncio.to_thread(
        fetch_sources, outside, folder, sys.stdin.buffer, name=name, allow_private=allow_private
    )
    fetched = [one for one in found if isinstance(one, SourceFile)]
    lost = [one for one in found if isinstance(one, Skipped)]
    if lost and not fetched and not has_files:
        raise InputError("; ".join(one.reason for one in lost))
    return fetched, lost


@asynccontextmanager
async def _run_elsewhere(
    base: "KnowledgeBase", on: str | None, budget: float | None
) -> AsyncIterator[None]:
    """Let workers or a Ray cluster do the work of an add."""
    if budget is not None and on is None:
        raise ConfigError("--budget limits what others spend; use it with --on workers, or on Ray")
    if on is None:
        yield
        return
    from clew.cli.database import open_runner

    async with open_runner(base, on, budget) as runner:
        base.builder = replace(base.builder, runner=runner)
        yield


@command
async def update(
    ctx: CommandContext,
    paths: PathsArgument,
    extractor: ExtractorOption = None,
    recipe: ForRecipeOption = None,
) -> None:
    """Add new and changed files like `clew add`, and list files that no longer exist."""
    check_recipe(ctx, recipe)
    await ctx.check_paths(paths)
    async with ctx.open_kb(create=True) as base:
        added = await run_add(base, ctx, paths, extractor=extractor, recipe=recipe)
        gone = await find_missing_files(base.store, paths)

    def people() -> None:
        print_added(added)
        if gone:
            out.print(describe_missing_files(gone), style="yellow", markup=False)

    ctx.show(to_json_value(added) | {"gone": gone}, people)
    _fail_if_nothing_added(added)


def _with_fallback(ctx: CommandContext) -> CommandContext:
    extract = ctx.settings.extract.model_copy(update={"fallback": "offline"})
    return replace(ctx, settings=ctx.settings.model_copy(update={"extract": extract}))


def check_recipe(ctx: CommandContext, recipe: str | None) -> None:
    """Raise for an unknown recipe before a knowledge base is created for it."""
    if recipe is not None:
        from clew.recipes.registry import resolve_recipe

        resolve_recipe(recipe, ctx.recipes)


async def run_add(
    base: "KnowledgeBase", ctx: CommandContext, paths: Sequence[Path | SourceFile], **how: Any
) -> AddResult:
    """Add with a progress display."""
    models = base.models
    asked = models.chats is not None or has_model("extract", models.settings)
    with show_progress(ctx.json, (lambda: models.meter.total) if asked else no_usage) as report:
        if not ctx.json:
            base.builder = replace(base.builder, on_estimate=_tell_estimate)
        return await base.add(paths, progress=report, **how)


def _tell_estimate(plan: CostEstimate) -> None:
    costs = "; ".join(_describe_costs(plan))
    err.print(f"{count_of(plan.documents, 'document')}: {costs}", markup=False)


def _fail_if_nothing_added(added: AddResult, *, by_rules: bool = False) -> None:
    """Exit with code 1 if no document was read, or the model failed on most and no rules did it."""
    nothing = _count_skipped(added.skipped) and not (
        added.added or added.updated or added.unchanged
    )
    if nothing or (2 * added.failed > added.chunks and not by_rules):
        raise typer.Exit(1)


async def _dry_run(
    ctx: CommandContext,
    paths: Sequence[Path | SourceFile],
    extractor: str | None,
    recipe: str | None,
    probe: bool,
) -> None:
    from clew.stores.opening import is_knowledge_base

    # For a knowledge base that does not exist yet, use an empty one in a temporary folder.
    with tempfile.TemporaryDirectory(prefix="clew-plan-") as folder:
        exists = is_knowledge_base(ctx.settings)
        target = ctx if exists else replace(ctx, settings=ctx.settings_at(Path(folder) / "kb"))
        async with target.open_kb(create=not exists) as base:
            plan = await base.plan(paths, extractor=extractor, recipe=recipe, probe=probe)
    ctx.show(plan, lambda: _print_estimate(plan))


def _describe_costs(plan: CostEstimate) -> Iterator[str]:
    """Yield calls, tokens and money; the time; the disk."""
    if plan.calls or plan.cached_calls:
        cost = f"cost {plan.money:.4f}" if plan.money else "no price is set for the model"
        yield (
            f"{count_of(plan.calls, 'model call')} ({plan.cached_calls} more are cached), "
            f"{plan.prompt_tokens} + {plan.completion_tokens} tokens, {cost}"
        )
    else:
        yield "no model calls"
    if plan.seconds is None:
        yield "time unknown: no call to this model was timed yet; `--probe` times some"
    elif plan.seconds < 2 * _MINUTE:
        yield f"about {plan.seconds:.0f} s"
    else:
        yield f"about {plan.seconds / _MINUTE:.0f} minutes"
    yield f"about {plan.bytes / 1e6:.1f} MB on disk"


def _print_estimate(plan: CostEstimate) -> None:
    out.print(
        f"{count_of(plan.documents, 'document')} to add ({plan.unchanged} unchanged, "
        f"{_count_skipped(plan.skipped)} skipped{_format_removed(plan.removed)}), "
        f"{count_of(plan.chunks, 'chunk')}"
    )
    for line in _describe_costs(plan):
        out.print(line)
    if plan.note:
        out.print(plan.note, style="yellow", markup=False)
    out.print("nothing was written")


def _count_skipped(items: Sequence[Skipped]) -> int:
    return sum(not one.partly for one in items)


def _format_removed(rows: int) -> str:
    return f", {rows} removed" if rows else ""


async def _find_common_reason(base: "KnowledgeBase", added: AddResult) -> str:
    """Return why the model failed most often, where it failed on most chunks."""
    if 2 * added.failed <= added.chunks:
        return ""
    reasons = Counter(failure.reason for failure in await base.store.failures())
    return reasons.most_common(1)[0][0] if reasons else ""


def _split_advice(reason: str) -> tuple[str, str]:
    """Return a reason without the advice at its end, and what helps against it."""
    return _OWN_ADVICE.sub("", reason).rstrip(". "), _advise(reason)


def _advise(reason: str) -> str:
    if "raise max_tokens" in reason:
        return "Raise max_tokens in clew.toml"
    if "timeout" in reason or "timed out" in reason or "within" in reason:
        return "If the model is slow, raise timeout or lower max_tokens in clew.toml"
    if "HTTP" in reason or "connect" in reason:
        return "See to the endpoint, or to its address and model in clew.toml"
    return "Try a larger model, or another one"


def print_added(added: AddResult, *, by_rules: bool = False, reason: str = "") -> None:
    """Print what an addition has done.

    `by_rules` says that rules extract where a model fails, `reason` why it failed most often.
    """
    counts = added.counts
    out.print(
        f"{added.added} added, {added.updated} updated, {added.unchanged} unchanged, "
        f"{_count_skipped(added.skipped)} skipped{_format_removed(added.removed)}"
    )
    if added.copies:
        say = "1 of them says" if added.copies == 1 else f"{added.copies} of them say"
        out.print(f"{say} the same as another one: copies share one document")
    if added.note:
        out.print(added.note, style="yellow", markup=False)
    if usage := format_usage(added.usage):
        out.print(f"model usage: {usage} ({added.usage.cached_calls} calls were cached)")
    if added.dropped:
        most = sorted(added.dropped.items(), key=lambda one: (-one[1], one[0]))
        reasons = ", ".join(f"{many} × {reason}" for reason, many in most[:_SHOWN_REASONS])
        more = f", … ({len(most)} reasons; all of them with --json)" * (len(most) > _SHOWN_REASONS)
        out.print(f"dropped from the model's output: {reasons}{more}", markup=False)
    for skip in added.skipped[:_SHOWN_SKIPS]:
        where = f", line {skip.line}" if skip.line else ""
        done = "read" if skip.partly else "skipped"
        out.print(f"  {done} {skip.name}{where}: {skip.reason}", style="yellow", markup=False)
    if len(added.skipped) > _SHOWN_SKIPS:
        out.print(f"  … and {len(added.skipped) - _SHOWN_SKIPS} more (all of them with --json)")
    out.print(f"knowledge base: {describe_counts(counts)}")
    if 2 * added.failed > added.chunks:
        why, advice = _split_advice(reason)
        out.print(
            f"the model failed on {added.failed} of {count_of(added.chunks, 'chunk')}"
            + (", extracted by rules instead" if by_rules else ", without a graph for them")
            + f": {why or '`clew status` says why'}. {advice}, then `clew add --retry`"
            + ("" if by_rules else "; with --fallback it extracts by rules what fails again"),
            style="yellow" if by_rules else "red",
            markup=False,
        )
    elif counts.failed:
        failed = count_of(counts.failed, "chunk")
        out.print(f"{failed} failed: see `clew status`, then `clew add --retry`", style="yellow")


@command
async def rm(
    ctx: CommandContext,
    documents: Annotated[
        list[str], typer.Argument(help="Names of documents, or of their folders.", metavar="DOC…")
    ],
) -> None:
    """Remove documents, with the entities and facts that only they support."""
    async with ctx.open_kb_to_edit() as base:
        names = await resolve_document_names(base.store, documents)
        counts = await base.remove(names)
    ctx.show(
        {"removed": names, "counts": counts},
        lambda: out.print(f"removed {len(names)}; {_format_remaining(counts.documents)}"),
    )


def _format_remaining(documents: int) -> str:
    return f"{count_of(documents, 'document')} {'remains' if documents == 1 else 'remain'}"


@command
async def label_(
    ctx: CommandContext,
    documents: Annotated[
        list[str], typer.Argument(help="Names of documents, or of their folders.", metavar="DOC…")
    ],
    label: Annotated[
        list[str] | None, typer.Option(help="Such as team=legal; without one labels are removed.")
    ] = None,
) -> None:
    """Set the labels of documents: readers without a right to them do not see the documents."""
    async with ctx.open_kb(embed=False) as base:
        names = await resolve_document_names(base.store, documents)
        await save_labels(base.store, dict.fromkeys(names, label or ()))
    shown = ", ".join(label or ()) or "no label"
    ctx.show(
        {"documents": names, "labels": label or []},
        lambda: out.print(f"{shown}: {count_of(len(names), 'document')}", markup=False),
    )


@command
async def reembed(
    ctx: CommandContext,
    kinds: Annotated[
        str, typer.Option("--kinds", help="Only what was left for its first use, such as entity.")
    ] = "",
) -> None:
    """Recompute all vectors with the embedder in the settings."""
    async with ctx.open_kb(restoring=True) as base:
        with show_progress(ctx.json) as report:
            for kind in kinds.replace(",", " ").split():
                await base.builder.embed_deferred(kind, report)
            embedder = base.embed.name if kinds and base.embed else await base.reembed(report)
    done = f"made the vectors of {kinds}" if kinds else "recomputed all vectors"
    ctx.show({"embedder": embedder}, lambda: out.print(f"{done} with {embedder}", markup=False))


@command
async def backup(
    ctx: CommandContext,
    file: Annotated[Path, typer.Argument(help="Where to write the copy of kb.sqlite.")],
) -> None:
    """Copy the database (kb.sqlite) while it is in use; all other files are derived from it."""
    async with ctx.open_kb(embed=False) as base:
        size = await base.backup(file)
    ctx.show(
        {"file": file, "bytes": size}, lambda: out.print(f"wrote {file} ({size / 1e6:.1f} MB)")
    )


@command
async def restore(
    ctx: CommandContext,
    file: Annotated[Path, typer.Argument(help="A file that `clew backup` wrote.")],
) -> None:
    """Replace the knowledge base by a backup; arrays and missing vectors are computed again."""
    from clew.engine import KnowledgeBase

    with show_progress(ctx.json) as report:
        counts = await KnowledgeBase.restore(ctx.settings, file, report)
    ctx.show(
        {"file": file, "counts": counts},
        lambda: out.print(
            f"restored {count_of(counts.documents, 'document')} from {file}", markup=False
        ),
    )
