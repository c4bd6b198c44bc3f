"""Rules for comparison questions: what to ask of each of two things, and which value wins."""

import re
from collections.abc import Sequence
from dataclasses import replace

from clew.agents.planning.plan import Join, JoinKind, Plan, plan_for_each

# One name: each is masked by a character for private use.
NAME_MASK = "[\ue000-\ue0ff]"
PERSON_ROLES = (
    "director|composer|performer|author|writer|producer|founder|singer|creator|inventor|designer|"
    "architect|screenwriter|cinematographer|editor|publisher|painter|artist|owner|leader|president|"
    "king|queen|mayor|governor|coach|captain|father|mother|parent|husband|wife|spouse|son|daughter|"
    "child|brother|sister|sibling|uncle|aunt|cousin|nephew|niece|grandfather|grandmother|"
    "grandson|granddaughter|stepfather|stepmother|stepson|stepdaughter|"
    "(?:father|mother|brother|sister|son|daughter|sibling|child)-in-law|"
    "employer|doctoral advisor|predecessor|successor|star|actor|actress|commander|translator|"
    "engineer|builder|sculptor|photographer|illustrator|conductor|discoverer|developer|manager"
)

_OPTIONS = re.compile(rf"(?P<head>.+?)[,:]?\s*(?P<a>{NAME_MASK})\s*,?\s+or\s+(?P<b>{NAME_MASK})")
_IS_A_OR_B = re.compile(
    rf"(?:was|is|did|does)\s+(?P<a>{NAME_MASK})\s+or\s+(?P<b>{NAME_MASK})\s+(?P<head>.+)", re.I
)
_OUT_OF = re.compile(
    rf"(?P<head>.+?),?\s+(?:out of|between|of|among)\s+(?P<a>{NAME_MASK})\s+and\s+(?P<b>{NAME_MASK})",
    re.I,
)
# When a name was not recognised as one: what stands around the last comma and "or".
_RAW_OPTIONS = re.compile(r"(?P<head>[^,]+),\s+(?P<a>.+?)\s+or\s+(?P<b>.+)")
_SAME_AS = re.compile(
    rf"(?:is|was|does|did|has)\b(?P<before>.*?)(?P<a>{NAME_MASK})(?P<after>.*?)\bsame\s+(?P<what>[a-z]+)\s+as"
    rf"(?P<between>\s+(?:the\s+)?(?:[a-z]+\s+of\s+)?(?:[a-z]+\s+)?)(?P<b>{NAME_MASK})",
    re.I,
)
_SAME = re.compile(
    rf"(?:are|were|do|did|is|was|have|has|does)\b(?P<before>.*?)(?P<a>{NAME_MASK})\s*,?\s+and\s+"
    rf"(?P<between>(?:the\s+)?(?:[a-z]+\s+of\s+)?(?:[a-z]+\s+)?)(?P<b>{NAME_MASK})"
    rf"(?P<after>.*)\bsame\s+(?P<what>[a-z]+)",
    re.I,
)
_BOTH = re.compile(
    rf"(?P<be>are|were)\s+(?:both\s+)?(?:the\s+[a-z]+s\s+)?(?P<a>{NAME_MASK})\s*,?\s+and\s+(?:the\s+)?(?P<b>{NAME_MASK})\s+"
    rf"(?:both\s+)?(?P<what>[^\ue000-\ue0ff?]+)",
    re.I,
)
_ROLE = re.compile(rf"\b({PERSON_ROLES})s?\b", re.I)
_LATER = re.compile(
    r"\b(?:later|last|latest|more recent(?:ly)?|most recent(?:ly)?|newer|newest|younger|youngest|"
    r"after)\b",
    re.I,
)
_MADE = (
    "founded|established|started|formed|created|built|opened|launched|published|introduced|"
    "invented|constructed|completed|written|produced|made|recorded"
)
_SIZE_COMPARISONS: dict[str, tuple[JoinKind, str]] = {
    "larger": ("larger", "How large is {x}?"),
    "bigger": ("larger", "How big is {x}?"),
    "taller": ("larger", "How tall is {x}?"),
    "higher": ("larger", "How high is {x}?"),
    "longer": ("larger", "How long is {x}?"),
    "heavier": ("larger", "How heavy is {x}?"),
    "deeper": ("larger", "How deep is {x}?"),
    "smaller": ("smaller", "How large is {x}?"),
    "shorter": ("smaller", "How long is {x}?"),
    "lower": ("smaller", "How high is {x}?"),
}
_COUNT_COMPARISON = re.compile(r"\b(more|most|fewer|fewest|less)\s+([a-z]+)", re.I)


