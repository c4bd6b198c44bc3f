"""Environment checks for `clew doctor`: Python, extras, embedder, models, knowledge base."""

import importlib.util
import json
import platform
import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Literal

import numpy as np

from clew import kernels
from clew.config import ROLES, ModelSettings, Settings
from clew.engine import KnowledgeBase
from clew.errors import ClewError, VectorsDeferred
from clew.graph.csr import Floats, Ints
from clew.index.nearest import StoredIndexes, is_indexed
from clew.index.view import View
from clew.ingest.embedding import load_view
from clew.llm.embed_local import LocalEmbedder
from clew.llm.embed_weights import explain_packages, find_broken_packages
from clew.llm.factory import can_embed, create_embedder
from clew.llm.http import HttpClient, auth_headers
from clew.llm.roles import ResolvedModel, has_model, resolve_model
from clew.store.ivf_index import MIN_IVF_ROWS, has_faiss
from clew.stores.opening import describe_pgvector, is_knowledge_base
from clew.types import Kind
from clew.version import EXTRAS, pip_install_command

_COMPARED_WITH: dict[Kind, tuple[Kind, ...]] = {
    "chunk": ("entity", "fact", "chunk"),
    "fact": ("entity", "chunk", "fact"),
    "entity": ("chunk", "fact", "entity"),
}
"""Kinds with many elements, each with the kinds whose vectors may serve as queries.

Those of another kind are preferred, as a question is no element either; the first that has vectors
is taken. Vectors of names are made when they are first read, so by default there are none.
"""
_PLURALS = {"chunk": "passages", "fact": "facts", "entity": "names"}
_QUERIES = 100
_RECALL_AT = 10
_MIN_RECALL = 0.95
_DAMAGED_INDEX = "the stored index is damaged; run `clew verify --repair`, which makes it again"
_TIMEOUT = 3.0  # seconds for an endpoint to list its models
_MAX_LISTED_MODELS = 5


@dataclass(frozen=True)
class Check:
    """The result of one check; a `missing` part is optional, a `broken` one must be fixed."""

    name: str
    state: Literal["ok", "missing", "broken"]
    message: str


async def run_checks(settings: Settings) -> list[Check]:
    """Run all checks."""
    machine = f"{platform.python_version()} on {platform.machine()}"
    python: Literal["ok", "broken"] = "ok" if sys.version_info >= (3, 11) else "broken"
    return [
        Check("python", python, machine),
        Check("sqlite", "ok", sqlite3.sqlite_version),
        _check_kernels(),
        *_check_extras(),
        await _check_embedder(settings),
        *[
            await _check_model(at, whom, settings.models)
            for at, whom in _list_models(settings.models)
        ],
        *await _check_knowledge_base(settings),
    ]


def _check_kernels() -> Check:
    if kernels.COMPILED is not None:
        return Check("compiled loops", "ok", "vectors are compared by them")
    reason = "no C compiler when Clew was installed, so numpy compares vectors, more slowly"
    return Check("compiled loops", "missing", reason)


def _check_extras() -> Iterator[Check]:
    for extra, modules in EXTRAS.items():
        absent = [m for m in modules if importlib.util.find_spec(m) is None]
        if absent:
            yield Check(
                f"extra {extra}", "missing", f"not installed; run `{pip_install_command(extra)}`"
            )
        else:
            yield Check(f"extra {extra}", "ok", "installed")


async def _check_embedder(settings: Settings) -> Check:
    if not can_embed(settings.embed):
        reason = f"none, so only BM25 search works; run `{pip_install_command('local')}`"
        if find_broken_packages():
            reason = f"none, so only BM25 search works; {explain_packages()}"
        return Check("embedder", "missing", reason)
    try:
        embed = create_embedder(settings.embed, settings.cache)
        vectors = await embed(["a thread through the labyrinth"])
    except ClewError as error:
        return Check("embedder", "broken", str(error))
    if isinstance(embed, LocalEmbedder):
        return Check("embedder", "ok", embed.describe())
    return Check("embedder", "ok", f"{embed.name}, {vectors.shape[1]} dimensions")


