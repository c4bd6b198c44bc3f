"""Whether the evidence is there, decided by code: small models say "enough" to everything."""

from dataclasses import replace

from clew.agents.answer import Answer
from clew.agents.planning.naming import named
from clew.agents.writing.support import mentions
from clew.agents.writing.written import refusal
from clew.context import Context


def unspoken(ctx: Context, answer: Answer) -> tuple[str, ...]:
    """Names in the question that no passage of the evidence speaks of, if they are half of it.

    A long question names things in passing; what it asks about may well be there.
    """
    names = named(ctx.view, ctx.question)
    texts = [f"{passage.title} {passage.text}" for passage in answer.evidence.chunks]
    missing = [name for name in names if not any(mentions(name, text) for text in texts)]
    return tuple(missing) if 2 * len(missing) >= len(names) else ()


def held_back(ctx: Context, answer: Answer) -> Answer:
    """The answer, or a refusal where the evidence never mentions what the question is about."""
    missing = unspoken(ctx, answer)
    if not missing:
        return answer
    # Where nothing was read, nothing can be said of what it says: the agent's own reason stands.
    if answer.verdict == "refused" and not answer.evidence.chunks:
        return answer
    if answer.verdict == "refused" and missing[0] in answer.missing:
        return answer
    about = refusal(ctx, answer.evidence, f"nothing is said about {', '.join(missing[:3])}")
    return replace(about, complete=answer.complete, note=answer.note)
