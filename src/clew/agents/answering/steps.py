"""Choose the list of steps that a question wants, by meaning.

What announces steps seldom has the words of a question: "How do I swap the oil?" wants those under
"Changing the oil". So the question's vector is compared with the titles and the lead of each list,
and with its items; how near the best is, and how much nearer than the next, tells how sure it is
(fitted by `bench.procedures`). Steps that lack a word of the question are quoted, not told as sure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clew.agents.answering.exact_terms import find_exact_terms
from clew.agents.answering.quote_block import Block, asks_passive, find_blocks, is_table
from clew.agents.answering.units import (
    Valued,
    find_cosines,
    stem_words,
    weigh_known,
    weigh_said,
    weigh_words,
)
from clew.agents.citing.support import SupportSpan, make_citation
from clew.agents.core.confidence import load_models
from clew.agents.rules.question_analysis import find_wanted_block
from clew.agents.rules.table import table_for
from clew.context import Context
from clew.retrieve.wording import can_judge, judge
from clew.text.definitions import holds_term
from clew.text.places import find_units
from clew.text.structure import CRUMB_SEPARATOR, find_headings
from clew.text.word_forms import question_language
from clew.types import Citation, Found, Passage

LEAST = 0.3
"""The least probability of steps that are quoted."""
MODEL = "steps"
"""The model of confidence that judges them."""
_LIKELY, _POSSIBLE = 0.5, 0.05  # least probability by the model alone, and where a rule agrees
_ITEMS = 0.5  # how much the nearest item counts beside what announces the steps
_MOST = 40  # lists that are compared, and sections of prose
_MOST_AHEAD, _ALONE = 0.2, 0.05  # lead over the next list that counts, and of the only list
_AHEAD = 0.05  # by which a section of prose must be ahead of the best list to be told instead
_SAID = 0.5  # of a question's weight, that another unit says at least
_MORE = 0.15  # and beyond the steps
_UNSAID = 0.45  # probability at most where neither steps nor announcement say a word of a question


@dataclass(frozen=True, slots=True)
class ChosenSteps:
    """Steps that may be wanted, what speaks for them, and how probable they are."""

    cited: Citation
    signals: Mapping[str, float]
    chance: float


@dataclass(frozen=True, slots=True)
class _Near:
    """A list, its announcement, and how near both it and an item are to the question."""

    block: Block
    announced: str
    announcement: float
    item: float

    @property
    def score(self) -> float:
        return self.announcement + _ITEMS * self.item


async def wants_steps(ctx: Context) -> bool:
    """Tell whether a question wants steps: by rules, and in English by the model of wordings."""
    asked = ctx.question
    ruled = find_wanted_block(asked) == "steps" or asks_passive(asked)
    if not _knows_wording(ctx):
        return ruled
    [chance] = await judge(ctx, "steps", [asked])
    return chance > (_POSSIBLE if ruled else _LIKELY)


async def choose_steps(
    ctx: Context, found: Found, passages: Sequence[Passage]
) -> ChosenSteps | None:
    """Return the steps nearest to a question that wants some; None if none is near enough."""
    if not _knows_wording(ctx) or not await wants_steps(ctx):
        return None
    starts = {passage.id: passage.start for passage in passages}
    cosines = await find_cosines(ctx, found, starts, len(passages))
    ranked = sorted(await _compare_lists(ctx, cosines, passages), key=lambda one: -one.score)
    if not ranked:
        return None
    best = ranked[0]
    prose = await _score_prose(ctx, cosines, ranked, passages)
    if prose > best.score + _AHEAD:
        return None
    ahead = best.score - ranked[1].score if len(ranked) > 1 else _ALONE
    known = weigh_known(ctx.view, ctx.question, passages)
    signals = {
        "announcement": best.announcement,
        "item": best.item,
        "ahead": min(_MOST_AHEAD, ahead),
        "told": weigh_said(known, best.announced) / (sum(known.values()) or 1.0),
    }
    chance = (await load_models(ctx.key_values))[MODEL](signals)
    if not _says_all(ctx, best):
        if _is_said_elsewhere(ctx.question, known, best, passages):
            return None
        chance = min(chance, _UNSAID)
    if chance < LEAST:
        return None
    block = best.block
    cited = make_citation(block.passage, SupportSpan(block.start, block.end, 1.0))
    return ChosenSteps(cited, signals, round(chance, 4))


def _knows_wording(ctx: Context) -> bool:
    """Whether the model of wordings knows the language: it was fitted on English."""
    return question_language(ctx.question) == "en" and can_judge(ctx)


async def _compare_lists(
    ctx: Context, cosines: Mapping[str, Sequence[Valued]], passages: Sequence[Passage]
) -> list[_Near]:
    """Compare the lists of the passages with the question."""
    blocks = [one for passage in passages for one in find_blocks(passage) if not is_table(one)]
    blocks = blocks[:_MOST]
    texts = [_say_announcement(one) for one in blocks]
    own, *vectors = await ctx.vectors([ctx.question, *texts])
    return [
        _Near(
            block,
            text,
            float(own @ vector),
            _find_nearest(cosines, block.passage, block.start, block.end),
        )
        for block, text, vector in zip(blocks, texts, vectors, strict=True)
    ]


def _say_announcement(block: Block) -> str:
    """Return the page's title, the nearest heading and the line that introduces a list."""
    lead = block.text.partition("\n")[0] if block.introduced else ""
    return ". ".join(filter(None, (_find_title(block.passage, block.start), lead)))


