"""Choose among the answers that were read: alone, together and along chains."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from clew.agents.citing.support import mentions_name
from clew.agents.reading.follow import Chain
from clew.agents.reading.spans import Reading, answer_key, asked_words, same_answer
from clew.agents.reading.values import COUNTED, is_astray
from clew.agents.rules.asked_noun import find_asked_phrase
from clew.agents.rules.table import cut_asking_words, table_for
from clew.text.dates import MONTH_PATTERN, is_date
from clew.text.quantities import parse_quantity
from clew.text.unicode import split_words
from clew.text.word_forms import asked_terms, is_read_language, measure_terms, mentions_form
from clew.types import Citation, Passage

_MAX_SCORE = 12.0  # logits beyond this say nothing more
_STEM = 5  # letters that forms of a word share
_ASKED_NOUN = re.compile(
    r"\b(?:[Ww]hat|[Ww]hich)\s+(?:is\s+the\s+(?:name|kind|type|title)\s+of\s+(?:the|an?)\s+|"
    r"(?:kind|type|sort)\s+of\s+)?(?:[A-Z]\w+\s+)?(?P<noun>[a-z]\w+)"
)
_LONG_WORDS = 10  # words of an answer that is as long as they get
_PAGE_CHARS = 300  # characters of a page that say what it is about
# A word for a time of the year and what may stand before it, and nothing else.
_TIMES = re.compile(
    r"(?:(?:every|each|in|on|late|early|mid|the|next|last|of)[\s-]+)*"
    rf"(?:{MONTH_PATTERN}|spring|summer|autumn|winter|year|month|week|day|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day)s?(?:\s+(?:morning|afternoon|evening|night))?",
    re.IGNORECASE,
)
_ACTED_ON = re.compile(
    r"^\W*who\s+(?!(?:is|was|are|were|became)\b)[a-z]+\s+(?:the|this|that|an?)\s+(?P<noun>[a-z]+)",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[a-z]+\s+(?:which|whom|whose)\b")  # "in which the entries are kept"
_PERSON = re.compile(r"\b(?:born|he|she|his|her)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One answer with the best reading of each way that led to it."""

    text: str
    direct: Reading | None = None
    together: Reading | None = None
    chain: Chain | None = None
    last: Reading | None = None
    """The reading at the chain's end."""
    passages: frozenset[str] = field(default=frozenset())
    """Passages in which it was read."""

    @property
    def readings(self) -> tuple[Reading, ...]:
        """What the answer rests on, in order: the best chain, or the best single reading."""
        single = max(
            (r for r in (self.direct, self.together) if r is not None),
            key=lambda r: r.score,
            default=None,
        )
        if self.chain is not None and self.last is not None:
            whole = (*self.chain.steps, self.last)
            if single is None or self.chain_score >= single.score:
                return whole
        return (single,) if single is not None else ()

    @property
    def chain_score(self) -> float:
        """The weakest score of the chain."""
        if self.chain is None or self.last is None:
            return -_MAX_SCORE
        return min(step.score for step in (*self.chain.steps, self.last))

    def citations(self) -> tuple[Citation, ...]:
        """Cite the sentence of each reading."""
        return tuple(dict.fromkeys(reading.cite() for reading in self.readings))


def gather_candidates(
    direct: Sequence[Reading],
    together: Sequence[Reading],
    chains: Sequence[tuple[Chain, list[Reading]]],
) -> list[Candidate]:
    """Merge the readings by their answer; forms of one answer count as one."""
    found: list[Candidate] = []
    for one in direct:
        found = _add(found, Candidate(one.text, one, passages=_home(one)))
    for one in together:
        found = _add(found, Candidate(one.text, None, one, passages=_home(one)))
    for chain, readings in chains:
        for one in readings:
            found = _add(found, Candidate(one.text, None, None, chain, one, _home(one)))
    return found


def _home(reading: Reading) -> frozenset[str]:
    """Return the passage that says an answer; none where "no answer" is likelier."""
    return frozenset((reading.passage.id,) if reading.score > 0 else ())


def _add(found: list[Candidate], new: Candidate) -> list[Candidate]:
    """Add a candidate, or merge it with the one of the same answer."""
    for at, known in enumerate(found):
        if answer_key(known.text) == answer_key(new.text):
            return [*found[:at], _merge(known, new), *found[at + 1 :]]
    return [*found, new]


