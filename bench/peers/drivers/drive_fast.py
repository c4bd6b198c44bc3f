"""Driver of fast-graphrag."""

import logging

from job import run


def main(job):
    """Import, then run the action."""
    with job.measure_time("import"):
        from fast_graphrag import GraphRAG, QueryParam
        from fast_graphrag._llm import OpenAIEmbeddingService, OpenAILLMService
    for name in ("httpx", "fast_graphrag", "graphrag"):
        logging.getLogger(name).setLevel(logging.ERROR)
    key = job.api_key or "none"
    with job.measure_time("open"):
        rag = GraphRAG(
            working_dir=job.folder,
            domain="Names, and what the passages say about them.",
            example_queries="What joins one name to another?",
            entity_types=["person", "organization", "place", "work", "event", "thing"],
            n_checkpoints=0,
            config=GraphRAG.Config(
                llm_service=OpenAILLMService(model=job.model, base_url=job.base_url, api_key=key),
                embedding_service=OpenAIEmbeddingService(
                    model=job.embed_model,
                    base_url=job.base_url,
                    api_key=key,
                    embedding_dim=job.dim,
                    rate_limit_per_minute=False,
                ),
            ),
        )
    if job.action in ("build", "add"):
        with job.measure_time():
            entities, relations, _ = rag.insert(job.texts, show_progress=False)
        job.result |= {"entities": entities, "relations": relations}
    elif job.action == "delete":
        job.result["status"] = "not supported"
    else:
        for method in job.methods:
            job.ask_questions(
                method,
                lambda text: context_passages(rag.query(text, QueryParam(only_context=True))),
            )


def context_passages(answer):
    """Return the chunk texts of its context, best first."""
    return [chunk.content for chunk, _ in answer.context.chunks]


if __name__ == "__main__":
    run(main)
