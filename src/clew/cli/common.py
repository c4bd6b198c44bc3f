"""Shared by all commands: options, context, error reporting, JSON output and text tables."""

import asyncio
import inspect
import json
import re
import shlex
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from clew import sync
from clew.config import Settings, load_settings
from clew.errors import ClewError, ConfigError, InputError, ModelError, StoreError
from clew.kb_address import KbLocation, parse_location
from clew.machine_memory import is_lack_of_memory, use_address_space_sparingly
from clew.version import pip_install_command

if TYPE_CHECKING:
    from clew.engine import KnowledgeBase
    from clew.recipes.registry import RecipeSet
    from clew.store.protocol import Counts

T = TypeVar("T")
_SHOWN_GONE = 3
KbOption = Annotated[
    Any,
    typer.Option(
        "--kb",
        parser=parse_location,
        metavar="PATH",
        help="Folder of the knowledge base, or its postgresql:// address.",
        show_default="./kb",
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON document and nothing else.")
]
DebugOption = Annotated[
    bool, typer.Option("--debug", help="Show the traceback when something fails.")
]
# Escape sequences, C1 controls and overrides of the reading direction; not tab and newline.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def make_printable(text: str) -> str:
    """Replace characters by which a text could command the terminal; all output passes here."""
    return _UNPRINTABLE.sub("\ufffd", text)


class SafeConsole(Console):
    """A console on which documents, names and model replies cannot command the terminal."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Render to segments; our own styles are not text."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(make_printable(segment.text), segment.style)


out = SafeConsole(highlight=False, soft_wrap=True)
err = SafeConsole(stderr=True, highlight=False, soft_wrap=True)


@dataclass(frozen=True)
class CommandContext:
    """Settings and output format of one command call."""

    settings: Settings
    json: bool = False

    @asynccontextmanager
    async def open_kb(
        self,
        *,
        create: bool = False,
        embed: bool = True,
        check: bool = True,
        restoring: bool = False,
    ) -> AsyncIterator["KnowledgeBase"]:
        """Open the knowledge base for the length of a command."""
        from clew.engine import KnowledgeBase

        base = await KnowledgeBase.open(
            self.settings, create=create, embed=embed, check=check, restoring=restoring
        )
        if embed and base.embed is None and not self.json:
            warn_no_embedder()
        try:
            yield base
        finally:
            await base.close()

    @asynccontextmanager
    async def open_kb_to_edit(self) -> AsyncIterator["KnowledgeBase"]:
        """Open it for a change that seldom needs the embedder; load that only if it does.

        Trees are updated with vectors; descriptions that the change merged anew may need some.
        """
        async with self.open_kb(embed=False) as base:
            has_tree = (await base.store.counts()).communities > 0
        try:
            async with self.open_kb(embed=has_tree) as base:
                yield base
        finally:
            await self._embed_pending()

    async def _embed_pending(self) -> None:
        """Embed the descriptions that a change left without a vector; warn if that fails."""
        async with self.open_kb(embed=False) as base:
            pending = await base.count_pending()
        if not pending:
            return
        try:
            async with self.open_kb() as base:
                await base.builder.embed_details()
                pending, reason = await base.count_pending(), ""
        except (ModelError, ConfigError) as error:
            reason = f" ({error})"
        if pending:
            err.print(
                f"descriptions of {pending} elements have no vector yet{reason}; "
                "`clew verify --repair` embeds them",
                style="yellow",
                markup=False,
            )

    @asynccontextmanager
    async def open_nonempty_kb(self, *, embed: bool = True) -> AsyncIterator["KnowledgeBase"]:
        """Open a knowledge base for questions; raise if it is empty."""
        async with self.open_kb(embed=embed) as base:
            if not (await base.store.counts()).documents:
                raise StoreError(
                    f"the knowledge base in {self.settings.kb} is empty; "
                    "add documents with `clew add PATH…`"
                )
            if not self.json:
                base.progress = FirstUseReport()
            yield base

    async def check_paths(self, paths: Sequence[Path]) -> None:
        """Raise for invalid paths before a knowledge base is created for them."""
        from clew.stores.opening import is_knowledge_base

        if not is_knowledge_base(self.settings):
            from clew.ingest.files import find_files

            await asyncio.to_thread(find_files, paths)

    @cached_property
    def recipes(self) -> "RecipeSet":
        """All recipes by name, with those of clew.toml."""
        from clew.recipes.configure import add_own_recipes

        return add_own_recipes(self.settings.recipes, self.settings.file)

    def with_parameters(
        self, names: Sequence[str], changes: Sequence[str]
    ) -> tuple["CommandContext", list[str]]:
        """Return a context that has these recipes with `--set field=value`, and their names."""
        if not changes:
            return self, list(names)
        from clew.recipes.configure import read_change
        from clew.recipes.registry import resolve_recipe

        own, named = dict(self.settings.recipes), list[str]()
        for name in names:
            recipe = resolve_recipe(name, self.recipes)
            pairs = [read_change(recipe, one) for one in changes]
            told = "-".join(f"{place.rpartition('.')[2]}-{value}" for place, value in pairs)
            called = re.sub(r"[^\w.-]+", "-", f"{name}-with-{told}")[:80]
            own[called] = {"base": name, "set": dict(pairs)}
            named.append(called)
        settings = self.settings.model_copy(update={"recipes": own})
        return replace(self, settings=settings), named

    def settings_at(self, folder: KbLocation) -> Settings:
        """Return the settings with another knowledge base."""
        return self.settings.model_copy(update={"kb": folder})

    def show(self, value: Any, people: Callable[[], None]) -> None:
        """Print JSON with --json, else call `people` to print text."""
        if self.json:
            from clew.json_output import to_json_value

            text = json.dumps(to_json_value(value), ensure_ascii=False, allow_nan=False)
            # As escapes, which mean the same: JSON leaves C1 controls as they are.
            text = _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
            sys.stdout.write(text + "\n")
        else:
            people()


class FirstUseReport:
    """Says that a question has to wait for vectors which no other has needed before."""

    def __init__(self) -> None:
        self._share = -1

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Print a line at first, and one for each further quarter."""
        share = 4 * done // total if total else 0
        if stage == "embed" and share > self._share:
            self._share = share
            text = (
                "this recipe is the first to read vectors that were not made yet; it is done once"
            )
            err.print(f"{text}: {done:,} of {total:,}" if total else text, style="dim")


def warn_no_embedder() -> None:
    """Warn that there is no embedder, so no semantic search, and how to install one."""
    err.print(
        "no embedder is installed, so only keyword search (bm25) works; run "
        f"`{pip_install_command('local')}`, then `clew reembed`",
        style="yellow",
        markup=False,
    )


_NO_MEMORY = (
    "there is not enough memory for this; what is stored is unchanged: close other programs, raise "
    "the limit of this process, or set memory in clew.toml if it was building; `clew import "
    "--no-embed` and `clew search --recipe bm25` do without the embedder"
)


def load_context(
    kb: KbLocation | None, as_json: bool = False, settings: Path | None = None
) -> CommandContext:
    """Load the settings and shared options; call it within `run`, as settings may be invalid."""
    found = load_settings(settings)
    return CommandContext(found.model_copy(update={"kb": kb}) if kb else found, as_json)


def run(work: Callable[[], Coroutine[Any, Any, T]], debug: bool, stopped: str = "") -> T:
    """Run a command; errors become one sentence and exit code 1.

    `stopped` is told of a command that runs until it is interrupted: that is no error.
    """
    try:
        use_address_space_sparingly()
        return sync.run(work())
    except ClewError as error:
        if debug:
            raise
        fail(str(error))
    except (MemoryError, OSError, RuntimeError, ImportError, ExceptionGroup) as error:
        if debug or not is_lack_of_memory(error):
            raise
        fail(_NO_MEMORY)
    except KeyboardInterrupt:
        if stopped:
            err.print(stopped)
            raise typer.Exit from None
        fail("interrupted; finished work is saved, and the same command resumes from there")


def command(
    work: Callable[..., Coroutine[Any, Any, None]], stopped: str = ""
) -> Callable[..., None]:
    """Make a command of an async function of a context; adds --kb, --json and --debug."""
    own = inspect.signature(work)

    def call(*, kb: KbOption, as_json: JsonOption, debug: DebugOption, **given: Any) -> None:
        async def job() -> None:
            await work(load_context(kb, as_json), **given)

        run(job, debug, stopped)

    shared = {"kb": (KbOption, None), "as_json": (JsonOption, False), "debug": (DebugOption, False)}
    options = [one.replace(kind=one.KEYWORD_ONLY) for one in list(own.parameters.values())[1:]]
    options += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in shared.items()
    ]
    call.__name__, call.__doc__ = work.__name__, work.__doc__
    call.__signature__ = own.replace(parameters=options)  # type: ignore[attr-defined]
    call.__annotations__ = {option.name: option.annotation for option in options}
    return call


