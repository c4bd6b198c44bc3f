"""Decompose English questions by rules: comparisons of two things, and chains of relations."""

import re
from collections.abc import Sequence
from dataclasses import replace

from clew.agents.core.plan import Join, JoinKind, Plan, plan_for_each
from clew.agents.rules.chinese import plan_chinese
from clew.text.language import is_chinese

# One name: each is masked by a character for private use.
_NAME_MASK = "[\ue000-\ue0ff]"
ASKING_WORDS = "who|whom|whose|what|which|where|when|why|how"
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
_OPTIONS = re.compile(rf"(?P<head>.+?)[,:]?\s*(?P<a>{_NAME_MASK})\s*,?\s+or\s+(?P<b>{_NAME_MASK})")
_IS_A_OR_B = re.compile(
    rf"(?:was|is|did|does)\s+(?P<a>{_NAME_MASK})\s+or\s+(?P<b>{_NAME_MASK})\s+(?P<head>.+)", re.I
)
_OUT_OF = re.compile(
    rf"(?P<head>.+?),?\s+(?:out of|between|of|among)\s+(?P<a>{_NAME_MASK})\s+and\s+"
    rf"(?P<b>{_NAME_MASK})",
    re.I,
)
# When a name was not recognised as one: what stands around the last comma and "or".
_RAW_OPTIONS = re.compile(r"(?P<head>[^,]+),\s+(?P<a>.+?)\s+or\s+(?P<b>.+)")
_SAME_AS = re.compile(
    rf"(?:is|was|does|did|has)\b(?P<before>.*?)(?P<a>{_NAME_MASK})(?P<after>.*?)\bsame\s+(?P<what>[a-z]+)\s+as"
    rf"(?P<between>\s+(?:the\s+)?(?:[a-z]+\s+of\s+)?(?:[a-z]+\s+)?)(?P<b>{_NAME_MASK})",
    re.I,
)
_SAME = re.compile(
    rf"(?:are|were|do|did|is|was|have|has|does)\b(?P<before>.*?)(?P<a>{_NAME_MASK})\s*,?\s+and\s+"
    rf"(?P<between>(?:the\s+)?(?:[a-z]+\s+of\s+)?(?:[a-z]+\s+)?)(?P<b>{_NAME_MASK})"
    rf"(?P<after>.*)\bsame\s+(?P<what>[a-z]+)",
    re.I,
)
_BOTH = re.compile(
    rf"(?P<be>are|were)\s+(?:both\s+)?(?:the\s+[a-z]+s\s+)?(?P<a>{_NAME_MASK})\s*,?\s+and\s+(?:the\s+)?(?P<b>{_NAME_MASK})\s+"
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


def _plan_comparison(masked: str) -> Plan | None:
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
    around = f"{found['before']} {found['between']} {found['after']}"
    what = found["what"].lower()
    role = _ROLE.search(around)
    template = {
        "country": "Which country is {x} in or from?",
        "nationality": "What is the nationality of {x}?",
    }.get(what, f"What is the {what} of {{x}}?")
    if re.search(r"\bborn\b", around, re.I):
        asks = "When" if what in ("year", "day", "month", "date", "decade") else "Where"
        template = f"{asks} was {{x}} born?"
    kind = re.search(r"\b(film|movie|song|album|book|novel)s?\b", around, re.I)
    about = (role[1].lower() if role else "", f"the {kind[1].lower()} " if kind else "")
    if role and what == "country":
        template = "Which country is {x} from?"
    return _plan_pairs((found["a"], found["b"]), (template,), "same", about)


_FIRST_MASK = 0xE000  # private use area: the n-th name is masked by one such character
_NAME_OR_PLACEHOLDER = f"(?:{_NAME_MASK}|#\\d)"
_KIND = r"(?:(?:\d{4}\s+)?[a-z]+\s+)?"
_ADJECTIVE = (
    r"(?:(?:paternal|maternal|first|second|third|eldest|youngest|only|current|former|original|"
    r"main|lead|adoptive|biological)\s+)?"
)
_PERSON = re.compile(rf"(?:{_ADJECTIVE})(?:{PERSON_ROLES})s?", re.I)
# Nouns that stand for one thing of another, so that they can be looked up by themselves.
_THINGS = (
    "country|capital|city|town|village|state|province|county|region|district|continent|island|"
    "birthplace|hometown|nationality|language|currency|religion|employer|team|club|band|label|"
    "record label|company|parent company|publisher|university|college|school|headquarters|"
    "manufacturer|developer|distributor|network|owner|sport|league|party|dynasty|house|"
    "birth place|place of birth|place of death|date of birth|date of death|city of birth|"
    "country of origin|novel|film|album|song|book|debut album|debut novel|wife|husband"
)
_REL = rf"{_ADJECTIVE}(?:{PERSON_ROLES}|{_THINGS})s?"
_OF = re.compile(
    rf"\b(?:the\s+)?(?P<rel>{_REL})\s+of\s+(?:the\s+)?(?P<kind>{_KIND})(?P<name>{_NAME_OR_PLACEHOLDER})"
)
_ITS = re.compile(rf"(?P<name>{_NAME_OR_PLACEHOLDER})(?:['’]s|['’])\s+(?P<rel>{_REL})", re.I)
_WHERE = re.compile(
    rf"\b(?:the\s+)?(?P<noun>[a-z]+)\s+(?:where|in\s+which)\s+(?P<kind>(?:the\s+[a-z]+\s+(?:of\s+)?)?)"
    rf"(?P<name>{_NAME_OR_PLACEHOLDER})\s+(?P<be>is|was|are|were)\s+(?P<verb>[a-z]+)",
)
_WHO = re.compile(
    rf"\b(?:the\s+)?(?P<noun>[a-z]+)\s+(?:who|that|which)\s+(?P<verb>(?:[a-z]+\s+){{1,4}})"
    rf"(?P<kind>{_KIND})(?P<name>{_NAME_OR_PLACEHOLDER})"
)
_ASKS_REL = re.compile(
    rf"(?:who|what|which|where|when)\s+(?:is|was|are|were)\s+(?:the\s+)?"
    rf"(?:(?P<rel>[\w -]+?)\s+of\s+(?:the\s+)?(?P<kind>{_KIND})(?P<name>{_NAME_OR_PLACEHOLDER})"
    rf"|(?P<name2>{_NAME_OR_PLACEHOLDER})(?:['’]s|['’])\s+(?P<rel2>[\w -]+?))",
    re.I,
)
_ASKS = re.compile(
    r"(?:(?:in|on|at|of|from|to|for|by|with|during|under|what|which)\s+)?"
    rf"(?:{ASKING_WORDS})\b",
    re.I,
)
# What may follow a clause that ends with a name: "the man who founded N born".
_ENDS = re.compile(
    r"\s*(?:$|born|die|died|from|located|based|work|study|live|buried|educated|graduate|"
    r"nationality|'s|’s)"
)
_MAX_WORDS = 30  # words; the patterns do not cover longer questions
_TRIVIAL = re.compile(
    rf"(?:who|what|which|where)\s+(?:is|was|are|were)\s+{_NAME_OR_PLACEHOLDER}", re.I
)
# Kinship that stands for two steps.
_KINSHIP_STEPS = {
    "paternal grandfather": ("father", "father"),
    "paternal grandmother": ("father", "mother"),
    "maternal grandfather": ("mother", "father"),
    "maternal grandmother": ("mother", "mother"),
    "father-in-law": ("spouse", "father"),
    "mother-in-law": ("spouse", "mother"),
    "stepmother": ("father", "wife"),
    "stepfather": ("mother", "husband"),
    "child-in-law": ("child", "spouse"),
    "son-in-law": ("daughter", "husband"),
    "daughter-in-law": ("son", "wife"),
    "sibling-in-law": ("spouse", "sibling"),
}


def plan_by_rules(question: str, names: Sequence[tuple[int, int]]) -> Plan:
    """Plan a question whose names stand at these spans; keep it whole when no pattern matches."""
    if is_chinese(question):
        return plan_chinese(question)
    masked, known = _mask_names(question, names)
    plan = _plan_comparison(masked) or _plan_chain(masked)
    if plan is None:
        return Plan((question,))
    return Plan(
        tuple(_unmask_names(text, known) for text in plan.questions),
        plan.join
        and replace(
            plan.join, options=tuple(_unmask_names(option, known) for option in plan.join.options)
        ),
    )


def _mask_names(question: str, names: Sequence[tuple[int, int]]) -> tuple[str, list[str]]:
    known: list[str] = []
    masked, at = "", 0
    for start, end in sorted(names)[:200]:
        if start < at:
            continue
        # A capital article within the question is the name's, known with it or not.
        if at < start - 4 and question[start - 5 : start] == " The ":
            start -= 4
        masked += question[at:start] + chr(_FIRST_MASK + len(known))
        known.append(question[start:end])
        at = end
    masked += question[at:]
    # What stands in brackets after a name belongs to it: "Salt (2010 film)".
    while (found := re.search(rf"({_NAME_MASK})(\s*\([^()]*\))", masked)) is not None:
        known[ord(found[1]) - _FIRST_MASK] += _unmask_names(found[2], known)
        masked = masked[: found.start(2)] + masked[found.end(2) :]
    return " ".join(masked.split()).rstrip("?？. "), known


def _unmask_names(text: str, known: Sequence[str]) -> str:
    return re.sub(_NAME_MASK, lambda found: known[ord(found[0]) - _FIRST_MASK], text)


# -- chains


def _plan_chain(masked: str) -> Plan | None:
    questions: list[str] = []
    rest = masked
    if not _ASKS.match(masked) or len(masked.split()) > _MAX_WORDS:
        return None
    for _ in range(4):
        last = _ASKS_REL.fullmatch(rest)
        if last is not None:
            rel = (last["rel"] or last["rel2"] or "").lower()
            name = last["name"] or last["name2"]
            if rel not in _KINSHIP_STEPS and not _has_nested_phrase(rest, last):
                break
            if rel in _KINSHIP_STEPS:
                questions += _kinship_questions(rel, name, len(questions))
                rest = f"Who is #{len(questions)}"
                break
        step = _split_innermost(rest, len(questions))
        if step is None:
            break
        more, rest = step
        questions += more
    if not questions:
        return None
    if not _TRIVIAL.fullmatch(rest):
        questions.append(f"{rest}?")
    return Plan(tuple(questions)) if len(questions) > 1 else None


def _has_nested_phrase(rest: str, last: re.Match[str]) -> bool:
    """Whether the asked relation itself contains a phrase that must be looked up first."""
    return bool(re.search(r"\bof the\b|\bof\s+a\b", last["rel"] or ""))


def _split_innermost(rest: str, before: int) -> tuple[list[str], str] | None:
    """Split off the innermost phrase as questions, and put `#n` in its place."""
    found = _ITS.search(rest) or _OF.search(rest)
    if found is not None:
        rel, name = found["rel"].lower(), found["name"]
        kind = found.groupdict().get("kind") or ""
        if rel in _KINSHIP_STEPS:
            more = _kinship_questions(rel, name, before)
        else:
            asks = "Who" if _PERSON.fullmatch(rel) else "What"
            more = [f"{asks} is the {rel} of {kind}{name}?"]
    elif found := _WHERE.search(rest):
        kind = found["kind"] or ""
        more = [f"In which {found['noun']} {found['be']} {kind}{found['name']} {found['verb']}?"]
    elif (found := _WHO.search(rest)) and _ENDS.match(rest, found.end()):
        more = [f"Which {found['noun']} {found['verb']}{found['kind'] or ''}{found['name']}?"]
    else:
        return None
    number = before + len(more)
    return more, rest[: found.start()] + f"#{number}" + rest[found.end() :]


def _kinship_questions(rel: str, name: str, before: int) -> list[str]:
    first, second = _KINSHIP_STEPS[rel]
    return [f"Who is the {first} of {name}?", f"Who is the {second} of #{before + 1}?"]
