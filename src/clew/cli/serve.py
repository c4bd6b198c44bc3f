"""The commands serve, mcp and keys."""

import asyncio
import re
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from clew.cli.common import CommandContext, command, err, format_table, out
from clew.cli.inspect import load_documents
from clew.config import Settings, load_settings
from clew.engine import KnowledgeBase
from clew.errors import ConfigError
from clew.kb_address import DatabaseAddress
from clew.serve.core.database import ServerDatabase
from clew.serve.core.folders import DEFAULT_WORKSPACE, Folders, is_workspace_name, keep_to_owner
from clew.serve.core.keys import EVERY_WORKSPACE, SCOPES, Key, KeyLimits, KeyStore, Scope
from clew.serve.core.workspaces import OpenKb, open_knowledge_base
from clew.version import explain_missing

RootOption = Annotated[
    Path | None,
    typer.Option(
        "--root", help="Folder of several workspaces; without it --kb is served as `default`."
    ),
]
_UNITS = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DURATION = re.compile(r"(\d{1,6})([mhdw])")


def register(app: typer.Typer) -> None:
    """Register this module's commands."""
    app.command(name="serve")(serve_)
    app.command(name="mcp")(mcp_)
    keys = typer.Typer(help="Make, list, rotate and revoke keys.", no_args_is_help=True)
    keys.command(name="add")(add_key)
    keys.command(name="list")(list_keys)
    keys.command(name="rotate")(rotate_key)
    keys.command(name="revoke")(revoke_key)
    app.add_typer(keys, name="keys")


def find_folders(ctx: CommandContext, root: Path | None) -> Folders:
    """Return where the workspaces are: under a root, or one knowledge base."""
    if root is not None:
        return Folders(root)
    kb = ctx.settings.kb
    database = kb if isinstance(kb, DatabaseAddress) else None
    return Folders(ctx.settings.folder, single=True, database=database)


HostOption = Annotated[str | None, typer.Option(help="Address to listen on.")]
PortOption = Annotated[int | None, typer.Option(min=0, max=65535, help="Port to listen on.")]


@command
async def serve_(
    ctx: CommandContext,
    root: RootOption = None,
    host: HostOption = None,
    port: PortOption = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Number of processes.")] = None,
    shards: Annotated[
        int | None, typer.Option(min=1, help="Search by so many shards, on Ray.")
    ] = None,
    on: Annotated[str, typer.Option(help="Where shards are: auto, or ray://HOST:PORT.")] = "auto",
    demo: Annotated[
        bool, typer.Option("--demo", help="Serve the bundled corpus from a temporary folder.")
    ] = False,
) -> None:
    """Serve knowledge bases over HTTP: a page, a REST API, and one that OpenAI's clients speak."""
    keep_to_owner()
    open_kb = open_knowledge_base if shards is None else _open_spread(shards, on)
    if shards is not None and (workers or ctx.settings.serve.workers) == 1:
        await _connect_to_ray(on)  # with more processes, each of them connects
    given = {"host": host, "port": port, "workers": workers}
    async with _open_demo(ctx) if demo else _open_folders(ctx, root) as folders:
        await _serve_http(ctx, folders, given, open_kb)


@command
async def mcp_(
    ctx: CommandContext,
    root: RootOption = None,
    add: Annotated[bool, typer.Option("--add", help="Let agents add documents.")] = False,
    http: Annotated[
        bool, typer.Option("--http", help="Streamable HTTP at /mcp instead of stdio.")
    ] = False,
    host: HostOption = None,
    port: PortOption = None,
) -> None:
    """Serve tools for agents by the Model Context Protocol, over stdio or HTTP."""
    _require("mcp")
    keep_to_owner()
    if http:
        async with _open_folders(ctx, root) as folders:
            agents_only = {"rest": False, "mcp": True, "mcp_add": add}
            given = {"host": host, "port": port, **agents_only}
            await _serve_http(ctx, folders, given, path="/mcp")
        return
    from clew.serve.core.server import Server
    from clew.serve.mcp_server import create_mcp

    server = Server(ctx.settings, find_folders(ctx, root))
    server.start()
    looking = asyncio.ensure_future(server.look_after())  # what agents add is built by jobs
    try:
        await create_mcp(server, local=True, allow_add=add).run_stdio_async()
    finally:
        looking.cancel()
        await server.stop()


async def _serve_http(
    ctx: CommandContext,
    folders: Folders,
    given: Mapping[str, Any],
    open_kb: OpenKb = open_knowledge_base,
    path: str = "",
) -> None:
    """Serve until a signal says stop; what is given goes before the settings."""
    from clew.serve.run import ServeOptions, serve

    changed = {name: value for name, value in given.items() if value is not None}

    def apply(settings: Settings) -> Settings:
        section = settings.serve.model_copy(update=changed)
        return settings.model_copy(update={"serve": section, "kb": ctx.settings.kb})

    def announce(url: str) -> None:
        names = ", ".join(folders.names()) or "no workspace yet"
        err.print(f"serving {names} at {url}{path}", markup=False)

    options = ServeOptions(apply(ctx.settings), folders, open_kb)
    await serve(options, announce, lambda: apply(load_settings()))


def _open_spread(count: int, on: str) -> OpenKb:
    """Open knowledge bases whose vectors, words and walks are on shards of a cluster."""
    if on != "auto" and not on.startswith("ray://"):
        raise ConfigError(f"--on {on!r} is unknown; use auto or ray://HOST:PORT")
    _require("ray")
    from clew.cluster.ray_shards import OpenSpread

    return OpenSpread(count, None if on == "auto" else on)


