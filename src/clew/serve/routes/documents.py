"""Documents: upload, list, status, original and parsed text, labels, delete."""

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from pydantic import Field

from clew.engine import KnowledgeBase
from clew.ingest.arrivals import read_arrivals
from clew.labels import check_labels, is_visible, read_labels, save_labels
from clew.serve.core.access import Access, Admin, Reader, Writer
from clew.serve.core.bodies import StrictBody
from clew.serve.core.jobs import Job
from clew.serve.core.originals import (
    NO_ORIGINAL,
    Original,
    check_unchanged,
    find_original,
    list_names,
)
from clew.serve.core.problems import Problem, not_found
from clew.serve.core.uploads import Upload, check_name
from clew.serve.routes.jobs import check_may_build, queue_job
from clew.types import Document

router = APIRouter(prefix="/workspaces/{workspace}/documents", tags=["documents"])
_DOCUMENT_ID = re.compile(r"[0-9a-f]{32}")
_UPLOAD_ID = re.compile(r"[0-9a-f]{64}")
_MAX_LISTED = 500
_MAX_REASONS = 5  # reasons why passages of a document failed
_MAX_TITLES = 5_000  # documents whose titles are looked through: a title is read with its text
T = TypeVar("T")
Order = Literal["name", "newest", "oldest"]


class LabelsRequest(StrictBody):
    """The labels that a document is to have."""

    labels: list[str] = Field(max_length=32, examples=[["team=legal"]])


@router.post("", status_code=201, summary="Upload a file as the body of the request")
async def upload_document(
    access: Writer,
    request: Request,
    name: Annotated[str, Query(description="The document's name.", examples=["report.pdf"])],
    label: Annotated[list[str] | None, Query(description="Such as team=legal.")] = None,
    build: Annotated[bool, Query(description="Start a build with it at once.")] = False,
) -> Response:
    """Store a file under the hash of its content; a build adds it to the knowledge base."""
    labels = _allowed_labels(access, label or [])
    document = check_name(name, access.key)
    await _check_relabelling(access, document, labels)
    if not build:
        stored, _ = await _store_upload(access, document, request.stream(), labels, lambda: None)
        return JSONResponse(stored.to_json(), 201)
    stored, job = await upload_and_build(access, document, request.stream(), labels)
    return JSONResponse({**stored.to_json(), "job": job.to_json()}, 201)


@router.get("", summary="Documents and files that wait to be built")
async def list_documents(
    access: Reader,
    after: Annotated[str, Query(description="Names after this one.", max_length=1000)] = "",
    limit: Annotated[int, Query(ge=1, le=_MAX_LISTED)] = 100,
    failed: Annotated[bool, Query(description="Only those with failed passages.")] = False,
    waiting: Annotated[bool, Query(description="Only files that no build has added.")] = False,
    query: Annotated[str, Query(description="Part of name or title.", max_length=200)] = "",
    order: Annotated[Order, Query(description="By name, or by arrival.")] = "name",
) -> Response:
    """Return documents in order; `next` is the `after` of the following page.

    `characters` is the size of a document's text, `bytes` that of an uploaded file. `failures` has
    for a document the reasons why passages failed, each with their number. Where there are more
    than 5,000 documents, `query` is looked for in names only.
    """
    wanted = query.casefold()
    uploads = {
        one.name: {"id": one.hash, **one.to_json()}
        for one in ([] if failed else _own_uploads(access))
        if one.state != "added" and wanted in one.name.casefold()
    }

    async def find(base: KnowledgeBase) -> list[str]:
        return [] if waiting else await _find_built(base, wanted, failed)

    names = sorted({*uploads, *await access.run(find)})
    if order != "name":
        times = await find_arrivals(access, names)
        newest = -1 if order == "newest" else 1
        names.sort(key=lambda name: newest * times.get(name, 0.0))
    if order == "name":
        rest = [name for name in names if name > after]
    else:
        rest = names[names.index(after) + 1 if after in names else 0 :]
    shown = rest[:limit]

    async def show(base: KnowledgeBase) -> dict[str, dict[str, Any]]:
        return await _show_built(base, [name for name in shown if name not in uploads])

    found = uploads | await access.run(show)
    labels = await labels_of(access, shown)
    arrivals = await find_arrivals(access, shown)
    sizes = {one.name: one.bytes for one in _own_uploads(access)}
    rows = [
        {
            **({"bytes": sizes[name]} if name in sizes else {}),
            **found[name],
            # An upload that waits may have its own; without any a document keeps what it has.
            "labels": found[name].get("labels") or labels.get(name, []),
            "arrived": arrivals.get(name),
        }
        for name in shown
        if name in found
    ]
    return JSONResponse({"documents": rows, "next": shown[-1] if len(rest) > limit else None})


