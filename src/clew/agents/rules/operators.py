"""Find what a question computes from several things: earlier, larger, the same, both, one of two.

The words stand in the language's table; the things are the names that the question links. Each
becomes a question of its own for a value, which is read like any other, and code compares.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from clew.agents.citing.entailment import is_negated
from clew.agents.core.plan import JoinKind
from clew.agents.rules.table import OperatorRule, RuleTable, table_for
from clew.retrieve.question import QUESTION_WORDS
from clew.text.unicode import split_words

Spans = Sequence[tuple[int, int]]
_MAX_WORDS_BETWEEN = 5  # words between the two things, connector included
_MAX_WORDS_TO_OTHER = 9  # "Was the founder of A born earlier than the founder of B?"
_MAX_OPERATOR_CHARS = 600  # characters; a longer question is no comparison of two things
_YEAR = re.compile(r"\b\d{3,4}\b")
_COMPARED = re.compile(
    r"\s+(?P<noun>(?!than\b)[a-z-]+(?:\s+(?!than\b|or\b)[a-z-]+)*)", re.IGNORECASE
)
_QUANTIFIERS = frozenset("more most fewer fewest less least".split())
_ARTICLES = frozenset("the a an".split())
_BEING = frozenset("is was are were".split())
_PLURALS = frozenset("people children men women".split())
_HAVING = frozenset("has have had with".split())
_CUT_E = re.compile(r"(?<![aeiou])[aeiou][bcdfgkmnpstvz]$|rg$")  # "wid" of "wider", not "deep"
_LIFE = re.compile(r"\([^()]*\d{3,4}\s*[–-][^()]*\d{3,4}[^()]*\)")  # "(1849 – 1921)"
_VERB_ENDS = ("ed", "built", "written", "begun")
_RAW_PAIR = re.compile(r"[,:]\s*(?P<a>[^,:?]+?)\s+or\s+(?P<b>[^,:?]+?)\s*\?*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Things (one where it is only confirmed), how they are compared, the questions for values."""

    how: JoinKind
    options: tuple[str, ...]
    questions: tuple[tuple[str, ...], ...]
    yes_no: bool = False
    """Asks whether the first wins ("Is A older than B?"), not which."""
    rest: str = ""
    """What is said of the things, without their names and the words that compare."""


def find_comparison(question: str, names: Spans) -> Comparison | None:
    """Return what a question compares, or None if it compares no two linked things."""
    if len(question) > _MAX_OPERATOR_CHARS:
        return None
    table = table_for(question)
    polar = is_polar(question)
    pair = _find_pair(question, names, table, polar=polar)
    if pair is None:
        return None
    (a, b), connector = pair
    options = (question[slice(*a)].strip(), question[slice(*b)].strip())
    rest = f"{question[: a[0]]} {question[a[1] : b[0]]} {question[b[1] :]}"
    rule = _find_rule(rest, table, polar=polar, either=connector == "or")
    if rule is None or (is_negated(rest) and not polar):  # "Which is not heavier?"
        return None
    said = _strip_operator(rest, rule, table)
    if rule.how not in ("same", "both") and polar and connector == "and":
        return None
    templates = _fill_templates(rule, rest, said, table)
    about = _find_role(said, rule, table)
    if not about and (about := _find_compared_person(rest, rule)) and table.ages.search(rest):
        templates = (table.event_questions["born"],)
    questions = tuple(
        tuple(template.replace("{x}", f"{about}{option}") for template in templates)
        for option in options
    )
    decides = polar and connector not in ("or",) and rule.how not in ("same", "both")
    return Comparison(rule.how, options, questions, decides, said)


def is_polar(question: str) -> bool:
    """Whether a question is answered by yes or no: it begins with "is", "did" or the like."""
    return table_for(question).auxiliaries.match(question.lstrip()) is not None


def strip_auxiliary(question: str) -> str:
    """Return what a question of yes or no claims: without "is it true that", "did" or "isn't"."""
    table = table_for(question)
    plain = question.strip()
    if opening := table.auxiliaries.match(plain):
        plain = plain[opening.end() :].lstrip()
    if filler := table.fillers.match(plain):
        plain = plain[filler.end() :].lstrip()
    return plain


def _rule_of(table: RuleTable, how: str) -> OperatorRule:
    return next(rule for rule in table.operators if rule.how == how)


