"""Hash of the run conditions, so that records made under others are never reused."""

from clew.engine import ANSWERING_ROLES, KnowledgeBase
from clew.llm.roles import resolve_model
from clew.text import digest


async def hash_run_conditions(kb: KnowledgeBase) -> str:
    """Hash everything of a knowledge base and its settings that affects a result.

    API keys, limits and prices are left out, since they do not change the result.
    """
    embedder = kb.embed.name if kb.embed else ""
    models = kb.settings.models
    roles = [
        repr(resolve_model(role, models))
        for role in (*ANSWERING_ROLES, "judge")
        if kb.models.has(role)
    ]
    return digest(
        str((await kb.store.counts()).generation),
        embedder,
        # Tuning changes how questions are embedded but not the generation number.
        (await kb.store.get("tuning", [embedder])).get(embedder, ""),
        kb.settings.rerank.model_dump_json(exclude={"api_key"}),
        *roles,
    )
