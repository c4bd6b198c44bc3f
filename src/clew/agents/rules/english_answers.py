"""Answer patterns for English pages: dates of a life, places, nationality, relations, sizes."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clew.agents.citing.support import has_title, mentions_name
from clew.agents.rules.chinese import find_chinese_answer
from clew.agents.rules.sections_about import expand_surname, find_sections
from clew.text.dates import MONTH_PATTERN
from clew.text.language import is_chinese
from clew.text.name_spans import find_capitalised_runs
from clew.text.names import name_key, strip_disambiguation, tokenize
from clew.text.sentences import sentence_spans
from clew.types import Passage

_ROLE_STEMS = {
    "director": "direct",
    "composer": "compos|music|scor",
    "performer": "perform|record|sung|song|single|album|track",
    "singer": "perform|record|sung|song|single|album|track",
    "author": "writ|author|novel|book|poem|play",
    "writer": "writ|author",
    "producer": "produc",
    "founder": "found|establish",
    "designer": "design",
    "engineer": "engineer|design|buil",
    "builder": "buil|construct",
    "sculptor": "sculpt|carv|statue",
    "photographer": "photograph",
    "illustrator": "illustrat",
    "discoverer": "discover",
    "developer": "develop",
    "architect": "design|buil",
    "creator": "creat",
    "inventor": "invent",
    "publisher": "publish",
    "painter": "paint",
    "artist": "paint|record|perform",
    "editor": "edit",
    "owner": "own",
    "screenwriter": "writ|screenplay",
}
_KINSHIP_PATTERNS: dict[str, tuple[str, ...]] = {
    "father": (
        r"\b(?:son|daughter|child)\s+of\b",
        r"\bfather\b(?:\s+(?:was|is|of))?,?",
        r"\bborn\s+to\b",
    ),
    "mother": (
        r"\b(?:son|daughter|child)\s+of\b[^.;]*?\b(?:and|by)\b(?:\s+his\s+(?:first|second|third)?\s*wife,?)?",
        r"\bmother\b(?:\s+(?:was|is))?,?",
    ),
    "spouse": (
        r"\bmarried(?:\s+to)?\b",
        r"\b(?:wife|husband|consort|spouse|widow)\s+of\b",
        r"\b(?:wife|husband|consort|spouse)\b(?:\s+(?:was|is))?,?",
    ),
    "child": (
        r"\b(?:father|mother)\s+of\b",
        r"\b(?:son|daughter|child|children)\b(?:\s+(?:was|is|named|were))?,?",
    ),
}
_RELATION_SYNONYMS = {"husband": "spouse", "wife": "spouse", "son": "child", "daughter": "child"}
_ASKS_WHO = re.compile(r"\bwho\s+(?:is|was|are|were)\s+the\s+(?P<rel>[a-z]+)\s+of\b", re.I)
_ASKS_WHOSE = re.compile(r"\bwho\s+(?:is|was)\s.*['’]s?\s+(?P<rel>[a-z]+)\s*\?*$", re.I)
_ASKS_WHO_DID = re.compile(r"\s*who\s+(?P<verb>[a-z]+)\s+(?:the\s+)?(?:[a-z]+\s+)?\W*", re.I)
_VERB_ROLES = {
    "directed": "director",
    "composed": "composer",
    "performed": "performer",
    "sang": "performer",
    "wrote": "author",
    "produced": "producer",
    "founded": "founder",
    "established": "founder",
    "designed": "designer",
    "built": "architect",
    "created": "creator",
    "invented": "inventor",
    "published": "publisher",
    "painted": "painter",
    "edited": "editor",
    "owns": "owner",
    "married": "spouse",
}
# "was a singer from Leeds", but not "a line from Leeds to York".
_COMES_FROM = (
    r"\b(?:is|was|were|comes?|came|hails?|hailed)\s+(?:an?\s+(?:[\w-]+\s+){1,4})?"
    r"from\b(?![^.;]*\bto\b)"
)
# Words one of which a sentence needs to be relevant, where no answer pattern matched.
_LIFE_EVENT_PATTERNS = (
    (r"\bborn\b|\bbirth", rf"\bborn\b|\bbirth|\bb\.|\bnative of\b|{_COMES_FROM}|\d{{4}}\s*[–—-]"),
    (
        r"\bdied?\b|\bdeath\b",
        r"\bdied\b|\bdeath\b|\bkilled\b|\bexecuted\b|\bd\.|[–—-]\s*[\w ]*\d{4}",
    ),
)
_KIN_WORDS = {
    "father": r"father|son|daughter|child|born to",
    "mother": r"mother|(?:son|daughter|child|born)\b[^.;]*\b(?:and|by)\b",
    "spouse": r"spouse|husband|wife|married|marriage|consort|widow|wed",
    "child": r"child|son|daughter|father|mother",
    "sibling": r"sibling|brother|sister",
    "brother": r"brother|sister|sibling",
    "sister": r"brother|sister|sibling",
}


def find_asked_relation(question: str) -> str:
    """Return the relation asked for by "who is the R of" or "who R'd", in canonical form, or ""."""
    found = _ASKS_WHO.search(question)
    if found is not None:
        rel = found["rel"].lower()
        return _RELATION_SYNONYMS.get(rel, rel)
    if (its := _ASKS_WHOSE.search(question)) is not None:
        return _RELATION_SYNONYMS.get(its["rel"].lower(), its["rel"].lower())
    did = _ASKS_WHO_DID.match(question)
    return _VERB_ROLES.get(did["verb"].lower(), "") if did else ""


def asks_for_kin(question: str) -> bool:
    """Whether a question asks for a relative."""
    return find_asked_relation(question) in _KIN_WORDS


def mentions_relation(question: str, sentence: str) -> bool:
    """Whether a sentence mentions the asked relation; True where no known relation is asked."""
    rel = find_asked_relation(question)
    if rel in _KIN_WORDS:
        return re.search(rf"\b(?:{_KIN_WORDS[rel]})", sentence, re.I) is not None
    if rel in _ROLE_STEMS:
        return re.search(rf"\b(?:{_ROLE_STEMS[rel]}|{rel}|by\b)", sentence, re.I) is not None
    for asked, mentioned in _LIFE_EVENT_PATTERNS:
        if re.search(asked, question, re.I):
            return re.search(mentioned, sentence, re.I) is not None
    return True


_NUMBER = r"\d[\d,.]*(?<![,.])(?:\s*(?:thousand|million|billion))?"
_UNIT = r"[\s-]?(?:square\s+)?[a-zA-Z²]+"
_ASKS_SIZE = re.compile(r"\bhow\s+(?P<how>tall|high|long|large|big|heavy|deep|wide)\b", re.I)
_ASKS_COUNT = re.compile(r"\bhow\s+many\s+(?P<what>[a-z]+)", re.I)
# Words for the asked size: as an adjective after the number, and as a noun.
_SIZES = {
    "tall": ("tall|high", "height"),
    "high": ("high|tall", "height|elevation|altitude"),
    "long": ("long|in length", "length"),
    "large": ("large|in area|in size", "area|size|population"),
    "big": ("big|large|in area|in size", "area|size|population"),
    "heavy": ("heavy|in weight", "weight|mass"),
    "deep": ("deep|in depth", "depth"),
    "wide": ("wide|in width", "width"),
}
_PEOPLE_NOUNS = ("inhabitants", "people", "residents", "citizens")


def _find_amounts(asked: str, text: str) -> Iterator[tuple[int, int]]:
    if size := _ASKS_SIZE.search(asked):
        behind, noun = _SIZES[size["how"].lower()]
        shapes = [
            rf"(?P<amount>{_NUMBER}{_UNIT})[\s-]+(?:{behind})\b",
            rf"\b(?:{noun})\s+(?:of|is|was)\s+(?:about\s+|some\s+)?(?P<amount>{_NUMBER}{_UNIT})",
        ]
    elif count := _ASKS_COUNT.search(asked):
        what = count["what"].lower()
        shapes = [rf"(?P<amount>{_NUMBER})\s+(?:[a-z]+\s+)?{re.escape(what)}\b"]
        if what in _PEOPLE_NOUNS:
            shapes.append(
                rf"\bpopulation\s+(?:of|is|was)\s+(?:about\s+|some\s+)?(?P<amount>{_NUMBER})"
            )
    else:
        return
    for shape in shapes:
        yield from (found.span("amount") for found in re.finditer(shape, text, re.I))


_MONTH = rf"(?:{MONTH_PATTERN.title()})\.?"
DATE = (
    rf"(?:\d{{1,2}}(?:st|nd|rd|th)?\s+{_MONTH},?\s+\d{{3,4}}|{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+"
    rf"\d{{3,4}}|{_MONTH},?\s+\d{{4}}|\d{{3,4}}(?!\d))"
)
_BRACKET = re.compile(r"\((?:[^()]|\([^()]*\))*\)")
_DATE = re.compile(DATE)
_BORN = re.compile(rf"\bborn\b[^.;()]{{0,60}}?(?P<date>{DATE})")
_DIED = re.compile(rf"\b(?:died|death|killed|executed)\b[^.;()]{{0,60}}?(?P<date>{DATE})")
_BORN_IN = re.compile(rf"\bborn\b(?:[^.;]{{0,60}}?)\s(?:in|at|near)\s+(?!{DATE})(?=[A-Z])")
_DIED_IN = re.compile(
    rf"\b(?:died|killed|death)\b(?:[^.;]{{0,60}}?)\s(?:in|at|near)\s+(?!{DATE})(?=[A-Z])"
)
_BRACKET_BORN_IN = re.compile(rf"\([^()]*?{DATE},?\s+(?:in\s+)?(?=[A-Z][a-z]+)")
_DIED_BEFORE = re.compile(
    rf"{DATE}\s*[–—-]\s*(?P<place>[A-Z][\w'’.-]*(?:,?\s+(?:of\s+|the\s+)?[A-Z][\w'’.-]*){{0,4}}),?\s+{DATE}"
)
_RELEASED = re.compile(
    rf"\b(?:released?|premiered|published|founded|established|started|formed|created|built|opened|"
    rf"launched|introduced|completed|issued|first)\b[^.;]{{0,60}}?(?P<date>{DATE})"
)
_IS_A_YEAR = re.compile(r"\b(?:is|was)\s+an?\s+(?P<date>\d{4})\b")
# "a song written by X": X is not who performed it.
_PERFORMER_ROLES = ("performer", "singer", "artist")
_BY_OTHERS = r"(?:co-?)?(?:written|wrote|composed|lyrics|words|music|produced|penned|directed)\b"
_ASKS_KIN = re.compile(rf"\b(?:{'|'.join((*_KIN_WORDS, *_RELATION_SYNONYMS))})\b", re.I)
_WIDER_PLACE = re.compile(
    r"(?:,\s+[A-Z][\w'-]*(?:\.[A-Z][\w'-]*)*(?:\s+(?:of\s+|the\s+)?[A-Z][\w'-]*){0,3}){1,2}"
    r"(?=[\s,.;)])"
)
_NOBLE_TITLE = re.compile(
    r",\s+(?:\d+(?:st|nd|rd|th)\s+)?(?:Duke|Count|Earl|King|Queen|Prince|Princess|Baron|Baroness|"
    r"Marquess|Margrave|Landgrave|Elector|Emperor|Lord|Lady|Viscount|Duchess|Countess|Grand Duke)"
    r"(?:\s+of)?(?:\s+the)?(?:\s+[A-Z][\w'-]+(?:-[A-Z]\w+)?){1,2}"
)
_NATIONALITY_ADJECTIVE = re.compile(
    r"\b(?:is|was|were|are)\s+(?:an?|the|one of the)\s+(?:[a-z0-9-]+\s+){0,3}?"
    r"(?P<land>[A-Z][a-z]+(?:[- ][A-Z][a-z]+)?)\s+(?=[a-z(]|[A-Z]{2}[A-Z]*\b)"
)
_LIES_IN = re.compile(r"\b(?:in|of)\s[^.]*?(?P<land>[A-Z][\w-]+(?:\s+[A-Z][\w-]+)?)\W*$")
# "an island in St. Petersburg, Russia, bordered by": the last of the places in a row.
_LIES_WITHIN = re.compile(
    r"\b(?:in|at|on|near)\s+(?:[A-Z0-9][\w.'’ -]*,\s+){1,3}"
    r"(?P<land>[A-Z][\w-]+(?:\s+[A-Z][\w-]+)?)(?=[,.;]|\s+[a-z]|$)"
)
# Capitalised adjectives that are no nationality.
_NOT_NATIONALITIES = frozenset(
    "catholic roman protestant anglican lutheran methodist baptist christian orthodox jewish "
    "muslim islamic sunni shia buddhist hindu sikh navy army marine olympic paralympic academy "
    "grammy emmy tony pulitzer nobel hollywood broadway gothic baroque victorian edwardian "
    "renaissance medieval democratic republican conservative labour liberal".split()
)
# "a soldier who was killed in the Iraq War" is not located there.
_PERSON_CLAUSE = re.compile(r"\b(?:who|whom|whose)\b")
# After these a capitalised word is no adjective of what follows.
_NOT_DESCRIBED_BY_NAME = frozenset(
    "and or is was in on at for from with who which that by as to of the a an the his her after "
    "before when while where starring based about featuring written directed but".split()
)
_ASKS_KIND = re.compile(r"(?:is|was)\s+an?\s+(?P<what>[\w -]+?)\s*\??", re.I)
_LIFE_WORDS = {"born": r"\b(?:born|b\.)", "died": r"\b(?:died|d\.)|[–—-]\s*$"}
_VERB = re.compile(r"\b(?:is|was|were|are|had|has|married)\b")
_MAX_CUE_GAP = 45  # characters between a cue and the name it announces


@dataclass(frozen=True, slots=True)
class PatternMatch:
    """An answer and its position in a passage."""

    text: str
    passage: Passage
    start: int
    end: int
    certain: bool = False
    """The pattern is nearly unambiguous."""


def find_answer(question: str, name: str, passages: Sequence[Passage]) -> PatternMatch | None:
    """Find an answer in the sections about `name`; a Chinese question carries its own subject."""
    if is_chinese(question):
        place = find_chinese_answer(question, passages)
        return place and PatternMatch(place[0].text[slice(*place[1])], place[0], *place[1])
    asked = question.replace(name, " ")
    pages = sorted(
        (p for p in passages if mentions_name(name, f"{p.title} {p.text}")),
        key=lambda p: not has_title(p, name),
    )
    found = next(_find_matches(asked, name, pages), None)
    if found is None and (whole := expand_surname(name, pages)):
        found = next(_find_matches(asked, whole, pages), None)
    return found


def _find_matches(asked: str, name: str, pages: Sequence[Passage]) -> Iterator[PatternMatch]:
    for page in pages:
        sure = has_title(page, name) and not _ASKS_KIN.search(asked)
        for first, last in find_sections(name, page):
            for start, end in _find_answer_spans(asked, name, page.text[first:last]):
                text = page.text[first + start : first + end].strip(" ,")
                yield PatternMatch(text, page, first + start, first + end, sure)


def _find_answer_spans(asked: str, name: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield answer spans, likeliest first, in a text about `name`."""
    if re.search(r"\bwhen\b|\bdate of\b|\byear\b", asked, re.I):
        yield from _find_dates(asked, text)
    elif re.search(r"\bborn\b|place of birth|birthplace", asked, re.I):
        yield from _find_places(text, (_BORN_IN, _BRACKET_BORN_IN))
    elif re.search(r"\bdie\b|place of death", asked, re.I):
        yield from _find_places(text, (_DIED_IN,))
        yield from _find_death_place(text)
    elif re.search(r"\bnationality\b|\bcountry\b", asked, re.I):
        yield from _find_countries(text)
    elif (kind := _ASKS_KIND.fullmatch(asked.strip())) is not None:
        yield from _find_kind_noun(kind["what"], text)
    elif re.search(r"\bhow [a-z]+\b", asked, re.I):
        yield from _find_amounts(asked, text)
    elif rel := find_asked_relation(asked):
        yield from _find_people(rel, name, text)