def _find_pair(
    question: str, names: Spans, table: RuleTable, *, polar: bool
) -> tuple[tuple[tuple[int, int], tuple[int, int]], str] | None:
    """Return the last two names that a connector joins, and the connector.

    Where yes or no is asked about something that two names may share, nothing need join them.
    """
    spans = sorted(names)
    for a, b in reversed(list(zip(spans, spans[1:], strict=False))):
        between = question[a[1] : b[0]]
        joined = table.connectors.search(between) or (polar and _find_order(between, table))
        most = _MAX_WORDS_TO_OTHER if joined and joined[0].lower() == "than" else _MAX_WORDS_BETWEEN
        if joined and len(between.split()) <= most:
            return (a, b), joined[0].lower()
    # "A, B: which of the two is older?"
    compares = any(rule.words.search(question) for rule in table.operators)
    two = len(spans) == 2 and question[spans[0][1] : spans[1][0]].strip() == ","
    if two and not polar and compares:
        return (spans[0], spans[1]), "or"
    # "Is A's home the same as B's?" and "Is A in the land that B is in?", not "Was A born in B?"
    shares = any(words.search(question) for _, words in table.shared)
    subjects = compares or (len(spans) == 2 and table.auxiliaries.search(question, spans[1][1]))
    if polar and len(spans) == 2 and shares and subjects:
        return (spans[0], spans[1]), "and"
    raw = _RAW_PAIR.search(question)
    if raw is None:
        return None
    return (raw.span("a"), raw.span("b")), "or"


def _find_order(between: str, table: RuleTable) -> re.Match[str] | None:
    """Return the word that puts two things in an order: "Was A born before B?"."""
    ordering = [rule for rule in table.operators if rule.how in ("earlier", "later")]
    found = (rule.words.search(between) for rule in ordering)
    return next((match for match in found if match), None)


def settle_event(question: str, texts: Sequence[str]) -> str:
    """Ask when a thing began by the word that texts about it use, if the question leaves it open.

    "When did the N begin?" becomes "When was the N opened?" where a sentence says so with a year.
    """
    table = table_for(question)
    pattern = re.escape(table.event_questions.get("any", "")).replace(r"\{x\}", "(?P<x>.+)")
    asked = re.fullmatch(pattern, question) if pattern else None
    if asked is None:
        return question
    for text in texts:
        if not _YEAR.search(text):
            continue
        for event, words in table.events:
            said = [word.lower() for word in words.findall(text)]
            lived = event == "born" and _LIFE.search(text)
            if event == "dead" or not (said or lived):
                continue
            verb = next((word for word in said if word.endswith(_VERB_ENDS)), "")
            form = table.event_questions["other" if verb else event]
            return form.replace("{x}", asked["x"]).replace("{verb}", verb)
    return question


def _find_rule(rest: str, table: RuleTable, *, polar: bool, either: bool) -> OperatorRule | None:
    """Return the rule whose word comes last: "the first film with the same director" is same."""
    found = []
    for rank, rule in enumerate(table.operators):
        if rule.how in ("same", "both") and (either or not polar):
            continue
        matches = rule.words.finditer(rest)
        match = next((one for one in matches if not _is_measured(rest[one.end() :], table)), None)
        if match:
            found.append((rule.how == "both", rank, match.start(), rule))
    if found:
        return min(found, key=lambda one: one[:3])[3]
    if not polar or either:
        return None
    # "Do A and B lie in one country?" asks for what they share, else what both are.
    shares = any(words.search(rest) for _, words in table.shared)
    return _rule_of(table, "same" if shares else "both")


def _is_measured(behind: str, table: RuleTable) -> bool:
    """Whether a word is the verb before one that compares sizes: "Does A last longer?"."""
    sizes = (rule.words for rule in table.operators if rule.how in ("larger", "smaller"))
    return behind[:1].isspace() and any(words.match(behind.lstrip()) for words in sizes)


def _strip_operator(rest: str, rule: OperatorRule, table: RuleTable) -> str:
    """Return the words beside the names that say something of them."""
    plain = rule.words.sub(" ", table.fillers.sub(" ", rest))
    plain = table.connectors.sub(" ", table.question_words.sub(" ", plain))
    return " ".join(word for word in re.findall(r"[\w'’-]+", plain))


def _find_compared_person(rest: str, rule: OperatorRule) -> str:
    """Return "the engineer of " where not the things are older, but those who did something to
    them: "designed by the older engineer".
    """
    match = rule.words.search(rest) if rule.how in ("earlier", "later") else None
    before = split_words(rest[: match.start()]) if match else []
    led = [word for word in before if word not in _ARTICLES][-1:]
    found = _COMPARED.match(rest[match.end() :]) if match and led == ["by"] else None
    return f"the {found['noun'].split()[0]} of " if found else ""


def _find_role(said: str, rule: OperatorRule, table: RuleTable) -> str:
    """Return "the director of " where the value is asked of something of the option."""
    if rule.how == "both":
        return ""
    roles = table.roles.findall(said)
    return f"the {roles[-1].lower().removesuffix('s')} of " if roles else ""


