"""Whether the evidence is there, decided by code: small models say "enough" to everything."""

from dataclasses import replace

from clew.agents.answer import Answer
from clew.agents.planning.naming import named
from clew.agents.writing.support import mentions
from clew.agents.writing.wordings import CANDIDATE
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


def doubted(ctx: Context, answer: Answer) -> Answer:
    """In open mode, quotes that never mention what is asked about are called the nearest there is.

    A model may know more than the documents and says so itself.
    """
    quoted = answer.verdict == "answered" and answer.citations and ctx.chat("answer") is None
    missing = unspoken(ctx, answer) if quoted else ()
    if not missing or len(missing) < len(named(ctx.view, ctx.question)):
        return answer
    lines = [line for line in answer.answer.splitlines() if not line.startswith(CANDIDATE)]
    head = f"Nothing is said about {', '.join(missing[:3])}; the nearest there is:"
    return replace(answer, answer="\n".join([head, *lines]), candidate="")
