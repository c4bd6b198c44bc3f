"""Decide by code whether the evidence covers the question: small models always say "enough"."""

from dataclasses import replace

from clew.agents.answer import Answer
from clew.agents.planning.naming import find_subject_names
from clew.agents.referring import find_lone_pronoun
from clew.agents.writing.support import mentions_name
from clew.agents.writing.wordings import CANDIDATE_LABEL
from clew.agents.writing.written import make_refusal
from clew.context import Context


def explain_lone_pronoun(ctx: Context) -> str:
    """Return the reason if a question does not say whom it is about: "Where was she born?"."""
    pronoun = "" if ctx.given_entities else find_lone_pronoun(ctx.view, ctx.question)
    return pronoun and f"the question does not say whom or what “{pronoun}” means"


def find_unmentioned_names(ctx: Context, answer: Answer) -> tuple[str, ...]:
    """Return the names in the question that no passage mentions, if they are at least half.

    A long question names things in passing; its actual subject may well be there.
    """
    names = find_subject_names(ctx.view, ctx.question)
    texts = [f"{passage.title} {passage.text}" for passage in answer.evidence.chunks]
    missing = [name for name in names if not any(mentions_name(name, text) for text in texts)]
    return tuple(missing) if 2 * len(missing) >= len(names) else ()


def refuse_if_unmentioned(ctx: Context, answer: Answer) -> Answer:
    """Turn the answer into a refusal if the evidence never mentions the question's subject."""
    missing = find_unmentioned_names(ctx, answer)
    if not missing:
        return answer
    # Without evidence the agent's own reason stands.
    if answer.verdict == "refused" and not answer.evidence.chunks:
        return answer
    if answer.verdict == "refused" and missing[0] in answer.missing:
        return answer
    about = make_refusal(ctx, answer.evidence, f"nothing is said about {', '.join(missing[:3])}")
    return replace(about, complete=answer.complete, note=answer.note)


def mark_if_unmentioned(ctx: Context, answer: Answer) -> Answer:
    """In open mode, mark quotes that never mention the question's subject as the nearest found.

    An answer by a model is left alone: it may know more than the documents and marks it itself.
    """
    if answer.verdict != "answered" or not answer.citations or ctx.chat("answer") is not None:
        return answer
    missing = find_unmentioned_names(ctx, answer)
    if missing and len(missing) == len(find_subject_names(ctx.view, ctx.question)):
        why = f"nothing is said about {', '.join(missing[:3])}"
    elif not (why := explain_lone_pronoun(ctx)):
        return answer
    lines = [line for line in answer.answer.splitlines() if not line.startswith(CANDIDATE_LABEL)]
    head = f"{why[0].upper()}{why[1:]}; the nearest there is:"
    return replace(answer, answer="\n".join([head, *lines]), candidate="")
