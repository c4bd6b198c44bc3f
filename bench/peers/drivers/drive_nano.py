"""Driver of nano-graphrag."""

import logging
import re

from job import run


def main(job):
    """Import, then run the action."""
    with job.measure_time("import"):
        from nano_graphrag import GraphRAG, QueryParam
        from nano_graphrag._llm import (
            get_openai_async_client_instance,
            openai_complete_if_cache,
        )
        from nano_graphrag._utils import wrap_embedding_func_with_attrs
    import numpy as np

    for name in ("nano-graphrag", "httpx", "nano-vectordb"):
        logging.getLogger(name).setLevel(logging.ERROR)

    @wrap_embedding_func_with_attrs(embedding_dim=job.dim, max_token_size=8192)
    async def embed(texts):
        reply = await get_openai_async_client_instance().embeddings.create(
            model=job.embed_model, input=texts, encoding_format="float"
        )
        return np.array([row.embedding for row in reply.data])

    async def chat(prompt, system_prompt=None, history_messages=(), **options):
        options.pop("max_tokens", None)
        return await openai_complete_if_cache(
            job.model, prompt, system_prompt, list(history_messages or ()), **options
        )

    with job.measure_time("open"):
        rag = GraphRAG(
            working_dir=job.folder,
            embedding_func=embed,
            best_model_func=chat,
            cheap_model_func=chat,
            enable_naive_rag=True,
        )
    if job.action in ("build", "add"):
        with job.measure_time():
            rag.insert(job.texts)
    elif job.action == "delete":
        job.result["status"] = "not supported"
    else:
        for method in job.methods:
            param = QueryParam(mode=method, only_need_context=True)
            job.ask_questions(
                method, lambda text, param=param: parse_sources(rag.query(text, param))
            )


def parse_sources(context):
    """Parse the passages of its context, in order: the last table, or separated chunks."""
    text = str(context)
    if "-----Sources-----" not in text:
        return text.split("--New Chunk--\n")
    table = text.split("-----Sources-----", 1)[1].split("```csv", 1)[-1].rsplit("```", 1)[0]
    # Nested quotes are not escaped, so a CSV reader would fail.
    return [row.strip().strip('"') for row in re.split(r"\n\d+,\t", table)[1:]]


if __name__ == "__main__":
    run(main)
