"""Decomposition without a model: the common shapes of questions that need several passages.

Names are masked first (the knowledge base knows where they begin and end), so that the patterns
see `Where was the director of film N born?` whatever the film is called.
"""

import re
from collections.abc import Sequence

from clew.agents.plan import How, Join, Plan

_FIRST = 0xE000  # private use: the n-th name stands as one such character
N = "[\ue000-\ue0ff]"
X = f"(?:{N}|#\\d)"
_KIND = r"(?:(?:\d{4}\s+)?[a-z]+\s+)?"
_ADJECTIVE = (
    r"(?:(?:paternal|maternal|first|second|third|eldest|youngest|only|current|former|original|"
    r"main|lead|adoptive|biological)\s+)?"
)
_PEOPLE = (
    "director|composer|performer|author|writer|producer|founder|singer|creator|inventor|designer|"
    "architect|screenwriter|cinematographer|editor|publisher|painter|artist|owner|leader|president|"
    "king|queen|mayor|governor|coach|captain|father|mother|parent|husband|wife|spouse|son|daughter|"
    "child|brother|sister|sibling|uncle|aunt|cousin|nephew|niece|grandfather|grandmother|"
    "grandson|granddaughter|stepfather|stepmother|stepson|stepdaughter|"
    "(?:father|mother|brother|sister|son|daughter|sibling|child)-in-law|"
    "employer|doctoral advisor|predecessor|successor|star|actor|actress|commander|translator"
)
_PERSON = re.compile(rf"(?:{_ADJECTIVE})(?:{_PEOPLE})s?", re.I)
_REL = rf"{_ADJECTIVE}(?:{_PEOPLE}|[a-z]+)"
_OF = re.compile(rf"\b(?:the\s+)?(?P<rel>{_REL})\s+of\s+(?:the\s+)?(?P<kind>{_KIND})(?P<name>{X})")
_ITS = re.compile(rf"(?P<name>{X})(?:['’]s|['’])\s+(?P<rel>{_REL})", re.I)
_WHERE = re.compile(
    rf"\b(?:the\s+)?(?P<noun>[a-z]+)\s+(?:where|in\s+which)\s+(?P<kind>(?:the\s+[a-z]+\s+(?:of\s+)?)?)"
    rf"(?P<name>{X})\s+(?P<be>is|was|are|were)\s+(?P<verb>[a-z]+)",
)
_WHO = re.compile(
    rf"\b(?:the\s+)?(?P<noun>[a-z]+)\s+(?:who|that|which)\s+(?P<verb>(?:[a-z]+\s+){{1,4}})"
    rf"(?P<kind>{_KIND})(?P<name>{X})"
)
_ASKS_REL = re.compile(
    rf"(?:who|what|which|where|when)\s+(?:is|was|are|were)\s+(?:the\s+)?"
    rf"(?:(?P<rel>[\w -]+?)\s+of\s+(?:the\s+)?(?P<kind>{_KIND})(?P<name>{X})"
    rf"|(?P<name2>{X})(?:['’]s|['’])\s+(?P<rel2>[\w -]+?))",
    re.I,
)
_TRIVIAL = re.compile(rf"(?:who|what|which|where)\s+(?:is|was|are|were)\s+{X}", re.I)