def plan_comparison(masked: str) -> Plan | None:
    """Plan a masked question that compares two names; None when it does not."""
    same = _SAME.match(masked) or _SAME_AS.match(masked)
    if same is not None:
        return _plan_same(same)
    if both := _BOTH.fullmatch(masked):
        return _plan_both(both)
    shapes = (_OPTIONS, _IS_A_OR_B, _OUT_OF, _RAW_OPTIONS)
    found = next((match for shape in shapes if (match := shape.fullmatch(masked))), None)
    if found is None:
        return None
    head = found["head"]
    asked = _parse_comparison(head)
    if asked is None:
        return None
    how, templates = asked
    kind = re.match(r"(?:which|what)\s+(film|movie|song|album|book|novel)\b", head, re.I)
    role = _ROLE.search(head)
    if role is not None and not re.search(r"\b(?:has|have|had|with|whose|of)\b", head, re.I):
        role = None
    return _plan_pairs(
        (found["a"], found["b"]),
        templates,
        how,
        (role[1].lower() if role else "", f"the {kind[1].lower()} " if kind else ""),
    )


def _parse_comparison(head: str) -> tuple[JoinKind, tuple[str, ...]] | None:
    """Return what to ask of each option, and which of the values wins."""
    how: JoinKind = "later" if _LATER.search(head) else "earlier"
    if found := re.search(r"\b(?:lived|life|lives)\s+(longer|shorter)|\b(longer)[- ]lived", head):
        life: JoinKind = "shorter life" if "shorter" in found[0] else "longer life"
        return life, ("When was {x} born?", "When did {x} die?")
    if re.search(r"\b(?:died?|dies|death|passed away)\b", head, re.I):
        return how, ("When did {x} die?",)
    if re.search(r"\b(?:born|birth|elder)\b", head, re.I):
        return how, ("When was {x} born?",)
    if re.search(r"\b(?:released?|came out|come out|premiered?|aired|debuted)\b", head, re.I):
        return how, ("When was {x} released?",)
    if made := re.search(rf"\b({_MADE})\b", head, re.I):
        return how, (f"When was {{x}} {made[1].lower()}?",)
    if re.search(r"\b(?:older|oldest|younger|youngest|newer|newest)\b", head, re.I):
        thing = re.match(r"(?:which|what)\s+(?!one|person|man|woman)", head, re.I)
        if thing and not _ROLE.search(head):
            return how, ("When was {x} made or founded?",)
        return how, ("When was {x} born?",)
    return _parse_amount_comparison(head)


def _parse_amount_comparison(head: str) -> tuple[JoinKind, tuple[str, ...]] | None:
    for word, asked in _SIZE_COMPARISONS.items():
        if re.search(rf"\b{word}\b", head, re.I):
            return asked[0], (asked[1],)
    if more := _COUNT_COMPARISON.search(head):
        less = more[1].lower() in ("fewer", "fewest", "less")
        return "smaller" if less else "larger", (f"How many {more[2].lower()} does {{x}} have?",)
    return None


def _plan_pairs(
    options: tuple[str, str], templates: Sequence[str], how: JoinKind, about: tuple[str, str]
) -> Plan:
    role, kind = about
    first = [f"Who is the {role} of {kind}{option}?" for option in options] if role else []
    return plan_for_each(how, options, first, templates)


def _plan_both(found: re.Match[str]) -> Plan:
    """Plan "Are A and B Xs?": each is asked separately."""
    *described, noun = found["what"].split()
    be = "Is" if found["be"].lower() == "are" else "Was"
    single = noun
    if noun.islower():  # "Texas" stays
        single = re.sub(r"(?:(?<=[a-z]{2})ies|(?<=[a-z]{2}[a-rt-z])s)$", _singular_ending, noun)
    article = ""
    if single != noun:
        article = "an " if re.match("[aeiou]", (described or [single])[0], re.I) else "a "
    template = f"{be} {{x}} {article}{' '.join([*described, single])}?"
    plan = _plan_pairs((found["a"], found["b"]), (template,), "both", ("", ""))
    return replace(plan, join=Join("both", ((1,), (2,)), (found["a"], found["b"]), single))


def _singular_ending(ending: re.Match[str]) -> str:
    return "y" if ending[0] == "ies" else ""


def _plan_same(found: re.Match[str]) -> Plan:
    said = f"{found['before']} {found['between']} {found['after']}"
    what = found["what"].lower()
    role = _ROLE.search(said)
    template = {
        "country": "Which country is {x} in or from?",
        "nationality": "What is the nationality of {x}?",
    }.get(what, f"What is the {what} of {{x}}?")
    if re.search(r"\bborn\b", said, re.I):
        asks = "When" if what in ("year", "day", "month", "date", "decade") else "Where"
        template = f"{asks} was {{x}} born?"
    kind = re.search(r"\b(film|movie|song|album|book|novel)s?\b", said, re.I)
    about = (role[1].lower() if role else "", f"the {kind[1].lower()} " if kind else "")
    if role and what == "country":
        template = "Which country is {x} from?"
    return _plan_pairs((found["a"], found["b"]), (template,), "same", about)
