"""Whether a place is of another sort than the one asked for: a town is no county and no country."""

import re

from clew.agents.answering.unsaid import gather_cited, mean_same
from clew.agents.core.types import Answer
from clew.agents.reading.choose import find_asked_noun
from clew.agents.reading.spans import asked_words
from clew.agents.rules.table import table_for
from clew.context import Context
from clew.text.countries import find_countries
from clew.text.unicode import split_words

# "N is a university city in …": what stands before the first preposition says what N is.
_DEFINED = (
    r"\b(?:\s*\([^()]*\))?,?\s+(?:is|was)\s+(?:an?|the|one of the)\s+(?P<sort>[^.,;()]*?)"
    r"(?=\s(?:in|of|at|on|near|by|that|which|who|where|with|known)\b|[.,;()]|$)"
)


async def is_other_sort(ctx: Context, answer: Answer) -> bool:
    """Whether a place that is named is not what "which county" asks for.

    A sentence may call it so ("the county of N"), or define it as something else; of countries all
    that are well known are listed.
    """
    table, noun = table_for(ctx.question), find_asked_noun(ctx.question)
    if not noun or table.find_answer_kind(ctx.question) != "place":
        return False
    name, texts = re.escape(answer.candidate), [one.text for one in answer.evidence.chunks]
    known = " ".join((gather_cited(answer).whole, *texts))
    called = rf"\b{noun}\W+(?:of\W+)?(?:the\W+)?{name}\b|\b{name},?\W+(?:the\W+)?{noun}\b"
    if noun in split_words(answer.candidate) or re.search(called, known, re.IGNORECASE):
        return False
    country = table.countries.fullmatch(noun) is not None
    if country and find_countries(split_words(answer.candidate))[0]:
        return False
    sorts = [found["sort"] for found in re.finditer(rf"\b{name}{_DEFINED}", known)]
    if not sorts:
        return country
    said = asked_words(" ".join(sorts))
    return not (noun in said or await mean_same(ctx, [noun], said))
