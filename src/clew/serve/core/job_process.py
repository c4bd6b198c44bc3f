"""What a job's process does: open the workspace, do the work, report and finish."""

import asyncio
import signal
import sys
import traceback
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import TYPE_CHECKING, Any

from clew import sync
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.errors import ClewError, Locked
from clew.ingest.files import ReadItem, read_files
from clew.ingest.readers.source import ReadBudget, Skipped, SourceFile
from clew.json_output import to_json_value
from clew.labels import DocumentLabeller
from clew.llm.budget import BudgetExceeded, UsageBudget
from clew.recipes.chunking import ChosenChunking, find_shared_chunking
from clew.serve.core.accounts import KeyAccount
from clew.serve.core.database import ServerDatabase
from clew.serve.core.folders import Folders, keep_to_owner
from clew.serve.core.jobs import Job, JobLedger
from clew.serve.core.keys import KeyStore
from clew.serve.core.metrics import Tracer
from clew.serve.core.shared_limit import share_model_calls
from clew.serve.core.uploads import Upload, UploadStore
from clew.serve.core.workspaces import OpenKb
from clew.types import Document

if TYPE_CHECKING:
    from clew.evaluate.measure import MeasureResult  # a build shall not wait for its import

_PROGRESS_SECONDS = 0.25  # between two reports
_CANCEL_SECONDS = 0.3  # between two looks whether the job is to stop