def _find_dates(asked: str, text: str) -> Iterator[tuple[int, int]]:
    if re.search(r"\bborn\b|birth", asked, re.I):
        yield from _find_life_dates(text, "born")
        yield from (
            found.span("date") for found in _BORN.finditer(text) if _is_own_date(text, found)
        )
    elif re.search(r"\bdie\b|death", asked, re.I):
        yield from _find_life_dates(text, "died")
        yield from (
            found.span("date") for found in _DIED.finditer(text) if _is_own_date(text, found)
        )
    else:
        yield from (found.span("date") for found in _RELEASED.finditer(text))
        yield from (found.span("date") for found in _IS_A_YEAR.finditer(text))


def _find_life_dates(text: str, end: str) -> Iterator[tuple[int, int]]:
    """Yield the life date in the brackets after the page's own name."""
    bracket = _BRACKET.search(text, 0, 700)
    if bracket is None or _VERB.search(text, 0, bracket.start()):
        return  # the dates of somebody the page mentions
    dates = list(_DATE.finditer(text, bracket.start(), bracket.end()))
    if len(dates) > 1:
        yield (dates[0] if end == "born" else dates[-1]).span()
    elif dates and re.search(_LIFE_WORDS[end], text[bracket.start() : dates[0].start()]):
        yield dates[0].span()