async def _find_built(base: KnowledgeBase, wanted: str, failed: bool) -> list[str]:
    """Return the names of documents that have these words, folded, in their name or title."""
    sources = await base.store.sources()
    if failed:
        broken = {failure.document for failure in await base.store.failures()}
        sources = {name: one for name, one in sources.items() if one.document in broken}
    titles: dict[str, str] = {}
    if wanted and len(sources) <= _MAX_TITLES:
        ids = sorted({one.document for one in sources.values()})
        async with base.store.snapshot() as now:
            titles = {id: one.title for id, one in (await now.documents(ids)).items()}
    return [
        name
        for name, one in sources.items()
        if wanted in name.casefold() or wanted in titles.get(one.document, "").casefold()
    ]


async def _show_built(base: KnowledgeBase, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return what is listed of documents by name; those that are gone are left out."""
    sources = await base.store.sources(names)
    failures: dict[str, Counter[str]] = defaultdict(Counter)
    for failure in await base.store.failures():
        failures[failure.document][failure.reason] += 1
    async with base.store.snapshot() as now:
        held = await now.documents(sorted({one.document for one in sources.values()}))
    return {
        name: {
            **{"id": one.id, "name": name, "title": one.title, "state": "added"},
            "characters": len(one.text),
            "failures": [
                {"reason": reason, "passages": count}
                for reason, count in failures[one.id].most_common(_MAX_REASONS)
            ],
        }
        for name, source in sources.items()
        if (one := held.get(source.document))
    }


@router.get("/{document}", summary="State and size of one document or upload")
async def show_document(access: Reader, document: str) -> Response:
    """Return what is known of a document, or of an upload by its SHA-256."""
    if _UPLOAD_ID.fullmatch(document):
        states = [u.to_json() for u in _own_uploads_of(access, document)]
        if not states:
            raise not_found()
        return JSONResponse({"id": document, "uploads": states})
    found = await find_document(access, document)
    labels = await labels_of(access, found.names)
    return JSONResponse(
        {
            "id": found.id,
            "names": list(found.names),
            "title": found.title,
            "characters": len(found.text),
            "pages": len(found.page_starts),
            "metadata": dict(found.metadata),
            "labels": {name: labels.get(name, []) for name in found.names},
        }
    )


@router.get("/{document}/text", summary="The text as it was read; citations point into it")
async def document_text(access: Reader, document: str) -> Response:
    """Return the parsed text."""
    return PlainTextResponse((await find_document(access, document)).text)


@router.get("/{document}/original", summary="The file that a document was read from")
async def document_original(access: Reader, document: str) -> Response:
    """Return the bytes, if this key may see every document that was read from them.

    Files that were added on the command line are sent if they are where they were, and unchanged.
    Documents for which a newer upload waits have none.
    """
    if _UPLOAD_ID.fullmatch(document):
        uploads = _own_uploads_of(access, document)
        if not uploads:
            raise not_found(NO_ORIGINAL)
        path = access.server.uploads.path(access.workspace, uploads[0].name, uploads[0].hash)
        original = Original(path, uploads[0].name, uploaded=True)
    else:
        found = await find_document(access, document)
        original = await find_original(access, found)
        await check_unchanged(access, original, found)
    return FileResponse(
        original.path,
        media_type="application/octet-stream",
        filename=original.name.rsplit("/", 1)[-1],
        headers={"Content-Security-Policy": "sandbox"},
    )


@router.put("/{document}/labels", summary="Set who may see a document")
async def set_labels(access: Admin, document: str, body: LabelsRequest) -> Response:
    """Set the labels of every name of a document."""
    access.require_all_labels()
    labels = check_labels(body.labels)
    names = (await find_document(access, document)).names

    async def work(base: KnowledgeBase) -> None:
        await save_labels(base.store, dict.fromkeys(names, labels))

    await access.run(work)
    return JSONResponse({"id": document, "names": list(names), "labels": list(labels)})


@router.delete("/{document}", summary="Remove a document and what only it supports")
async def delete_document(access: Writer, document: str) -> Response:
    """Remove a document by its id, or a waiting upload by its SHA-256."""
    uploads = access.server.uploads
    if _UPLOAD_ID.fullmatch(document):
        names = tuple(u.name for u in _own_uploads_of(access, document))
        if not names:
            raise not_found()
    else:
        names = (await find_document(access, document)).names

        async def work(base: KnowledgeBase) -> None:
            await base.remove(names)

        await access.run_on_all(work)
        pool = access.server.pool
        await access.server.engine.run(pool.remove_earlier_copies(access.workspace))
    for name in names:
        await asyncio.to_thread(uploads.remove, access.workspace, name)
    await _remove_empty_files(access, names)
    return JSONResponse({"removed": list(names)})


async def find_document(access: Access, document: str) -> Document:
    """Return a document as this key may see it: with the names it may see."""
    if not _DOCUMENT_ID.fullmatch(document):
        raise not_found()

    async def work(base: KnowledgeBase) -> Document | None:
        async with base.store.snapshot() as now:
            return (await now.documents([document])).get(document)

    found = await access.run(work)
    if found is None:
        raise not_found()
    return found


async def _remove_empty_files(access: Access, names: Iterable[str]) -> None:
    """Remove the uploaded files of removed rows of which no row is left."""
    files = {file for file, mark, _ in (name.partition("#") for name in names) if mark}
    if files:
        files -= {name.partition("#")[0] for name in await access.run_on_all(list_names)}
    for file in files:
        found = access.server.uploads.find(access.workspace, file)
        if found is not None and found.state == "added":
            await asyncio.to_thread(access.server.uploads.remove, access.workspace, file)


async def upload_and_build(
    access: Access, document: str, body: AsyncIterator[bytes], labels: tuple[str, ...] = ()
) -> tuple[Upload, Job]:
    """Store a file and queue its build; nothing is kept of a file that may not be built now."""
    check_may_build(access)

    def queue() -> Job:  # another build may have started while the file was on its way
        return queue_job(access, "build", {"names": [document]})

    return await _store_upload(access, document, body, labels, queue)


async def _store_upload(
    access: Access,
    document: str,
    body: AsyncIterator[bytes],
    labels: tuple[str, ...],
    also: Callable[[], T],
) -> tuple[Upload, T]:
    uploads, workspace = access.server.uploads, access.workspace
    async with uploads.receive(workspace, body) as content:
        return await asyncio.to_thread(
            uploads.record, workspace, document, content, labels, access.key.id, also
        )


async def labels_of(access: Access, names: Any) -> dict[str, list[str]]:
    """Return the labels of documents, by name; those without any are left out."""

    async def work(base: KnowledgeBase) -> dict[str, tuple[str, ...]]:
        return await read_labels(base.store, list(names))

    found = await access.run_on_all(work)
    return {name: list(labels) for name, labels in found.items()}


async def find_arrivals(access: Access, names: Sequence[str]) -> dict[str, float]:
    """Return when documents arrived, by name; an upload's counts where the build noted none."""
    uploads = {one.name: one.created for one in access.server.uploads.list(access.workspace)}
    files = {name: name.partition("#")[0] for name in names}
    times = {name: uploads[file] for name, file in files.items() if file in uploads}

    async def work(base: KnowledgeBase) -> dict[str, float]:
        return await read_arrivals(base.store, names)

    return {**times, **await access.run_on_all(work)}


async def _check_relabelling(access: Access, file: str, labels: tuple[str, ...]) -> None:
    """Refuse to change the labels of documents that exist without the scope for it."""
    if not labels or access.key.allows(access.workspace, "admin"):
        return  # without labels documents keep theirs
    every = await access.run_on_all(list_names)
    names = [name for name in every if name.partition("#")[0] == file]
    held = await labels_of(access, names)
    if any(set(held.get(name, ())) != set(labels) for name in names):
        raise Problem(403, "this document has other labels; changing them needs the admin scope")


def _own_uploads(access: Access) -> list[Upload]:
    """Return the uploads that a key may know of: its own, or all if it sees every document."""
    found = access.server.uploads.list(access.workspace)
    return [u for u in found if access.may_know(u.owner)]


def _own_uploads_of(access: Access, content: str) -> list[Upload]:
    """Return those of them with this SHA-256."""
    return [u for u in _own_uploads(access) if u.hash == content]


def _allowed_labels(access: Access, labels: list[str]) -> tuple[str, ...]:
    """Return the labels; a key may only set those that it may see itself."""
    found = check_labels(labels)
    if access.key.labels is not None and not is_visible(found, access.key.labels):
        raise Problem(403, "this key may not set a label that it cannot see")
    return found
