"""Jobs: build, estimate, evaluate and compare; their progress, and how to cancel them."""

import asyncio
import hashlib
import json
import re
import time
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import JSONResponse, Response
from pydantic import Field

from clew.graph.community_tree import TREES
from clew.serve.core.access import Access, Reader, Writer
from clew.serve.core.bodies import StrictBody
from clew.serve.core.jobs import Job, JobKind
from clew.serve.core.problems import Problem, not_found
from clew.serve.core.sse import ServerEvent, stream_events
from clew.serve.core.uploads import Upload

router = APIRouter(prefix="/workspaces/{workspace}", tags=["jobs"])
_POLL_SECONDS = 0.2
_PLAN_SECONDS = 3600.0  # after which what others have added may have changed an estimate
_MAX_QUESTIONS = 5000
_MAX_EVENT = 10**15
_EVENT_NUMBER = re.compile(r"[0-9]{1,15}")


class BuildRequest(StrictBody):
    """Which uploads to add, and how."""

    names: list[str] | None = Field(
        default=None, max_length=10_000, description="Uploads to add; all that wait by default."
    )
    extractor: Literal["auto", "offline", "triples", "schema", "nary"] | None = None
    retry: bool = Field(
        default=False, description="Also files that could not be read and chunks that failed."
    )
    recipe: str | None = Field(
        default=None, max_length=200, description="Split documents as this recipe wants it."
    )
    dry_run: bool = Field(default=False, description="Only estimate calls, tokens and money.")


class TreeRequest(StrictBody):
    """Which community trees to build."""

    trees: list[str] = Field(min_length=1, max_length=10, examples=[["dual"]])
    write: bool = Field(default=False, description="Let the model write the summaries.")


class EvaluationRequest(StrictBody):
    """Questions with known answers, and the recipes to run on them."""

    questions: list[dict[str, Any]] = Field(
        min_length=1,
        max_length=_MAX_QUESTIONS,
        examples=[[{"question": "Who designed it?", "answers": ["Ilse Brandvik"]}]],
    )
    recipes: list[str] = Field(min_length=1, max_length=50, examples=[["clew", "bm25"]])
    metrics: list[str] = Field(default_factory=list, max_length=50)
    answers: bool = False
    mode: Literal["open", "reject"] = "open"
    k: int = Field(default=0, ge=0, le=200)
    compare: bool = Field(default=False, description="Add intervals and significance.")
    against: str = ""


@router.post("/builds", status_code=202, summary="Add uploaded files, or estimate the cost")
async def build(access: Writer, body: BuildRequest) -> Response:
    """Queue a build in a process of its own; one at a time in each workspace."""
    return _accepted(await start_build(access, body.model_dump()))


@router.post("/trees", status_code=202, summary="Build community trees")
async def build_trees(access: Writer, body: TreeRequest) -> Response:
    """Queue the building of community trees."""
    access.require_all_labels()
    unknown = [name for name in body.trees if name not in TREES]
    if unknown:
        raise Problem(400, f"no tree {unknown[0]!r}; available: {', '.join(TREES)}")
    return _accepted(await _add(access, "tree", body.model_dump()))


@router.post("/evaluations", status_code=202, summary="Evaluate or compare recipes")
async def evaluate(access: Writer, body: EvaluationRequest) -> Response:
    """Queue an evaluation; everything is checked before it is queued."""
    from clew.evaluate.grid import GridAxes, build_grid
    from clew.evaluate.metrics.registry import check_metric

    access.require_all_labels()
    axes = GridAxes([body.mode])
    build_grid(body.recipes, axes, answers=body.answers, recipes=access.server.recipes)
    for metric in body.metrics:
        check_metric(metric)
    for number, row in enumerate(body.questions, start=1):
        _check_question(row, number)
    if body.against and body.against not in body.recipes:
        raise Problem(400, f"no recipe {body.against!r} to compare with")
    return _accepted(await _add(access, "compare" if body.compare else "eval", body.model_dump()))


@router.get("/jobs", summary="The newest jobs")
async def list_jobs(
    access: Reader,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
    kind: Annotated[list[JobKind] | None, Query(description="Only these kinds.")] = None,
) -> dict[str, Any]:
    """Return jobs of this workspace; of a key with labels only its own."""
    found = access.server.ledger.newest(access.workspace, limit, kind or (), offset)
    return {"jobs": [show_job(access, job) for job in found if access.may_know(job.owner)]}


@router.get("/jobs/{job}", summary="State and result of a job")
async def get_job(access: Reader, job: str) -> dict[str, Any]:
    """Return one job."""
    return show_job(access, _find(access, job))