def _list_models(settings: ModelSettings) -> list[tuple[ResolvedModel | None, str]]:
    """List the distinct model endpoints and the roles each one serves."""
    endpoints: dict[tuple[str, ...], tuple[ResolvedModel, list[str]]] = {}
    for role in ROLES:
        if has_model(role, settings):
            at = resolve_model(role, settings)
            endpoints.setdefault((at.client, at.base_url, at.model), (at, []))[1].append(role)
    listed = [
        (at, "" if len(roles) == len(ROLES) else f" ({', '.join(roles)})")
        for at, roles in endpoints.values()
    ]
    return [*listed] or [(None, "")]


async def _check_model(at: ResolvedModel | None, roles: str, settings: ModelSettings) -> Check:
    if at is None:
        reason = "none configured, so answers only quote sources; set CLEW_MODEL to use a model"
        return Check("model", "missing", reason)
    name = f"model {at.model}{roles}"
    if at.client in ("llama", "transformers"):
        return _check_model_file(name, at.model)
    return await _check_endpoint(name, at, settings.ca_file)


def _check_model_file(name: str, path: str) -> Check:
    if Path(path).exists():
        return Check(name, "ok", "found")
    return Check(name, "broken", f"{path} does not exist; set `model` to the right path")


async def _check_endpoint(name: str, at: ResolvedModel, ca_file: str) -> Check:
    """Request an endpoint's list of models, which is free."""
    try:
        client = HttpClient(
            at.base_url, auth_headers(at.api_key), _TIMEOUT, _TIMEOUT, ca_file=ca_file
        )
        head, raw = await client.get("/models")
        client.close()
    except ClewError as error:
        return Check(name, "broken", str(error))
    if head.status in (401, 403):
        return Check(name, "broken", f"{at.base_url} rejects the API key; set OPENAI_API_KEY")
    if not 200 <= head.status < 300:
        reason = f"{at.base_url} answers, but returns HTTP {head.status} for its list of models"
        return Check(name, "missing", reason)
    listed = _parse_model_names(raw)
    if listed and at.model not in listed:
        names = ", ".join(listed[:_MAX_LISTED_MODELS])
        reason = f"{at.base_url} answers, but lists other models: {names}"
        return Check(name, "missing", reason + " …" * (len(listed) > _MAX_LISTED_MODELS))
    return Check(name, "ok", f"{at.base_url} answers")


def _parse_model_names(raw: bytes) -> list[str]:
    """Model names in an endpoint's response; empty if it is malformed."""
    try:
        return [str(model["id"]) for model in json.loads(raw)["data"]]
    except (ValueError, TypeError, KeyError):
        return []


async def _check_knowledge_base(settings: Settings) -> list[Check]:
    try:
        if not is_knowledge_base(settings):
            reason = f"none in {settings.kb}; create one with `clew add PATH…`"
            return [Check("knowledge base", "missing", reason)]
        base = await KnowledgeBase.open(settings, embed=False)
        found = await base.status()
        await base.close()
        extension = describe_pgvector(settings)
    except ClewError as error:
        return [Check("knowledge base", "broken", str(error))]
    told = f"{found['documents']} documents in {settings.kb}"
    more = [Check("pgvector", "ok", extension)] if extension else []
    return [Check("knowledge base", "ok", told), *more]


async def check_nearest(settings: Settings) -> list[Check]:
    """Compare the nearest elements found by the index with those of an exact search."""
    try:
        base = await KnowledgeBase.open(settings, embed=False)
    except ClewError as error:
        return [Check("nearest", "broken", str(error))]
    try:
        embedder = (await base.store.get("manifest", ["embedder"])).get("embedder", "")
        async with base.store.snapshot() as now:
            view = await load_view(base.store, embedder, now, **settings.index.model_dump())
            found = [_check_kind(view, kind) for kind in _COMPARED_WITH]
            return [*_check_lists(settings), *found]
    except ClewError as error:
        return [Check("nearest", "broken", str(error))]
    finally:
        await base.close()


