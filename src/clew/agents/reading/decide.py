"""Answer a question of yes or no by the sentence that the scorer finds to decide it."""

import asyncio
from collections.abc import Iterable, Sequence

from clew.agents.citing.entailment import is_negated
from clew.agents.citing.support import SupportSpan, make_citation
from clew.agents.core.confidence import load_models
from clew.agents.core.scratchpad import Note
from clew.agents.reading.choose import measure_coverage
from clew.agents.reading.judged import Place, squash_chance
from clew.agents.rules.table import table_for
from clew.context import Context
from clew.reader.query_scorer import say_statement
from clew.text.asked_blocks import is_question
from clew.text.sentences import sentence_spans
from clew.text.structure import is_heading_line
from clew.types import Passage

DECIDED = "decided"
"""The signal of how sure it is that a sentence decides a question."""
SAYS_YES = "says yes"
"""The model of whether a sentence that decides says yes: the scorer's opinion, and negation."""
_MAX_SENTENCES = 16  # that are judged
_LEAST = 0.5  # probability of a sentence that decides


def list_sentences(passages: Sequence[Passage]) -> Iterable[Place]:
    """Yield the sentences that may say something: no question and no heading does."""
    return (
        Place(p, start, end)
        for p in passages
        for start, end in sentence_spans(p.text)
        if not is_question(p.text[start:end]) and not is_heading_line(p.text[start:end])
    )


async def decide(ctx: Context, passages: Sequence[Passage]) -> Note | None:
    """Note yes or no with the sentence that decides the question; None if none does."""
    places = choose_sentences(ctx.question, passages)
    if ctx.scorer is None or not places:
        return None
    texts = [say_statement(one.passage.title, one.find_told()) for one in places]
    decides, yes = await asyncio.to_thread(ctx.scorer.score_statements, ctx.question, texts)
    best = int(decides.argmax())
    if (chance := float(decides[best])) < _LEAST:
        return None
    place = places[best]
    cited = make_citation(place.passage, SupportSpan(place.start, place.end, 1.0))
    says = describe_saying(ctx.question, cited.quote, float(yes[best]))
    said = (await load_models(ctx.key_values))[SAYS_YES](says)
    signs = {
        DECIDED: squash_chance(chance),
        "clear": abs(squash_chance(said)),
        "denied": float(said < 0.5),
    }
    table = table_for(ctx.question)
    short = table.yes if said >= 0.5 else table.no
    probability = chance * max(said, 1 - said)
    return Note(ctx.question, short, cited.quote, cited, probability=probability, signs=signs)


def describe_saying(question: str, sentence: str, yes: float) -> dict[str, float]:
    """Return what speaks for yes: the scorer's opinion, and whether only one of both is negated."""
    denies = is_negated(sentence) != is_negated(question)
    return {"said": squash_chance(yes), "denies": float(denies)}


def choose_sentences(question: str, passages: Sequence[Passage]) -> list[Place]:
    """Choose the sentences with most words of a question, with their page and the one before."""
    found = list(list_sentences(passages))
    covered = [
        measure_coverage(question, f"{one.passage.title} {one.find_told()}") for one in found
    ]
    order = sorted(range(len(found)), key=lambda at: -covered[at])  # of equals the first
    return [found[at] for at in sorted(order[:_MAX_SENTENCES])]
