"""The commands for knowledge bases in a database: copy and worker."""

import asyncio
import shutil
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from importlib.util import find_spec
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.common import CommandContext, command, count_of, describe_counts, err, out
from clew.cli.progress import show_progress
from clew.config import Settings
from clew.errors import ConfigError, InputError, StoreError
from clew.kb_address import DatabaseAddress, parse_location
from clew.llm.factory import TUNED_ENCODER
from clew.stores.opening import require_driver
from clew.version import pip_install_command

if TYPE_CHECKING:
    from clew.engine import KnowledgeBase
    from clew.ingest.remote import TaskRunner

_LOOK_SECONDS = 1.0  # between looks for a first build


def register(app: typer.Typer) -> None:
    """Register this module's commands."""
    app.command(name="copy")(copy_)
    app.command(name="worker")(worker)


@command
async def copy_(
    ctx: CommandContext,
    source: Annotated[str, typer.Argument(help="A knowledge base: folder or address.")],
    target: Annotated[
        str,
        typer.Argument(
            help="Where the copy is made; nothing may be there, but a copy that was cut off."
        ),
    ],
) -> None:
    """Copy a knowledge base between folders and databases, with vectors and arrays."""
    from clew.stores.copying import copy_store, is_unfinished_copy
    from clew.stores.opening import is_knowledge_base, open_located_store

    here, there = (ctx.settings_at(parse_location(one)) for one in (source, target))
    is_there = await asyncio.to_thread(is_knowledge_base, there)
    taken = await asyncio.to_thread(open_located_store, here)
    try:
        made = await asyncio.to_thread(open_located_store, there, create=True)
        try:
            if is_there and not await is_unfinished_copy(made):
                raise InputError(f"{there.kb} holds a knowledge base already; name a new one")
            with show_progress(ctx.json) as report:
                counts = await copy_store(taken, made, report)
        finally:
            await made.close()
    finally:
        await taken.close()
    await asyncio.to_thread(_copy_encoder, here, there)
    ctx.show(
        {"source": str(here.kb), "target": str(there.kb), "counts": counts},
        lambda: out.print(f"copied {describe_counts(counts)} to {there.kb}", markup=False),
    )


def _copy_encoder(here: Settings, there: Settings) -> None:
    """Copy the encoder that was tuned for this knowledge base, if there is one."""
    if (here.folder / TUNED_ENCODER).is_dir():
        made = there.folder / TUNED_ENCODER
        shutil.copytree(here.folder / TUNED_ENCODER, made, dirs_exist_ok=True)


@command
async def worker(
    ctx: CommandContext,
    at_once: Annotated[
        int | None, typer.Option(min=1, help="Jobs at once; by default [models] concurrency.")
    ] = None,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="End when there is no job left.")
    ] = False,
) -> None:
    """Extract and embed for builds elsewhere (`clew add --on workers`), until interrupted."""
    if not isinstance(ctx.settings.kb, DatabaseAddress):
        raise ConfigError("workers share a database; use --kb postgresql://HOST/DATABASE")
    require_driver(ctx.settings.kb)
    work = asyncio.create_task(_work(ctx, at_once, until_idle))
    done = 0
    with _cancel_on_terminate(work), suppress(asyncio.CancelledError):
        done = await work
    ctx.show({"jobs": done}, lambda: out.print(f"{count_of(done, 'job')} done"))


async def _work(ctx: CommandContext, at_once: int | None, until_idle: bool) -> int:
    """Work until there is no job left, or until cancelled; return the jobs done."""
    from clew.cluster.queue import Worker

    if not await _wait_for_first_build(ctx, until_idle):
        return 0
    async with ctx.open_kb() as base:
        one = Worker.of(base, at_once)
        if not ctx.json:
            out.print(f"working for {ctx.settings.kb}; Ctrl-C ends it", markup=False)
        with suppress(asyncio.CancelledError):
            await one.work(until_idle=until_idle)
        return one.done


async def _wait_for_first_build(ctx: CommandContext, until_idle: bool) -> bool:
    """Wait for a knowledge base; a mistyped address must not make an empty one."""
    from clew.stores.opening import is_knowledge_base

    if await asyncio.to_thread(is_knowledge_base, ctx.settings):
        return True
    kb = ctx.settings.kb
    if until_idle:
        err.print(f"there is no knowledge base at {kb}, and so no job", markup=False)
        return False
    err.print(f"waiting for the first build at {kb}, where no knowledge base is yet", markup=False)
    while True:
        await asyncio.sleep(_LOOK_SECONDS)
        with suppress(StoreError):  # the server may come back
            if await asyncio.to_thread(is_knowledge_base, ctx.settings):
                return True


@contextmanager
def _cancel_on_terminate(work: "asyncio.Task[int]") -> Iterator[None]:
    """Let a service manager stop the work in order: what is held is given back at once."""
    loop = asyncio.get_running_loop()
    try:
        loop.add_signal_handler(signal.SIGTERM, work.cancel)
    except (NotImplementedError, ValueError, RuntimeError):  # on Windows, or not the main thread
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


@asynccontextmanager
async def open_runner(
    base: "KnowledgeBase", on: str, budget: float | None = None
) -> AsyncIterator["TaskRunner"]:
    """Open what `on` names: `workers`, `auto` (the Ray of this machine), or `ray://HOST:PORT`."""
    if on == "workers":
        kb = base.settings.kb
        if not isinstance(kb, DatabaseAddress):
            raise ConfigError("workers share a database; use --kb postgresql://HOST/DATABASE")
        require_driver(kb)
        from clew.cluster.queue import open_queue_runner

        told = quote(str(kb))

        def say_nobody_works() -> None:
            err.print(
                f"no worker is there, so nothing is done; `clew worker --kb {told}` starts one",
                markup=False,
            )

        async with open_queue_runner(base, budget, say_nobody_works) as queue_runner:
            yield queue_runner
        return
    if on != "auto" and not on.startswith("ray://"):
        raise ConfigError(f"--on {on!r} is unknown; use workers, auto or ray://HOST:PORT")
    if find_spec("ray") is None:
        raise ConfigError(f"--on {on} needs Ray; run `{pip_install_command('cluster')}`")
    from clew.cluster.ray_tasks import open_ray_runner

    address = None if on == "auto" else on
    err.print("starting Ray …" if address is None else f"connecting to {on} …", markup=False)
    async with open_ray_runner(base, address, budget=budget) as ray_runner:
        yield ray_runner
        if ray_runner.lost_calls:
            err.print(
                f"{count_of(ray_runner.lost_calls, 'model call')} under way on lost nodes counted "
                "as estimated, and made again"
            )