def _check_lists(settings: Settings) -> Iterator[Check]:
    """Say so if the number of lists is set and there are none."""
    if settings.index.lists and not has_faiss():
        install = pip_install_command("ann")
        told = f"`lists = {settings.index.lists}` has no effect: there are none; run `{install}`"
        yield Check("lists", "missing", told)


def _check_kind(view: View, kind: Kind) -> Check:
    try:
        return _compare_nearest(view, kind)
    except VectorsDeferred as error:
        return Check(f"nearest {kind}", "missing", str(error))


def _compare_nearest(view: View, kind: Kind) -> Check:
    """Measure recall and time; texts of another kind are the queries, as questions are."""
    name, count = f"nearest {kind}", view.count(kind)
    if kind not in view.matrices or not len(_find_embedded(view, kind)):
        return Check(name, "missing", "no vectors to compare")
    if kind not in view.indexes or not is_indexed(count, _RECALL_AT):
        return Check(name, "ok", _describe_exact(view, kind))
    asked, queries = _choose_queries(view, kind)
    exact = _find_all_nearest(View(view.arrays, view.matrices, view.generation), kind, queries)
    near = _find_all_nearest(view, kind, queries)
    recall = np.mean([len(a & b) / max(1, len(b)) for a, b in zip(near[0], exact[0], strict=True)])
    times = near[1], exact[1]
    message = f"recall@{_RECALL_AT} {recall:.3f} over {count:,}"
    message += f", {times[0]:.1f} ms (exact {times[1]:.1f}), {len(queries)} {asked} as queries"
    if count >= MIN_IVF_ROWS and not has_faiss():
        message += f"; `{pip_install_command('ann')}` makes it faster"
    if isinstance(view.indexes, StoredIndexes) and view.indexes.is_damaged(kind):
        return Check(name, "broken", f"{message}; {_DAMAGED_INDEX}")
    if recall >= _MIN_RECALL:
        return Check(name, *_describe_index(view, kind, message))
    return Check(name, "broken", f"{message}; set `exact = true` under [index] in clew.toml")


def _describe_exact(view: View, kind: Kind) -> str:
    """Say what is compared where no index is needed to find the nearest elements."""
    told = f"all {view.count(kind):,} are compared"
    if not view.is_estimated(kind):
        return f"exact: {told}"
    return f"exact where the nearest are wanted: {told}; steps that weigh all, as the walk of " + (
        "`clew` does, compare the nearest and estimate the others (`exact = true` under [index]: "
        "none)"
    )


def _describe_index(view: View, kind: Kind, message: str) -> tuple[Literal["ok", "missing"], str]:
    """Say also whether the stored index is older than the vectors: what it lacks takes time."""
    stored = view.indexes
    told = stored.describe(kind) if isinstance(stored, StoredIndexes) else ""
    if not told:
        return "ok", message
    return "missing", f"{message}; {told}: they are computed for each process until the next write"


def _find_all_nearest(view: View, kind: Kind, queries: Floats) -> tuple[list[set[int]], float]:
    """Return the nearest elements of each query, and the mean time in milliseconds."""
    view.nearest(kind, queries[0], _RECALL_AT)  # loads the index
    began = perf_counter()
    found = [set(view.nearest(kind, query, _RECALL_AT)[0].tolist()) for query in queries]
    return found, 1000 * (perf_counter() - began) / len(queries)


def _choose_queries(view: View, kind: Kind) -> tuple[str, Floats]:
    """Some vectors, of the first kind that has any, and what they are of."""
    held = {other: _find_embedded(view, other) for other in _COMPARED_WITH[kind]}
    other = next(one for one in _COMPARED_WITH[kind] if len(held[one]))
    known = held[other]
    chosen = np.random.default_rng(0).choice(known, min(_QUERIES, len(known)), replace=False)
    return _PLURALS[other], view.vectors(other, np.sort(chosen))


def _find_embedded(view: View, kind: Kind) -> Ints:
    """Positions of the elements that have vectors; none where these are made later."""
    rows = view.arrays.get(f"{kind}_rows", np.zeros(0, np.int64))
    try:
        held = len(view.matrices.get(kind, ()))
    except VectorsDeferred:
        held = 0
    return np.flatnonzero(rows >= 0) if held else np.zeros(0, np.int64)