@router.get("/jobs/{job}/events", summary="Progress as server-sent events")
async def job_events(
    access: Reader,
    request: Request,
    job: str,
    after: Annotated[int, Query(ge=0, le=_MAX_EVENT, description="Events after this number.")] = 0,
    last_event_id: Annotated[str | None, Header(description="As browsers send it.")] = None,
) -> Response:
    """Stream `progress` and `state` events until the job ends; reconnecting resumes."""
    found = _find(access, job)
    known = last_event_id is not None and _EVENT_NUMBER.fullmatch(last_event_id)
    start = int(last_event_id) if last_event_id and known else after
    return stream_events(_follow(access, found, start, request))


@router.post("/jobs/{job}/cancel", summary="Stop a job; what is done stays done")
async def cancel_job(access: Writer, job: str) -> dict[str, Any]:
    """Cancel a job that waits or runs."""
    found = _find(access, job)
    await asyncio.to_thread(access.server.ledger.cancel, found.id)
    return show_job(access, access.server.ledger.get(found.id))


async def start_build(access: Access, request: dict[str, Any]) -> Job:
    """Queue a build; a key with labels builds only what it has uploaded."""
    if request.get("recipe"):
        from clew.recipes.registry import resolve_recipe  # imports every method

        resolve_recipe(request["recipe"], access.server.recipes)
    names = request.get("names")
    every = [u for u in access.server.uploads.list(access.workspace) if access.may_know(u.owner)]
    mine = {u.name for u in every if u.state == "uploaded"}
    failed = {u.name for u in every if u.state == "failed" and (names is None or u.name in names)}
    if request.get("retry"):
        mine |= failed
    if names is not None and (unknown := [name for name in names if name not in mine]):
        raise Problem(404, f"no upload {unknown[0]!r} waits to be built")
    if not mine and not request.get("retry"):
        raise Problem(409, "no upload waits to be built; send one to /documents")
    if names is None and not access.key.sees_all:
        request = {**request, "names": sorted(mine)}
    if request.get("dry_run"):
        request = {**request, "files": _fingerprint(every)}
        return _find_plan(access, request) or await _add(access, "plan", request)

    def queue() -> Job:
        with access.server.database.transaction():  # a build that is refused changes nothing
            if request.get("retry"):
                access.server.uploads.retry(access.workspace, failed)
            return queue_job(access, "build", request)

    return await asyncio.to_thread(queue)


def _fingerprint(uploads: Sequence[Upload]) -> str:
    told = sorted((one.name, one.hash, one.state) for one in uploads)
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def _find_plan(access: Access, request: dict[str, Any]) -> Job | None:
    """An estimate that still holds: of the same files, with nothing built since."""
    ledger = access.server.ledger
    # A server that was started again may have other models and prices.
    since = max(access.server.started, time.time() - _PLAN_SECONDS)
    for job in ledger.newest(access.workspace, 10, ("plan", "build", "tree")):
        if job.kind != "plan" or job.created < since:
            return None
        if (job.owner, job.request) == (access.key.id, request):
            return None if job.state in ("failed", "cancelled") else job
    return None


def check_may_build(access: Access) -> None:
    """Raise what a build would be refused with now, before anything is written for it."""
    access.server.remaining_budget(access.key)
    access.server.ledger.check_may_build(access.workspace)


def show_job(access: Access, job: Job) -> dict[str, Any]:
    """Return a job; totals of all documents are only for keys that see them all."""
    shown = job.to_json()
    if not access.key.sees_all and isinstance(shown["result"], dict):
        shown["result"] = {k: v for k, v in shown["result"].items() if k != "counts"}
    return shown


async def _add(access: Access, kind: JobKind, request: dict[str, Any]) -> Job:
    return await asyncio.to_thread(queue_job, access, kind, request)


def queue_job(access: Access, kind: JobKind, request: dict[str, Any]) -> Job:
    """Queue a job of a key, if its budget and the other jobs allow that now."""
    access.server.remaining_budget(access.key)
    return access.server.ledger.add(access.workspace, kind, access.key.id, request)


def _accepted(job: Job) -> Response:
    return JSONResponse(job.to_json(), 202)


def _check_question(row: dict[str, Any], number: int) -> None:
    from clew.evaluate.datasets import parse_question

    if not isinstance(row.get("question"), str) or not row["question"].strip():
        raise Problem(400, f"question {number} has no 'question'")
    try:
        parse_question(row, number)
    except (TypeError, ValueError) as error:
        raise Problem(400, f"question {number} cannot be read: {error}") from error


def _find(access: Access, job: str) -> Job:
    found = access.server.ledger.find(access.workspace, job)
    if found is None or not access.may_know(found.owner):
        raise not_found()
    return found


async def _follow(
    access: Access, job: Job, after: int, request: Request
) -> AsyncIterator[ServerEvent]:
    ledger = access.server.ledger
    while not await request.is_disconnected():
        ended = ledger.has_ended(job.id)
        for number, name, data in ledger.events(job.id, after):
            after = number
            if name == "state" or access.key.sees_all:
                yield ServerEvent(data, name, str(number))
        if ended or not access.server.ready:
            return
        await asyncio.sleep(_POLL_SECONDS)