def _find_death_place(text: str) -> Iterator[tuple[int, int]]:
    """Yield the place before the last date: "(Marn, 3 May 1888 – Vessen, 1 June 1921)"."""
    bracket = _BRACKET.search(text, 0, 700)
    if bracket is None or _VERB.search(text, 0, bracket.start()):
        return
    found = _DIED_BEFORE.search(text, bracket.start(), bracket.end())
    if found is not None:
        yield found.span("place")


def _is_own_date(text: str, found: re.Match[str]) -> bool:
    """Whether a date is the page subject's own, and not in brackets after a later name."""
    bracketed = text[: found.start()].rstrip().endswith("(")
    return not (bracketed and _VERB.search(text, 0, found.start()))


def _find_places(text: str, cues: Sequence[re.Pattern[str]]) -> Iterator[tuple[int, int]]:
    """Yield a place with the wider place around it: "Glen Cove, New York"."""
    for start, end in _find_names_after(text, cues):
        wider = _WIDER_PLACE.match(text, end)
        yield start, wider.end() if wider else end


def _find_countries(text: str) -> Iterator[tuple[int, int]]:
    """Yield "Danish" of "was a Danish director", or the last name of "a village in Fars, Iran"."""
    first = next(iter(sentence_spans(text)), (0, 0))
    opening = text[first[0] : first[1]]
    found = _NATIONALITY_ADJECTIVE.search(opening)
    if found is not None and found["land"].split()[0].casefold() not in _NOT_NATIONALITIES:
        yield first[0] + found.start("land"), first[0] + found.end("land")
    elif not _PERSON_CLAUSE.search(opening):
        place = _LIES_IN.search(opening) or _LIES_WITHIN.search(opening)
        if place is not None:
            yield first[0] + place.start("land"), first[0] + place.end("land")


