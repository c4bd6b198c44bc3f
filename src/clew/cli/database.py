"""The commands for knowledge bases in a database: copy and worker."""

import asyncio
import shutil
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.common import CommandContext, command, count_of, describe_counts, out
from clew.cli.progress import show_progress
from clew.config import Settings
from clew.errors import ConfigError, InputError
from clew.kb_address import DatabaseAddress, parse_location
from clew.llm.factory import TUNED_ENCODER
from clew.stores.opening import require_driver
from clew.version import pip_install_command

if TYPE_CHECKING:
    from clew.engine import KnowledgeBase
    from clew.ingest.remote import TaskRunner


def register(app: typer.Typer) -> None:
    """Register this module's commands."""
    app.command(name="copy")(copy_)
    app.command(name="worker")(worker)


@command
async def copy_(
    ctx: CommandContext,
    source: Annotated[str, typer.Argument(help="A knowledge base: folder or address.")],
    target: Annotated[str, typer.Argument(help="Where the copy is made; nothing may be there.")],
) -> None:
    """Copy a knowledge base between folders and databases, with vectors and arrays."""
    from clew.stores.copying import copy_store
    from clew.stores.opening import is_knowledge_base, open_located_store

    here, there = (ctx.settings_at(parse_location(one)) for one in (source, target))
    if await asyncio.to_thread(is_knowledge_base, there):
        raise InputError(f"{there.kb} holds a knowledge base already; name a new one")
    taken = await asyncio.to_thread(open_located_store, here)
    try:
        made = await asyncio.to_thread(open_located_store, there, create=True)
        try:
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
        shutil.copytree(here.folder / TUNED_ENCODER, there.folder / TUNED_ENCODER)


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
    from clew.cluster.queue import Worker

    # Workers may be started before the first build.
    async with ctx.open_kb(create=True) as base:
        one = Worker.of(base, at_once)
        if not ctx.json:
            out.print(f"working for {ctx.settings.kb}; Ctrl-C ends it", markup=False)
        work = asyncio.create_task(one.work(until_idle=until_idle))
        with _cancel_on_terminate(work), suppress(asyncio.CancelledError):
            await work
        done = one.done
    ctx.show({"jobs": done}, lambda: out.print(f"{count_of(done, 'job')} done"))


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

        async with open_queue_runner(base, budget) as queue_runner:
            yield queue_runner
        return
    if on != "auto" and not on.startswith("ray://"):
        raise ConfigError(f"--on {on!r} is unknown; use workers, auto or ray://HOST:PORT")
    if find_spec("ray") is None:
        raise ConfigError(f"--on {on} needs Ray; run `{pip_install_command('cluster')}`")
    from clew.cluster.ray_tasks import open_ray_runner

    async with open_ray_runner(base, None if on == "auto" else on) as ray_runner:
        yield ray_runner