def _merge(one: Candidate, other: Candidate) -> Candidate:
    """Keep the better reading of each way."""
    better = other.chain_score > one.chain_score
    return replace(
        one,
        direct=_best(one.direct, other.direct),
        together=_best(one.together, other.together),
        chain=other.chain if better else one.chain,
        last=other.last if better else one.last,
        passages=one.passages | other.passages,
    )


def _best(one: Reading | None, other: Reading | None) -> Reading | None:
    known = [reading for reading in (one, other) if reading is not None]
    return max(known, key=lambda reading: reading.score, default=None)


def squash(score: float) -> float:
    """Scale a score to -1 … 1."""
    return max(-_MAX_SCORE, min(_MAX_SCORE, score)) / _MAX_SCORE


def describe_candidate(
    candidate: Candidate,
    others: Sequence[Candidate],
    question: str,
    names: Sequence[str],
    pages: Mapping[str, Passage],
    best: Mapping[str, float],
) -> dict[str, float]:
    """Return what speaks for a candidate, as numbers between -1 and 1.

    `pages` are those that were retrieved, by their titles' keys; `best` has the highest score that
    a candidate has in each way of reading.
    """
    readings = candidate.readings
    passages = [reading.passage for reading in readings]
    quotes = " ".join(citation.quote for citation in candidate.citations())
    titles = " ".join(passage.title for passage in passages)
    alike = [o for o in others if o is not candidate and same_answer(o.text, candidate.text)]
    support = candidate.passages.union(*(o.passages for o in alike))
    scores = squash_scores(candidate)
    ends = f"{readings[-1].cite().quote} {readings[-1].passage.title}"
    return {
        **scores,
        **{f"{name} behind": scores[name] - best[name] for name in scores},
        "hops": len(candidate.chain.steps) / 2 if candidate.chain else 0.0,
        "steps": candidate.chain.probability if candidate.chain else 0.0,
        "ways": sum(score > 0 for score in scores.values()) / len(scores),
        "length": min(1.0, len(candidate.text.split()) / _LONG_WORDS),
        "covered": measure_coverage(question, f"{quotes} {titles}"),
        "covered last": measure_coverage(question, ends),
        "named": measure_names(names, passages),
        "support": min(1.0, max(0, len(support) - 1) / 3),
        "fits": fits_kind(question, candidate.text),
        "said": match_page(question, pages.get(answer_key(candidate.text))),
        "bridge": _measure_bridge(candidate, others),
        "noun": _match_noun(question, candidate.text, quotes),
        "astray": float(
            len(readings) == 1 and is_astray(question, names, candidate.text, readings[0])
        ),
        "repeats": float(answer_key(candidate.text) in answer_key(question)),
    }


def squash_scores(candidate: Candidate) -> dict[str, float]:
    """Return the scores of a candidate's readings by their way, -1 where there is none."""
    return {
        "direct": squash(candidate.direct.score) if candidate.direct else -1.0,
        "together": squash(candidate.together.score) if candidate.together else -1.0,
        "chain": squash(candidate.chain_score),
    }


def _measure_bridge(candidate: Candidate, others: Sequence[Candidate]) -> float:
    """Return how likely an answer is only a step on the way to another one."""
    chains = [other.chain for other in others if other.chain is not None and other.chain_score > 0]
    return max(
        (
            step.probability
            for chain in chains
            for step in chain.steps
            if same_answer(step.text, candidate.text)
        ),
        default=0.0,
    )


def _match_noun(question: str, text: str, quotes: str) -> float:
    """Return 1 if an answer has the noun asked for ("which county"), 0.5 if its quote has."""
    stem = find_asked_stem(question)
    if not stem:
        return 0.0
    if any(word.startswith(stem) for word in asked_words(text)):
        return 1.0
    return 0.5 if any(word.startswith(stem) for word in asked_words(quotes)) else 0.0


def find_asked_stem(question: str) -> str:
    """Return the stem of the noun asked for: "which county", "what is the name of the airport"."""
    return find_asked_noun(question)[:_STEM]


def find_asked_noun(question: str) -> str:
    """Return the noun asked for, "" if a question names none."""
    found = _ASKED_NOUN.search(question)
    noun = asked_words(found["noun"]) if found else []
    return noun[0] if noun else ""


