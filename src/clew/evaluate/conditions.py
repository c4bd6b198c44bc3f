"""What a record was made under, so that records of other conditions are never taken over."""

from clew.engine import ANSWERING, KnowledgeBase
from clew.llm.roles import chosen
from clew.text import digest


async def conditions(kb: KnowledgeBase) -> str:
    """Whatever of a knowledge base and its settings decides an outcome, hashed.

    Keys, limits and prices are left out: with others of these the outcome is the same.
    """
    embedder = kb.embed.name if kb.embed else ""
    models = kb.settings.models
    asked = [repr(chosen(role, models)) for role in (*ANSWERING, "judge") if kb.models.has(role)]
    return digest(
        str((await kb.store.counts()).generation),
        embedder,
        # Tuning changes how questions are read, and leaves the generation as it is.
        (await kb.store.recall("tuning", [embedder])).get(embedder, ""),
        kb.settings.rerank.model_dump_json(exclude={"api_key"}),
        *asked,
    )