# Kinship that stands for two steps.
_KIN = {
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
    """The plan of a question whose names stand at these spans; whole when no shape fits."""
    if re.search("[\u4e00-\u9fff]", question):
        return _chinese(question)
    masked, known = _mask(question, names)
    plan = _comparison(masked) or _chain(masked)
    if plan is None:
        return Plan((question,))
    return Plan(
        tuple(_unmask(text, known) for text in plan.questions),
        plan.join
        and Join(
            plan.join.how,
            plan.join.places,
            tuple(_unmask(option, known) for option in plan.join.options),
        ),
    )


def _mask(question: str, names: Sequence[tuple[int, int]]) -> tuple[str, list[str]]:
    known: list[str] = []
    masked, at = "", 0
    for start, end in sorted(names)[:200]:
        if start < at:
            continue
        masked += question[at:start] + chr(_FIRST + len(known))
        known.append(question[start:end])
        at = end
    masked += question[at:]
    # What stands in brackets after a name belongs to it: "Salt (2010 film)".
    while (found := re.search(rf"({N})(\s*\([^()]*\))", masked)) is not None:
        known[ord(found[1]) - _FIRST] += _unmask(found[2], known)
        masked = masked[: found.start(2)] + masked[found.end(2) :]
    return " ".join(masked.split()).rstrip("?？. "), known


def _unmask(text: str, known: Sequence[str]) -> str:
    return re.sub(N, lambda found: known[ord(found[0]) - _FIRST], text)


# -- comparison

_OPTIONS = re.compile(rf"(?P<head>.+?)[,:]?\s*(?P<a>{N})\s*,?\s+or\s+(?P<b>{N})")
_IS_A_OR_B = re.compile(rf"(?:was|is|did|does)\s+(?P<a>{N})\s+or\s+(?P<b>{N})\s+(?P<head>.+)", re.I)
_OUT_OF = re.compile(
    rf"(?P<head>.+?),?\s+(?:out of|between|of|among)\s+(?P<a>{N})\s+and\s+(?P<b>{N})", re.I
)
# When a name was not recognised as one: what stands around the last comma and "or".
_RAW_OPTIONS = re.compile(r"(?P<head>[^,]+),\s+(?P<a>.+?)\s+or\s+(?P<b>.+)")
_SAME_AS = re.compile(
    rf"(?:is|was|does|did|has)\b(?P<before>.*?)(?P<a>{N})(?P<after>.*?)\bsame\s+(?P<what>[a-z]+)\s+as"
    rf"(?P<between>\s+(?:the\s+)?(?:[a-z]+\s+of\s+)?(?:[a-z]+\s+)?)(?P<b>{N})",
    re.I,
)
_SAME = re.compile(
    rf"(?:are|were|do|did|is|was|have|has|does)\b(?P<before>.*?)(?P<a>{N})\s*,?\s+and\s+"
    rf"(?P<between>(?:the\s+)?(?:[a-z]+\s+of\s+)?(?:[a-z]+\s+)?)(?P<b>{N})"
    rf"(?P<after>.*)\bsame\s+(?P<what>[a-z]+)",
    re.I,
)
_ROLE = re.compile(rf"\b({_PEOPLE})s?\b", re.I)
_LATER = re.compile(
    r"\b(?:later|last|latest|more recent(?:ly)?|most recent(?:ly)?|newer|newest|younger|youngest|"
    r"after)\b",
    re.I,
)
_MADE = (
    "founded|established|started|formed|created|built|opened|launched|published|introduced|"
    "invented|constructed|completed|written|produced|made|recorded"
)
_NUMBERS: dict[str, tuple[How, str]] = {
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
_MORE = re.compile(r"\b(more|most|fewer|fewest|less)\s+([a-z]+)", re.I)


def _comparison(masked: str) -> Plan | None:
    same = _SAME.match(masked) or _SAME_AS.match(masked)
    if same is not None:
        return _same(same)
    shapes = (_OPTIONS, _IS_A_OR_B, _OUT_OF, _RAW_OPTIONS)
    found = next((match for shape in shapes if (match := shape.fullmatch(masked))), None)
    if found is None:
        return None
    head = found["head"]
    asked = _asked(head)
    if asked is None:
        return None
    how, templates = asked
    kind = re.match(r"(?:which|what)\s+(film|movie|song|album|book|novel)\b", head, re.I)
    role = _ROLE.search(head)
    if role is not None and not re.search(r"\b(?:has|have|had|with|whose|of)\b", head, re.I):
        role = None
    return _pairs(
        (found["a"], found["b"]),
        templates,
        how,
        (role[1].lower() if role else "", f"the {kind[1].lower()} " if kind else ""),
    )


def _asked(head: str) -> tuple[How, tuple[str, ...]] | None:
    """What must be known of each option, and which of the values wins."""
    how: How = "later" if _LATER.search(head) else "earlier"
    if found := re.search(r"\b(?:lived|life|lives)\s+(longer|shorter)|\b(longer)[- ]lived", head):
        life: How = "shorter life" if "shorter" in found[0] else "longer life"
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
    return _asked_amount(head)


def _asked_amount(head: str) -> tuple[How, tuple[str, ...]] | None:
    for word, asked in _NUMBERS.items():
        if re.search(rf"\b{word}\b", head, re.I):
            return asked[0], (asked[1],)
    if more := _MORE.search(head):
        less = more[1].lower() in ("fewer", "fewest", "less")
        return "smaller" if less else "larger", (f"How many {more[2].lower()} does {{x}} have?",)
    return None


def _pairs(
    options: tuple[str, str], templates: Sequence[str], how: How, about: tuple[str, str]
) -> Plan:
    role, kind = about
    questions: list[str] = []
    subjects: list[str] = list(options)
    if role:
        questions = [f"Who is the {role} of {kind}{option}?" for option in options]
        subjects = ["#1", "#2"]
    places: list[tuple[int, ...]] = []
    for subject in subjects:
        mine = []
        for template in templates:
            questions.append(template.replace("{x}", subject))
            mine.append(len(questions))
        places.append(tuple(mine))
    return Plan(tuple(questions), Join(how, tuple(places), options))


def _same(found: re.Match[str]) -> Plan:
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
    return _pairs((found["a"], found["b"]), (template,), "same", about)


# -- chains


def _chain(masked: str) -> Plan | None:
    questions: list[str] = []
    rest = masked
    for _ in range(4):
        last = _ASKS_REL.fullmatch(rest)
        if last is not None:
            rel = (last["rel"] or last["rel2"] or "").lower()
            name = last["name"] or last["name2"]
            if rel not in _KIN and not _nested(rest, last):
                break
            if rel in _KIN:
                questions += _kin(rel, name, len(questions))
                rest = f"Who is #{len(questions)}"
                break
        step = _step(rest, len(questions))
        if step is None:
            break
        more, rest = step
        questions += more
    if not questions:
        return None
    if not _TRIVIAL.fullmatch(rest):
        questions.append(f"{rest}?")
    return Plan(tuple(questions)) if len(questions) > 1 else None


def _nested(rest: str, last: re.Match[str]) -> bool:
    """Whether the asked relation itself holds a phrase that must be looked up first."""
    return bool(re.search(r"\bof the\b|\bof\s+a\b", last["rel"] or ""))


def _step(rest: str, before: int) -> tuple[list[str], str] | None:
    """The innermost phrase as questions of its own, and the question with `#n` in its place."""
    found = _ITS.search(rest) or _OF.search(rest)
    if found is not None:
        rel, name = found["rel"].lower(), found["name"]
        kind = found.groupdict().get("kind") or ""
        if rel in _KIN:
            more = _kin(rel, name, before)
        else:
            asks = "Who" if _PERSON.fullmatch(rel) else "What"
            more = [f"{asks} is the {rel} of {kind}{name}?"]
    elif found := _WHERE.search(rest):
        kind = found["kind"] or ""
        more = [f"In which {found['noun']} {found['be']} {kind}{found['name']} {found['verb']}?"]
    elif found := _WHO.search(rest):
        more = [f"Which {found['noun']} {found['verb']}{found['kind'] or ''}{found['name']}?"]
    else:
        return None
    number = before + len(more)
    return more, rest[: found.start()] + f"#{number}" + rest[found.end() :]


def _kin(rel: str, name: str, before: int) -> list[str]:
    first, second = _KIN[rel]
    return [f"Who is the {first} of {name}?", f"Who is the {second} of #{before + 1}?"]


# -- Chinese

_ZH_CHAIN = re.compile(
    r"(?P<parts>[^，。？?]+的[^，。？?]+?)(?P<asks>是谁|是什么|是哪.*|在哪.*|有多.*|何时.*|什么时候.*)"
)
_ZH_COMPARE = re.compile(
    r"(?P<a>.+?)(?:和|与|还是)(?P<b>.+?)[，,]?(?:哪一?[个部位家座本]|谁)(?:的导演)?"
    r"(?P<how>更早|先|最早|更晚|后|较早|较晚)(?P<verb>出生|上映|去世|成立|发行|出版|建成)"
)


def _chinese(question: str) -> Plan:
    text = question.strip().rstrip("？?。 ")
    compared = _ZH_COMPARE.fullmatch(text)
    if compared is not None:
        how: How = "later" if compared["how"] in ("更晚", "后", "较晚") else "earlier"
        options = (compared["a"], compared["b"])
        asked = tuple(f"{option}何时{compared['verb']}？" for option in options)
        return Plan(asked, Join(how, ((1,), (2,)), options))
    found = _ZH_CHAIN.fullmatch(text)
    parts = found["parts"].split("的") if found else []
    if found is None or len(parts) < 3:
        return Plan((question,))
    questions, subject = [], parts[0]
    for number, rel in enumerate(parts[1:-1], start=1):
        questions.append(f"{subject}的{rel}是谁或什么？")
        subject = f"#{number}"
    questions.append(f"{subject}的{parts[-1]}{found['asks']}？")
    return Plan(tuple(questions))
