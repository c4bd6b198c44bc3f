"""A PostgreSQL server for tests: in a temporary folder, run by an unprivileged user."""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from clew.errors import ConfigError

_SETTINGS = ("listen_addresses=", "max_connections=60")
_FORGETFUL = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


def find_programs() -> Path | None:
    """The folder of the server's programs; None if it is not installed.

    `CLEW_TEST_POSTGRES` names another one, to test with its version and extensions.
    """
    if named := os.environ.get("CLEW_TEST_POSTGRES"):
        return Path(named)
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)
    beside = shutil.which("initdb")
    return found[0].parent if found else Path(beside).parent if beside else None


def why_not() -> str:
    """A reason if no server can be started here, else ""."""
    if find_spec("psycopg") is None:
        return "psycopg is not installed"
    if find_programs() is None:
        return "no PostgreSQL server is installed"
    if os.getuid() == 0 and _unprivileged_user() is None:
        return "the server does not run as root, and there is no other user"
    return ""


def _unprivileged_user() -> str | None:
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in known), None)


@contextmanager
def start_server(*, durable: bool = False) -> Iterator[str]:
    """Start a server; yield the address of its database, reached by a socket.

    Unless it is `durable`, a power cut may lose its last writes: tests need no more.
    """
    programs = find_programs()
    if programs is None:
        raise ConfigError("no PostgreSQL server is installed; `make postgres` installs one")
    # Not pytest's folder: its parents cannot be entered by another user, and paths of sockets
    # must be short.
    folder = Path(tempfile.mkdtemp(prefix="clew-pg-"))
    user = _unprivileged_user() if os.getuid() == 0 else None
    if user is not None:
        shutil.chown(folder, user)
    as_user = ["runuser", "-u", user, "--"] if user else []
    data = folder / "data"

    def run(*command: str) -> None:
        subprocess.run(
            [*as_user, *command], check=True, stdout=subprocess.DEVNULL, cwd=folder, timeout=60
        )

    init = ("--auth=trust", "--username=clew", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync")
    control = (str(programs / "pg_ctl"), "-D", str(data), "-w", "-l", str(folder / "log"))
    try:
        run(str(programs / "initdb"), "-D", str(data), *init)
        chosen = _SETTINGS if durable else (*_SETTINGS, *_FORGETFUL)
        options = " ".join(f"-c {one}" for one in chosen) + f" -k {folder}"
        run(*control, "-o", options, "start")
        yield f"postgresql://clew@/postgres?host={folder}"
    finally:
        run(*control, "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def start_pooler(server: str) -> Iterator[str]:
    """Start pgbouncer with transaction pooling before a server; yield its address."""
    program = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
    folder = Path(tempfile.mkdtemp(prefix="clew-pool-"))
    user = _unprivileged_user() if os.getuid() == 0 else None
    host = parse_qs(urlsplit(server).query)["host"][0]
    file = folder / "pgbouncer.ini"
    file.write_text(
        f"[databases]\npostgres = host={host} dbname=postgres user=clew\n[pgbouncer]\n"
        f"listen_addr =\nlisten_port = 6432\nunix_socket_dir = {folder}\nauth_type = any\n"
        "pool_mode = transaction\ndefault_pool_size = 12\nmax_client_conn = 100\n"
    )
    if user is not None:
        shutil.chown(folder, user)
    as_user = ["runuser", "-u", user, "--"] if user else []
    pooler = subprocess.Popen(
        [*as_user, program, "-q", str(file)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 30
        while not (folder / ".s.PGSQL.6432").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        yield f"postgresql://clew@/postgres?host={folder}&port=6432"
    finally:
        pooler.terminate()
        pooler.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def has_pooler() -> bool:
    """Whether pgbouncer is installed."""
    return shutil.which("pgbouncer") is not None or Path("/usr/sbin/pgbouncer").exists()
