"""Driver of Clew itself, in the environment that runs the benchmark."""

import asyncio
from pathlib import Path

from job import run


async def _iter_documents(documents):
    from clew.text.unicode import digest
    from clew.types import Document

    for row in documents:
        title, text = row.get("title", ""), row["text"]
        yield Document(digest(title, text), text, title, (str(row["id"]),))


async def run_action(job):
    """Run the job's action."""
    from clew.config import EmbedSettings, ModelSettings, Settings
    from clew.engine import KnowledgeBase
    from clew.errors import ClewError

    settings = Settings(
        kb=Path(job.folder) / "kb",
        models=ModelSettings(
            model=job.model, base_url=job.base_url, api_key=job.api_key, concurrency=job.at_once
        ),
        embed=EmbedSettings(
            model=job.embed_model, base_url=job.base_url, api_key=job.api_key, batch=256
        ),
    )
    with job.measure_time("open"):
        base = await KnowledgeBase.open(settings, create=True)
    if job.action in ("build", "add"):
        with job.measure_time():
            added = await base.take(_iter_documents(job.documents))
        job.result |= {"entities": added.counts.entities, "relations": added.counts.facts}
    elif job.action == "delete":
        with job.measure_time():
            await base.remove([job.delete])
    else:
        loop = asyncio.get_running_loop()
        for method in job.methods:

            def search(text, method=method):
                asked = base.search(text, recipe=method, k=job.top)
                results = asyncio.run_coroutine_threadsafe(asked, loop).result()
                return [passage.doc for passage in results.evidence.chunks]

            try:
                await asyncio.to_thread(job.ask_questions, method, search)
            except ClewError as error:  # e.g. a recipe that needs a tree, which was not built
                job.result.setdefault("methods", {})[method] = {"fault": str(error)}
    await base.close()


def main(job):
    """Import, then run the action."""
    with job.measure_time("import"):
        import clew.engine  # noqa: F401
    asyncio.run(run_action(job))


if __name__ == "__main__":
    run(main)