def _find_kind_noun(what: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield the noun of "is an engineer", if the page's first sentence has all the words."""
    first = next(iter(sentence_spans(text)), (0, 0))
    found = [
        re.search(rf"\b{re.escape(word)}s?\b", text[first[0] : first[1]], re.I)
        for word in what.split()
    ]
    if found and all(found) and (noun := found[-1]):
        yield first[0] + noun.start(), first[0] + noun.end()


def _find_people(rel: str, name: str, text: str) -> Iterator[tuple[int, int]]:
    if rel in _KINSHIP_PATTERNS:
        yield from _find_other_names(
            text, [re.compile(cue) for cue in _KINSHIP_PATTERNS[rel]], name
        )
    elif rel in _ROLE_STEMS:
        stems = _ROLE_STEMS[rel]
        others = _BY_OTHERS if rel in _PERFORMER_ROLES else "(?!)"
        by = re.compile(rf"\b(?:{stems})\w*(?:\W+(?!{others})\w+){{0,6}}?\W+by\b", re.I)
        title = re.compile(rf"\b{rel}\b,?\s+(?=[A-Z])")
        yield from _find_other_names(text, (by, title), name)


def _find_other_names(
    text: str, cues: Sequence[re.Pattern[str]], name: str
) -> Iterator[tuple[int, int]]:
    own = name_key(strip_disambiguation(name))
    for start, end in _find_names_after(text, cues):
        if name_key(text[start:end]) != own:
            rank = _NOBLE_TITLE.match(text, end)
            yield start, rank.end() if rank else end


def _find_names_after(text: str, cues: Sequence[re.Pattern[str]]) -> Iterator[tuple[int, int]]:
    """Yield the name that follows a cue, in the same sentence."""
    t = tokenize(text)
    sentences = sentence_spans(text)
    firsts = {at for at, start in enumerate(t.starts) if any(start == s for s, _ in sentences)}
    names = [(t.starts[a], t.ends[b - 1]) for a, b in find_capitalised_runs(text, t, firsts)]
    for cue in cues:
        for found in cue.finditer(text):
            limit = next((e for s, e in sentences if s <= found.start() < e), len(text))
            for start, end in names:
                if start > min(limit, found.end() + _MAX_CUE_GAP):
                    break
                if start >= found.end() and not _is_descriptive(text, end):
                    yield start, end
                    break


def _is_descriptive(text: str, end: int) -> bool:
    """Whether the name only describes what follows: "by American singer Ronnie Lane"."""
    following = re.match(r"[ -]([a-z-]+)", text[end : end + 30])
    return following is not None and following[1] not in _NOT_DESCRIBED_BY_NAME