def fail(sentence: str) -> NoReturn:
    """Print an error on stderr and exit with code 1."""
    err.print(f"[red]error:[/red] {_escape(sentence)}")
    raise typer.Exit(1)


def _escape(text: str) -> str:
    return text.replace("[", r"\[")


def read_text(file: Path) -> str:
    """Read a text file given by the user; raise `InputError` if it cannot be read."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is not UTF-8 text; save it as UTF-8") from error
    except OSError as error:
        raise InputError(f"cannot read {file}: {(error.strerror or str(error)).lower()}") from error


def to_valid_text(text: str) -> str:
    """Replace bytes that are invalid in the terminal's encoding by `?`."""
    return text.encode("utf-8", "replace").decode("utf-8")


def count_of(many: int, one: str, several: str = "") -> str:
    """Format a number with its noun: "1 document", "3 documents"."""
    return f"{many:,} {one if many == 1 else several or one + 's'}"


def describe_counts(counts: "Counts") -> str:
    """Format the size of a knowledge base."""
    return ", ".join(
        (
            count_of(counts.documents, "document"),
            count_of(counts.chunks, "chunk"),
            count_of(counts.entities, "entity", "entities"),
            count_of(counts.facts, "fact"),
        )
    )


_COLUMN_GAP = "  "


def format_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Text:
    """Format a table as wide as needed: no column is dropped and no cell truncated.

    A cell in `**` is bold, as in Markdown.
    """
    shown = [[_format_cell(cell) for cell in row] for row in rows]
    heads = [Text(title, style="bold") for title in titles]
    widths = [
        max(cell_len(cell.plain) for cell in column) for column in zip(heads, *shown, strict=True)
    ]
    return Text("\n", no_wrap=True, overflow="ignore").join(
        _format_line(line, widths) for line in (heads, *shown)
    )


def _format_line(cells: Sequence[Text], widths: Sequence[int]) -> Text:
    line = Text()
    for cell, width in zip(cells, widths, strict=True):
        line.append_text(cell).append(" " * (width - cell_len(cell.plain)) + _COLUMN_GAP)
    line.rstrip()
    return line


def _format_cell(cell: str) -> Text:
    if cell.startswith("**") and cell.endswith("**") and len(cell) > 4:
        return Text(cell[2:-2], style="bold")
    return Text(cell.strip("`"))


def describe_missing_files(files: Sequence[str], *, watched: bool = False) -> str:
    """Say which files are gone, and how their documents are removed."""
    shown = " ".join(shlex.quote(file) for file in files[:_SHOWN_GONE])
    itself = ", and `clew watch --remove` does so by itself" * watched
    if len(files) == 1:
        return f"1 file no longer exists; `clew rm {shown}` removes its document{itself}"
    more = f" … ({len(files)} names; all of them with --json)" * (len(files) > _SHOWN_GONE)
    gone = f"{len(files)} files no longer exist; `clew rm {shown}`{more}"
    return f"{gone} removes their documents{itself}"