def _find_title(passage: Passage, at: int) -> str:
    """Return the page's title with the nearest heading above a place in a passage."""
    titles = [title for start, _, title in _list_sections(passage) if start <= at]
    return _name_section(passage, titles[-1])


def _name_section(passage: Passage, heading: str) -> str:
    return f"{passage.title}: {heading}".strip(": ")


async def _score_prose(
    ctx: Context,
    cosines: Mapping[str, Sequence[Valued]],
    lists: Sequence[_Near],
    passages: Sequence[Passage],
) -> float:
    """Return the best score of a section that has no list.

    "How do I skip a commit?" is told under "Bisect skip", in prose, not by a list of examples.
    """
    listed = {(one.block.passage.id, one.block.start) for one in lists}
    sections = list[tuple[str, float]]()
    for passage in passages:
        for start, end, title in _list_sections(passage):
            if not any(chunk == passage.id and start <= at < end for chunk, at in listed):
                item = _find_nearest(cosines, passage, start, end)
                sections.append((_name_section(passage, title), item))
    sections = sections[:_MOST]
    own, *vectors = await ctx.vectors([ctx.question, *(title for title, _ in sections)])
    return max(
        (float(own @ v) + _ITEMS * item for v, (_, item) in zip(vectors, sections, strict=True)),
        default=0.0,
    )


def _list_sections(passage: Passage) -> list[tuple[int, int, str]]:
    """Return where the sections of a passage begin and end, with the title of each."""
    starts = [(0, passage.heading.rpartition(CRUMB_SEPARATOR)[2])]
    starts += [(one.start, one.title) for one in find_headings(passage.text)]
    ends = [*(start for start, _ in starts[1:]), len(passage.text)]
    return [(start, end, title) for (start, title), end in zip(starts, ends, strict=True)]


def _find_nearest(
    cosines: Mapping[str, Sequence[Valued]], passage: Passage, start: int, end: int
) -> float:
    """Return the best cosine of a sentence that stands in a part of a passage."""
    inside = [
        cosine
        for first, last, cosine in cosines.get(passage.id, ())
        if start <= first and last <= end and cosine > -1
    ]
    return max(inside, default=0.0)


def _is_said_elsewhere(
    question: str, known: Mapping[str, float], best: _Near, passages: Sequence[Passage]
) -> bool:
    """Whether a row, an entry or a paragraph says more of a question than the steps do.

    "What should I do if E12 is shown?" is told by the row of E12. "How do I swap the oil?" wants
    steps in whatever words, but for its codes.
    """
    steps = f"{best.announced} {best.block.text}"
    lacking = [code for code in find_exact_terms(question) if not holds_term(code, steps)]
    if lacking and any(holds_term(lacking[0], one.text) for one in passages):
        return True
    if find_wanted_block(question) == MODEL or asks_passive(question):
        return False
    units = (
        " ".join((one.title, one.heading, *unit.section, unit.quote(one.text)))
        for one in passages
        for unit in find_units(one.text, doc=one.doc)
    )
    said = max((weigh_said(known, unit) for unit in units), default=0.0)
    return said >= _SAID and said - weigh_said(known, steps) > _MORE


def _says_all(ctx: Context, best: _Near) -> bool:
    """Whether every word of a question is said: vectors hardly tell "install" from "uninstall"."""
    said = stem_words(f"{best.announced} {best.block.text}")
    wanting = next(words for kind, words in table_for(ctx.question).blocks if kind == MODEL)
    matter = wanting.sub(" ", ctx.question)  # "What are the steps to" says nothing of it
    return all(word in said for word in weigh_words(ctx.view, matter))
