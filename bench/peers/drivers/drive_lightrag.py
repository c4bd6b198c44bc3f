"""Driver of lightrag-hku, with one shared client (its functions make one per call)."""

import asyncio
import logging

from job import run

CONCURRENCY = 16  # calls at once; its default is 4


def model_functions(job):
    """Return the chat and embedding functions that LightRAG expects."""
    import numpy as np
    from lightrag.utils import EmbeddingFunc
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=job.base_url, api_key=job.api_key or "none")

    async def chat(prompt, system_prompt=None, history_messages=(), **_):
        turns = [{"role": "system", "content": system_prompt}] if system_prompt else []
        turns += [*(history_messages or ()), {"role": "user", "content": prompt}]
        reply = await client.chat.completions.create(model=job.model, messages=turns, temperature=0)
        return reply.choices[0].message.content

    async def embed(texts, **_):
        reply = await client.embeddings.create(model=job.embed_model, input=list(texts))
        return np.array([row.embedding for row in reply.data], dtype=np.float32)

    return chat, EmbeddingFunc(embedding_dim=job.dim, max_token_size=8192, func=embed)


async def open_rag(job):
    """Create and initialise LightRAG."""
    from lightrag import LightRAG

    chat, embed = model_functions(job)
    rag = LightRAG(
        working_dir=job.folder,
        llm_model_func=chat,
        embedding_func=embed,
        llm_model_max_async=CONCURRENCY,
        embedding_func_max_async=CONCURRENCY,
        max_parallel_insert=CONCURRENCY // 2,
    )
    await rag.initialize_storages()
    return rag


async def run_action(job):
    """Run the job's action."""
    from lightrag import QueryParam

    with job.measure_time("open"):
        rag = await open_rag(job)
    if job.action in ("build", "add"):
        with job.measure_time():
            await rag.ainsert(job.texts, ids=job.ids, file_paths=[f"{one}.txt" for one in job.ids])
        job.result["status"] = {
            str(key): value for key, value in (await rag.get_processing_status()).items()
        }
    elif job.action == "delete":
        with job.measure_time():
            await rag.adelete_by_doc_id(job.delete)
    else:
        loop = asyncio.get_running_loop()
        for method in job.methods:
            param = QueryParam(mode=method, enable_rerank=False, chunk_top_k=max(20, job.top))

            def query(text, param=param):
                found = asyncio.run_coroutine_threadsafe(rag.aquery_data(text, param), loop)
                chunks = (found.result().get("data") or {}).get("chunks") or []
                return [chunk["content"] for chunk in chunks]

            await asyncio.to_thread(job.ask_questions, method, query)
    await rag.finalize_storages()


def main(job):
    """Import, then run the action."""
    with job.measure_time("import"):
        from lightrag import LightRAG  # noqa: F401  (the package itself imports nothing)
    for name in ("lightrag", "httpx", "nano-vectordb"):
        logging.getLogger(name).setLevel(logging.ERROR)
    asyncio.run(run_action(job))


if __name__ == "__main__":
    run(main)