def match_page(question: str, page: Passage | None) -> float:
    """Return whether an answer's own page says it is what is asked for: 1, -1 if not, 0 unknown.

    A page about a person says "born", "he" or "she"; a page about a county says "county" at once.
    """
    if page is None:
        return 0.0
    begin = page.text[:_PAGE_CHARS].removeprefix(page.title)
    kind, stem = table_for(question).find_answer_kind(question), find_asked_stem(question)
    if kind in ("date", "number"):
        return -1.0
    person = _PERSON.search(begin) is not None
    if kind == "person" or (kind == "place" and not stem):
        return 1.0 if person == (kind == "person") else -1.0
    if not stem:
        return 0.0
    return 1.0 if any(word.startswith(stem) for word in asked_words(begin)) else -1.0


def measure_coverage(question: str, text: str) -> float:
    """Return the share of a question's content words of which a text has a form."""
    if not is_read_language(question):
        values = measure_terms(asked_terms(question), text)
        return sum(values) / max(1, len(values))
    asked = {word[:_STEM] for word in asked_words(cut_asking_words(question))}
    said = {word[:_STEM] for word in asked_words(text)}
    return len(asked & said) / max(1, len(asked))


def measure_names(names: Sequence[str], passages: Iterable[Passage]) -> float:
    """Return the share of the names that some passage mentions; 1 where none is named."""
    texts = [f"{passage.title} {passage.text}" for passage in passages]
    known = sum(any(mentions_name(name, text) for text in texts) for name in names)
    return known / len(names) if names else 1.0


def fits_kind(question: str, text: str) -> float:
    """Return 1 if an answer is of the kind asked for, -1 if it is not, 0 if nothing tells."""
    kind = table_for(question).find_answer_kind(question)
    digits = any(char.isdigit() for char in text)
    times = _TIMES.fullmatch(text) is not None
    if kind == "date":
        return 1.0 if digits or times else -1.0
    if kind == "number":
        return _fits_measure(question, text)
    if kind in ("person", "place"):
        return 1.0 if text[:1].isupper() and not digits and not times else -1.0
    return 0.0


def contradicts_kind(question: str, text: str) -> bool:
    """Whether an answer is plainly of another kind than asked for.

    Scripts without capitals, names behind a small word, and words like "several" tell nothing.
    """
    kind = table_for(question).find_answer_kind(question)
    capitals = any(char.isupper() for char in text)
    digits = any(char.isdigit() for char in text)
    done_to = _ACTED_ON.match(question)  # "Who founded the university?" asks for no university
    if done_to is not None and done_to["noun"].lower() in asked_words(text):
        return True
    if kind in ("person", "place"):
        return _TIMES.fullmatch(text) is not None or (digits and not capitals)
    if kind == "date":
        return not digits and text.istitle() and _TIMES.fullmatch(text) is None
    phrase = find_asked_phrase(question)
    said = asked_words(text)
    if said and {*said} <= {*phrase.words} and not digits:
        return True  # "Which log levels …?" is not answered by "log levels"
    if _CLAUSE.match(text):
        return True
    if not kind and text.lower() in COUNTED:  # "Which languages …?" is not answered by "four"
        return (phrase.head or find_asked_noun(question)).endswith("s")
    return kind == "number" and _fits_measure(question, text) <= -1


def _fits_measure(question: str, text: str) -> float:
    """Return whether a number measures what is asked: money has no litres, a count no unit."""
    found, asked = parse_quantity(text), table_for(question).find_asked_measure(question)
    if found is None:
        return -1.0 if asked == "time" and not COUNTED & set(split_words(text)) else -0.5
    if asked == "time" and not found.dimension and is_date(text):
        return -1.0  # the year of a death is no age
    if not asked or not (found.dimension or found.noun):
        return 1.0
    unit = asked_words(text.lower())[-1:]
    if any(word.startswith(one[:_STEM]) for one in unit for word in asked_words(question)):
        return 1.0
    if asked == "count":
        return -1.0 if found.dimension not in ("", "share") else 1.0
    measured = found.dimension.partition(" ")[0]
    pounds = found.unit.startswith("pound") and asked == "money"
    return 1.0 if measured == asked or pounds else -1.0


def measure_forms(names: Sequence[str], passages: Iterable[Passage]) -> float:
    """Return the share of the names that some passage mentions in some form; 1 of none."""
    texts = [f"{passage.title} {passage.text}" for passage in passages]
    known = sum(any(mentions_form(name, text) for text in texts) for name in names)
    return known / len(names) if names else 1.0
