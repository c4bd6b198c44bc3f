"""Whether the evidence is there, decided by code: small models say "enough" to everything."""

from dataclasses import replace

from clew.agents.answer import Answer
from clew.agents.planning.naming import asked_about
from clew.agents.referring import lone_pronoun
from clew.agents.writing.support import mentions
from clew.agents.writing.wordings import CANDIDATE
from clew.agents.writing.written import refusal
from clew.context import Context


def unsaid(ctx: Context) -> str:
    """That a question leaves open whom it is about, where it does: "Where was she born?"."""
    pronoun = "" if ctx.given else lone_pronoun(ctx.view, ctx.question)
    return pronoun and f"the question does not say whom or what “{pronoun}” means"


def unspoken(ctx: Context, answer: Answer) -> tuple[str, ...]:
    """Names in the question that no passage of the evidence speaks of, if they are half of it.

    A long question names things in passing; what it asks about may well be there.
    """
    names = asked_about(ctx.view, ctx.question)
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
    if answer.verdict != "answered" or not answer.citations or ctx.chat("answer") is not None:
        return answer
    missing = unspoken(ctx, answer)
    if missing and len(missing) == len(asked_about(ctx.view, ctx.question)):
        why = f"nothing is said about {', '.join(missing[:3])}"
    elif not (why := unsaid(ctx)):
        return answer
    lines = [line for line in answer.answer.splitlines() if not line.startswith(CANDIDATE)]
    head = f"{why[0].upper()}{why[1:]}; the nearest there is:"
    return replace(answer, answer="\n".join([head, *lines]), candidate="")
