"""Choose who does the tasks of a build: workers of a queue, or a Ray cluster."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec

from clew.engine import KnowledgeBase
from clew.errors import ConfigError
from clew.ingest.remote import TaskRunner
from clew.kb_address import DatabaseAddress
from clew.stores.opening import require_driver
from clew.version import pip_install_command


@asynccontextmanager
async def open_runner(
    base: KnowledgeBase, on: str, budget: float | None = None
) -> AsyncIterator[TaskRunner]:
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