async def _connect_to_ray(on: str) -> None:
    """Connect before the first question, which would else be told why that failed."""
    from clew.cluster.ray_connection import connect

    err.print("starting Ray …" if on == "auto" else f"connecting to {on} …", markup=False)
    await asyncio.to_thread(connect, None if on == "auto" else on)
    err.print("the shards are made for the first question, which may wait for half a minute")


def _require(module: str) -> None:
    """Raise for a package that else only the first request would miss."""
    if find_spec(module) is None:
        raise ConfigError(explain_missing(module))


@asynccontextmanager
async def _open_folders(ctx: CommandContext, root: Path | None) -> AsyncIterator[Folders]:
    folders = find_folders(ctx, root)
    if folders.single:
        # Created if it is missing, so that documents can be uploaded into it.
        async with ctx.open_kb(create=True, embed=False):
            pass
    yield folders


@asynccontextmanager
async def _open_demo(ctx: CommandContext) -> AsyncIterator[Folders]:
    with tempfile.TemporaryDirectory(prefix="clew-demo-") as folder:
        base = await KnowledgeBase.open(
            ctx.settings_at(Path(folder) / DEFAULT_WORKSPACE), create=True
        )
        await base.take(load_documents())
        await base.close()
        yield Folders(Path(folder))


@command
async def add_key(
    ctx: CommandContext,
    name: Annotated[str, typer.Argument(help="Whom or what the key is for.")],
    root: RootOption = None,
    workspace: Annotated[
        list[str] | None, typer.Option(help="A workspace it may use; `*` for every one.")
    ] = None,
    scope: Annotated[str, typer.Option(help="read, write or admin.")] = "read",
    label: Annotated[
        list[str] | None, typer.Option(help="Sees documents with this label too: team=legal.")
    ] = None,
    all_labels: Annotated[bool, typer.Option(help="Sees every document.")] = False,
    expires: Annotated[str | None, typer.Option(help="Such as 12h, 30d, 52w.")] = None,
    per_minute: Annotated[float | None, typer.Option(min=0, help="Requests per minute.")] = None,
    calls: Annotated[int | None, typer.Option(min=0, help="Model calls per day.")] = None,
    money: Annotated[float | None, typer.Option(min=0, help="Money per day.")] = None,
) -> None:
    """Make a key and print its token, once: only a hash of it is stored."""
    if scope not in SCOPES:
        raise ConfigError(f"no scope {scope!r}; choose one of {', '.join(SCOPES)}")
    for one in workspace or ():
        if one != EVERY_WORKSPACE and not is_workspace_name(one):
            raise ConfigError(f"{one!r} is not the name of a workspace")
    held: Scope = scope
    single = DEFAULT_WORKSPACE if root is None else EVERY_WORKSPACE
    key, token = _open_keys(ctx, root).create(
        name,
        dict.fromkeys(workspace or [single], held),
        labels=None if all_labels or scope == "admin" else frozenset(label or ()),
        expires=time.time() + parse_duration(expires) if expires else None,
        limits=KeyLimits(per_minute, calls, money),
    )

    def people() -> None:
        out.print(token, markup=False)
        err.print(f"key {key.id}; the token is not shown again", markup=False)

    ctx.show({**key.to_json(), "token": token}, people)


@command
async def list_keys(ctx: CommandContext, root: RootOption = None) -> None:
    """List keys with their rights; tokens are not known."""
    found = _open_keys(ctx, root).list()
    ctx.show([key.to_json() for key in found], lambda: _print_keys(found))


@command
async def rotate_key(
    ctx: CommandContext,
    key: Annotated[str, typer.Argument(help="The id of a key.")],
    root: RootOption = None,
    grace: Annotated[str, typer.Option(help="How long the old token still works.")] = "0m",
) -> None:
    """Give a key a new token."""
    token = _open_keys(ctx, root).rotate(key, parse_duration(grace))
    ctx.show({"id": key, "token": token}, lambda: out.print(token, markup=False))


@command
async def revoke_key(
    ctx: CommandContext,
    key: Annotated[str, typer.Argument(help="The id of a key.")],
    root: RootOption = None,
) -> None:
    """Make a key useless from now on."""
    _open_keys(ctx, root).revoke(key)
    ctx.show({"id": key, "revoked": True}, lambda: out.print(f"key {key} is revoked"))


def parse_duration(text: str) -> float:
    """Read a duration such as 12h or 30d as seconds."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ConfigError(f"{text!r} is not a duration; write a number and m, h, d or w: 30d")
    return float(int(found[1]) * _UNITS[found[2]])


def _open_keys(ctx: CommandContext, root: Path | None) -> KeyStore:
    return KeyStore(ServerDatabase(find_folders(ctx, root).state))


def _print_keys(found: list[Key]) -> None:
    rows = []
    for key in found:
        grants = ", ".join(f"{workspace}: {scope}" for workspace, scope in key.grants.items())
        labels = "all" if key.labels is None else ", ".join(sorted(key.labels)) or "none"
        rows.append([key.id, key.name, grants, labels, _describe_state(key)])
    out.print(format_table(["id", "name", "workspaces", "labels", "state"], rows))


def _describe_state(key: Key) -> str:
    if key.revoked is not None:
        return "revoked"
    if key.expires is not None:
        day = time.strftime("%Y-%m-%d", time.gmtime(key.expires))
        return f"expired {day}" if key.expires < time.time() else f"until {day}"
    return "active"
