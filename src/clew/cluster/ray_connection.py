"""Connect to a Ray cluster, and say in one sentence why that failed."""

import logging
import os
import time
from typing import Any

import ray

from clew.errors import ConfigError
from clew.version import pip_install_command

_TRIES = 3
_PAUSE = 5.0  # seconds between tries: a server of the cluster may still end an earlier session
_BUSY = "Starting Ray client server failed"
_INCOMPLETE = "requires pip package"


def connect(address: str | None) -> bool:
    """Connect this process to a cluster, or to that of this machine; False if it already is."""
    if ray.is_initialized():
        return False
    # Of a Ray that is started here: by default its processes give way to all others.
    os.environ.setdefault("RAY_worker_niceness", "0")  # noqa: TID251  (Ray reads it there)
    for tries_left in reversed(range(_TRIES)):
        try:
            _start(address)
        except Exception as error:  # Ray raises bare ones when it starts slowly
            if not tries_left or _BUSY not in str(error):
                raise ConfigError(_explain(address, str(error))) from error
            time.sleep(_PAUSE)
        else:
            break
    return True


def _start(address: str | None) -> None:
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        quiet["include_dashboard"] = False  # of a Ray that is started here
    ray.init(address=address, **quiet)


def _explain(address: str | None, why: str) -> str:
    """Why there is no connection, and what to look at."""
    if _INCOMPLETE in why:
        return (
            f"{address} needs a part of Ray that is not installed; run "
            f"`{pip_install_command('cluster')}`"
        )
    if address is None:
        return f"the Ray of this machine cannot be used ({_first_line(why)}); see `ray status`"
    if _BUSY in why:
        return (
            f"the Ray at {address} could not start a process for this client, perhaps as it still "
            "ends an earlier one; try again in a minute, else see the ray_client_server logs there"
        )
    return (
        f"there is no connection to Ray at {address} ({_first_line(why)}); the address is that of "
        "the client server on the head node, ray://HOST:10001 unless set otherwise"
    )


def _first_line(text: str) -> str:
    return next(iter(text.strip().splitlines()), "no reason given").rstrip(".")


def last_line(error: BaseException) -> str:
    """The last line of what an error of a cluster says: the first ones are where it happened."""
    said = str(getattr(error, "cause", None) or error).strip().splitlines()
    return said[-1] if said else type(error).__name__