def _fill_templates(rule: OperatorRule, rest: str, said: str, table: RuleTable) -> tuple[str, ...]:
    """Return the questions for a value, with `{x}` for the thing."""
    if "{event}" in rule.ask[0]:
        return (_event_question(rest, said, table),)
    if "{size}" in rule.ask[0] and (asked := _ask_amount(rest, rule, table)):
        return (asked,)
    if "{size}" in rule.ask[0]:
        asked = next((text for text, words in table.sizes if words.search(rest)), "")
        return (f"{asked or _count_question(said)} {{x}}?",)
    if "{what}" in rule.ask[0] and table.years.search(rest):
        return (_event_question(rest, said, table),)
    if "{what}" in rule.ask[0]:
        asked = next((text for text, words in table.shared if words.search(rest)), "")
        return (f"{asked or _what_question(rest, rule)} {{x}}?",)
    return rule.ask


def ask_event(rest: str, table: RuleTable) -> str:
    """Return the question for the date that decides which of two things was earlier."""
    said = table.question_words.sub(" ", table.fillers.sub(" ", rest))
    return _event_question(rest, said, table)


def _event_question(rest: str, said: str, table: RuleTable) -> str:
    event = next((name for name, words in table.events if words.search(rest)), "other")
    if table.ages.search(rest) and event in ("other", "released", "published", "founded", "built"):
        # "Which film has the older director" and "who is older" are about births.
        persons = table.roles.search(rest) or table.persons.search(rest)
        event = "born" if persons else "any"
    verbs = [word for word in split_words(said) if word.endswith(_VERB_ENDS)]
    if verbs and event not in ("born", "dead", "any"):
        event = "other"  # asked by the question's own word
    question = table.event_questions[event]
    return question.replace("{verb}", verbs[-1] if verbs else "").replace(" ?", "?")


def _ask_amount(rest: str, rule: OperatorRule, table: RuleTable) -> str:
    """Return how a value is asked by the question's own verb or noun; "" by the table.

    "Which company employs fewer people" compares what each employs, and "Which has the higher dam"
    the dams.
    """
    match = rule.words.search(rest)
    found = _COMPARED.match(rest[match.end() :]) if match else None
    if match is None:
        return ""
    before = [word for word in split_words(rest[: match.start()]) if word not in _ARTICLES]
    if found is None:
        return _ask_verb(match[0], before, rest, table)
    verb, noun = before[-1] if before else "", " ".join(found["noun"].split())
    known = any(words.search(noun) for _, words in table.sizes)
    if match[0].lower() not in _QUANTIFIERS:
        asks = verb in _HAVING and not known
        return f"How {find_base(match[0])} is the {noun} of {{x}}?" if asks else ""
    if verb in _BEING and not known:  # "Which is more powerful?"
        return f"How {noun} is {{x}}?"
    helping = [word for word in (*before[:1], *before[-2:-1]) if table.auxiliaries.fullmatch(word)]
    if len(before) < 2 or verb in _HAVING or (table.auxiliaries.fullmatch(verb) and not helping):
        return ""
    much = "many" if noun.endswith("s") or noun in _PLURALS else "much"
    return f"How {much} {noun} {helping[0] if helping else 'does'} {{x}} {_to_base(verb)}?"


def _ask_verb(word: str, before: Sequence[str], rest: str, table: RuleTable) -> str:
    """Return how an amount is asked where only a verb tells of what: "sold more", "earns more"."""
    verb = before[-1] if before else ""
    sized = any(words.search(rest) for _, words in table.sizes)
    if word.lower() not in _QUANTIFIERS or len(before) < 2 or sized or verb in _HAVING | _BEING:
        return ""
    if table.auxiliaries.fullmatch(verb):
        return ""
    helping = next((one for one in before[:-1] if table.auxiliaries.fullmatch(one)), "")
    if helping or verb != _to_base(verb):
        return f"How much {helping or 'does'} {{x}} {_to_base(verb)}?"
    return f"How much has {{x}} {verb}?"


def _to_base(verb: str) -> str:
    """Return the verb of a form with "s"; any other form as it is."""
    return verb[:-1] if re.search(r"[^su]s$", verb) else verb


def find_base(word: str) -> str:
    """Return the adjective of which a word is the comparative: "heavier" is of "heavy"."""
    stem = word.lower().removesuffix("er")
    if stem.endswith("i"):
        return f"{stem[:-1]}y"
    if len(stem) > 2 and stem[-1] == stem[-2] and stem[-1] not in "ls":
        return stem[:-1]
    return f"{stem}e" if _CUT_E.search(stem) else stem


def _count_question(said: str) -> str:
    nouns = [word for word in split_words(said) if word not in QUESTION_WORDS]
    return f"How many {nouns[-1]} has" if nouns else "How large is"


def _what_question(rest: str, rule: OperatorRule) -> str:
    match = rule.words.search(rest)
    after = split_words(rest[match.end() :]) if match else []
    what = next((word for word in after if word not in QUESTION_WORDS), "kind")
    return f"What is the {what} of"