@dataclass
class JobRun:
    """A running job, with what it needs."""

    job: Job
    ledger: JobLedger
    uploads: UploadStore
    base: KnowledgeBase
    _reported: float = 0.0
    documents: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The documents that each upload gave, by its name."""
    reasons: dict[str, str] = field(default_factory=dict)
    """Why an upload, by name, gave no document."""

    def progress(self, stage: str, done: int, total: int) -> None:
        """Report progress, not too often."""
        now = monotonic()
        if done == total or now - self._reported > _PROGRESS_SECONDS:
            self._reported = now
            data = {"stage": stage, "done": done, "total": total}
            self.ledger.add_event(self.job.id, "progress", data)

    async def read_uploads(
        self, some: list[Upload], labeller: DocumentLabeller | None = None
    ) -> AsyncIterator[ReadItem]:
        """Read uploaded files within the limits of [read]; parsers run in a child process."""
        budget = ReadBudget(**self.base.settings.read.model_dump())
        for upload in some:
            path = self.uploads.path(self.job.workspace, upload.name, upload.hash)
            source = SourceFile(path, upload.name)
            documents: AsyncIterator[ReadItem] = read_files([source], budget)
            if labeller is not None:
                documents = labeller.attach(documents, upload.labels)
            async for item in documents:
                self._note_outcome(upload, item)
                yield item

    def _note_outcome(self, upload: Upload, item: ReadItem) -> None:
        if isinstance(item, Document):
            self.documents[upload.name].add(item.id)
        elif isinstance(item, Skipped):
            self.reasons.setdefault(upload.name, item.reason)

    def select_uploads(self) -> list[Upload]:
        """Return the uploads that the request names, or all that wait."""
        names = self.job.request.get("names")
        waiting = self.uploads.list(self.job.workspace, "uploaded")
        return [one for one in waiting if names is None or one.name in names]

    def find_chunking(self) -> ChosenChunking | None:
        """Return how the recipe of the request wants documents to be split, if it names one."""
        recipe = self.job.request.get("recipe")
        return find_shared_chunking(self.base.chunk_presets([recipe])) if recipe else None


async def build(run: JobRun) -> Any:
    """Add the uploaded files."""
    some = run.select_uploads()
    request = run.job.request
    retry = bool(request.get("retry"))
    extractor = request.get("extractor")
    if retry and not some:
        added = await run.base.add([], extractor=extractor, retry=True, progress=run.progress)
    else:
        labeller = DocumentLabeller(run.base.store)
        documents = run.read_uploads(some, labeller)
        added = await run.base.take(
            documents, extractor, retry=retry, progress=run.progress, chunk=run.find_chunking()
        )
        await labeller.settle()
    for upload in some:
        gave = run.documents[upload.name]
        reason = "" if gave else run.reasons.get(upload.name, "holds no document")
        run.uploads.finish(run.job.workspace, upload, gave, reason)
    return to_json_value(added)


async def plan(run: JobRun) -> Any:
    """Estimate what a build would cost; nothing is written."""
    documents = run.read_uploads(run.select_uploads())
    extractor = run.job.request.get("extractor")
    chunk = run.find_chunking()
    estimate = await run.base.builder.plan(extractor=extractor, documents=documents, chunk=chunk)
    return to_json_value(estimate)


async def evaluate(run: JobRun) -> Any:
    """Measure recipes on the questions of the request."""
    return (await _measure(run)).to_dict()


async def compare_recipes(run: JobRun) -> Any:
    """Measure recipes, and tell which differences are significant."""
    from clew.evaluate.compare import compare

    done = await _measure(run)
    table = compare(done.reports, against=run.job.request.get("against", ""))
    return done.to_dict() | {"significance": table.significance(), "by_type": table.by_type()}


async def _measure(run: JobRun) -> "MeasureResult":
    from clew.evaluate.datasets import Dataset, parse_question
    from clew.evaluate.grid import GridAxes, build_grid
    from clew.evaluate.measure import MeasureOptions, measure

    request = run.job.request
    rows = enumerate(request["questions"], start=1)
    questions = tuple(parse_question(row, number) for number, row in rows)
    answers = bool(request.get("answers"))
    axes = GridAxes([request.get("mode", "open")])
    known = run.base.recipes
    grid = build_grid(request["recipes"], axes, answers=answers, recipes=known)
    wanted = MeasureOptions(
        grid, request.get("metrics", ()), answers=answers, k=request.get("k", 0)
    )
    dataset = Dataset(f"job-{run.job.id}", questions, None)
    return await measure(run.base, dataset, wanted, progress=run.progress)


async def build_trees(run: JobRun) -> Any:
    """Build community trees, from the vectors of names as well."""
    if run.base.embed is not None:
        await run.base.builder.embed_deferred("entity", run.progress)
    manager = run.base.builder.make_tree_manager(run.progress)
    write = bool(run.job.request.get("write"))
    report = await manager.build(run.job.request["trees"], write=write)
    await run.base.models.record_spending()
    return to_json_value(report)


WORK: Mapping[str, Callable[[JobRun], Awaitable[Any]]] = {
    "build": build,
    "plan": plan,
    "eval": evaluate,
    "compare": compare_recipes,
    "tree": build_trees,
}


def run_job(settings: Settings, folders: Folders, open_kb: OpenKb, job: str) -> None:
    """Run one job; the entry point of its process."""
    keep_to_owner()
    ledger = JobLedger(ServerDatabase(folders.state), folders.state / "jobs")
    try:
        with ledger.lock(job):
            sync.run(_run(settings, folders, open_kb, ledger, job))
    except Locked:  # the process of an earlier server still runs it
        return


async def _run(
    settings: Settings, folders: Folders, open_kb: OpenKb, ledger: JobLedger, name: str
) -> None:
    job = ledger.get(name)
    uploads = UploadStore(ledger.database, folders.state / "uploads")
    work = asyncio.ensure_future(_work(settings, folders, open_kb, job, uploads, ledger))
    loop = asyncio.get_running_loop()
    if sys.platform != "win32":
        for sent in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(sent, work.cancel)
    watching = asyncio.ensure_future(_watch(ledger, job.id, work))
    try:
        ledger.finish(job.id, "done", await work)
    except asyncio.CancelledError:
        if ledger.is_cancelled(job.id):
            ledger.finish(job.id, "cancelled")
        else:  # the server stops; the job goes on when it is started again
            ledger.put_back(job.id)
    except (ClewError, ValueError) as error:
        ledger.finish(job.id, "failed", error=str(error))
    except Exception as error:  # noqa: BLE001  (the edge of a worker: the ledger has to know)
        traceback.print_exc()
        ledger.finish(job.id, "failed", error=f"the job failed: {error}")
    finally:
        watching.cancel()


async def _watch(ledger: JobLedger, job: str, work: "asyncio.Future[Any]") -> None:
    while not work.done():
        await asyncio.sleep(_CANCEL_SECONDS)
        if ledger.is_cancelled(job):
            work.cancel()


async def _work(
    settings: Settings,
    folders: Folders,
    open_kb: OpenKb,
    job: Job,
    uploads: UploadStore,
    ledger: JobLedger,
) -> Any:
    location = folders.location(job.workspace)
    base = await open_kb(settings.model_copy(update={"kb": location}), False)
    base.models.limit = share_model_calls(folders, settings.serve.model_calls)
    keys = KeyStore(ledger.database)
    owner = keys.get(job.owner)
    if not owner.sees_all:
        # A reply that comes from the cache would say that a hidden document has the same words.
        base.models.reply_space = f" {job.owner}"
    base.models.budget = UsageBudget(account=KeyAccount(keys, replace(owner, id=job.owner)))
    try:
        with Tracer().span(f"clew.{job.kind}", **{"clew.workspace": job.workspace}):
            return await WORK[job.kind](JobRun(job, ledger, uploads, base))
    except BudgetExceeded as ended:
        raise BudgetExceeded(
            f"{ended}; replies are kept, so the next build goes on there"
        ) from ended
    finally:
        await base.close()
