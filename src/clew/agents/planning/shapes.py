"""Decompose English questions by rules: patterns of common multi-hop questions.

Names are masked first (the knowledge base knows where they begin and end), so that the patterns
see `Where was the director of film N born?` whatever the film is called.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from clew.agents.planning.chinese import is_chinese, plan_chinese
from clew.agents.planning.comparing import NAME_MASK, PERSON_ROLES, plan_comparison
from clew.agents.planning.plan import Plan

_FIRST_MASK = 0xE000  # private use area: the n-th name is masked by one such character
NAME_OR_PLACEHOLDER = f"(?:{NAME_MASK}|#\\d)"
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
    rf"\b(?:the\s+)?(?P<rel>{_REL})\s+of\s+(?:the\s+)?(?P<kind>{_KIND})(?P<name>{NAME_OR_PLACEHOLDER})"
)
_ITS = re.compile(rf"(?P<name>{NAME_OR_PLACEHOLDER})(?:['’]s|['’])\s+(?P<rel>{_REL})", re.I)
_WHERE = re.compile(
    rf"\b(?:the\s+)?(?P<noun>[a-z]+)\s+(?:where|in\s+which)\s+(?P<kind>(?:the\s+[a-z]+\s+(?:of\s+)?)?)"
    rf"(?P<name>{NAME_OR_PLACEHOLDER})\s+(?P<be>is|was|are|were)\s+(?P<verb>[a-z]+)",
)
_WHO = re.compile(
    rf"\b(?:the\s+)?(?P<noun>[a-z]+)\s+(?:who|that|which)\s+(?P<verb>(?:[a-z]+\s+){{1,4}})"
    rf"(?P<kind>{_KIND})(?P<name>{NAME_OR_PLACEHOLDER})"
)
_ASKS_REL = re.compile(
    rf"(?:who|what|which|where|when)\s+(?:is|was|are|were)\s+(?:the\s+)?"
    rf"(?:(?P<rel>[\w -]+?)\s+of\s+(?:the\s+)?(?P<kind>{_KIND})(?P<name>{NAME_OR_PLACEHOLDER})"
    rf"|(?P<name2>{NAME_OR_PLACEHOLDER})(?:['’]s|['’])\s+(?P<rel2>[\w -]+?))",
    re.I,
)
_ASKS = re.compile(
    r"(?:(?:in|on|at|of|from|to|for|by|with|during|under|what|which)\s+)?"
    r"(?:who|whom|whose|what|which|where|when|why|how)\b",
    re.I,
)
# What may follow a clause that ends with a name: "the man who founded N born".
_ENDS = re.compile(
    r"\s*(?:$|born|die|died|from|located|based|work|study|live|buried|educated|graduate|"
    r"nationality|'s|’s)"
)
_MAX_WORDS = 30  # words; the patterns do not cover longer questions
_TRIVIAL = re.compile(
    rf"(?:who|what|which|where)\s+(?:is|was|are|were)\s+{NAME_OR_PLACEHOLDER}", re.I
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
    plan = plan_comparison(masked) or _plan_chain(masked)
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
    while (found := re.search(rf"({NAME_MASK})(\s*\([^()]*\))", masked)) is not None:
        known[ord(found[1]) - _FIRST_MASK] += _unmask_names(found[2], known)
        masked = masked[: found.start(2)] + masked[found.end(2) :]
    return " ".join(masked.split()).rstrip("?？. "), known


def _unmask_names(text: str, known: Sequence[str]) -> str:
    return re.sub(NAME_MASK, lambda found: known[ord(found[0]) - _FIRST_MASK], text)


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
