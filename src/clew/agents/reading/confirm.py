"""Answer a question of yes or no: a sentence says what it claims, denies it, or neither.

Yes: one clause about the subject has every name, number and word of the claim. No: such a clause
negates it, or says another value where there can only be one ("founded in 1828", not 1900). What
the passages do not decide stays open: their silence denies nothing.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from clew.agents.citing.clauses import (
    Clause,
    find_clause,
    is_of,
    names_subject,
    split_clauses,
    titles_name,
)
from clew.agents.citing.entailment import is_negated
from clew.agents.citing.support import SupportSpan, make_citation, mentions_name
from clew.agents.core.scratchpad import Note
from clew.agents.reading.assertion import asserts, drop_without, is_taken_back, judge_without
from clew.agents.reading.belonging import Fit, compare_claim
from clew.agents.reading.decide import contradicts, decide, list_sentences
from clew.agents.reading.directed import has_exchanged_sides
from clew.agents.reading.judged import Place, can_judge
from clew.agents.reading.same_question import find_under_question
from clew.agents.reading.spans import Reading, asked_words, read_passages, same_answer
from clew.agents.reading.stems import cut_ending
from clew.agents.reading.values import COUNTED
from clew.agents.rules.operators import strip_auxiliary
from clew.agents.rules.question_analysis import find_question_name_spans, find_wanted_block
from clew.agents.rules.table import RuleTable, table_for
from clew.context import Context
from clew.text.code_names import find_sure_names
from clew.text.names import name_key
from clew.text.sentences import sentence_spans
from clew.text.unicode import split_words
from clew.types import Citation, Passage

_SAID = 0.8  # how sure a sentence with every word of the claim makes a yes, or a no
_REPLIED = 0.95  # how sure a yes or no makes that stands under the same question
_READ = 0.5  # least probability of another value that is read
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_QUANTIFIED = re.compile(r"\b(every|each|only|all|always)\s+(\w+)", re.IGNORECASE)
_CLAUSE = re.compile(
    r"[,;:()]|\b(?:but|when|if|unless|although|though|because|while|whereas|who|which|that|where|"
    r"until|and)\b",
    re.IGNORECASE,
)
# "Is it allowed", "can I": leave is asked for, which a sentence of its own may refuse.
_LEAVE = re.compile(
    r"\b(?:allowed|permitted|recommended|advisable|use|used|using)\b", re.IGNORECASE
)
_ASKS_LEAVE = re.compile(
    r"\b(?:allowed|permitted|recommended|advisable)\b|\A\W*(?:can|may|could|should)\s+(?:i|we|you|one)\b",
    re.IGNORECASE,
)
_FORBIDS = re.compile(
    r"\A(?:never|do\s+not|don['’]t)\b|\b(?:cannot|can['’]t|can\s+not|must\s+not|may\s+not|"
    r"(?:is|are)\s+not\s+(?=allowed|permitted|recommended))",
    re.IGNORECASE,
)
# "An item that another reader has reserved cannot be renewed": others can. "If it is reserved, it
# cannot": else it can.
_RESTRICTED = re.compile(
    r"(?:an?|any|the)\s+(?:\w+\s+){1,2}(?:that|which|who)\s+(?P<of>[^,;.]+?)\s+"
    r"(?:cannot|can['’]t|can\s+not|must\s+not|may\s+not|(?:is|are)\s+not)\b"
    r"|(?:if|when|unless)\s+(?P<case>[^,;]+),",
    re.IGNORECASE,
)
# "It does not support joins of more than 64 tables": it may support others.
_LIMITED = re.compile(
    r"(?:\b(?:not|never|cannot)|n['’]t)\s+(?:\w+\s+){2,4}?(?:containing|having|exceeding|that|which|"
    r"who|whose|(?:of\s+|with\s+)?(?:more|less|fewer|larger|longer|older|younger|smaller)\s+than|"
    r"over|above|beyond)\s+(?P<of>[^,;.]+)",
    re.IGNORECASE,
)
_STATE = re.compile(r"\s(?P<word>on|off|up|down)(?=\s+by\s+default\b|\W*\Z)", re.IGNORECASE)
_COMPARES = re.compile(r"\b(?:same|both)\b", re.IGNORECASE)
_MAIN_END = re.compile(r"[;:.]\s|[;:.]\Z|\s+because\b")
_PRONOUN = re.compile(r"\b(?:he|she|it|they)\b", re.IGNORECASE)
_BY = re.compile(r"\bby\s+(?:\w+\s+){0,3}$", re.IGNORECASE)
_MAX_SUBJECT_WORDS = 3  # words in which a sentence names what it is about


@dataclass(frozen=True, slots=True)
class Claim:
    """What a question of yes or no claims: of whom, with which words, and what stands last."""

    text: str
    names: tuple[str, ...]
    words: frozenset[str]
    """Stems of its words beside the names."""
    numbers: frozenset[str]
    focus: str
    """What stands last: the name, number or word that is asked about."""
    negated: bool

    @property
    def subject(self) -> str:
        """The name it begins with."""
        return self.names[0] if self.names else ""

    @property
    def agents(self) -> list[str]:
        """The names whose pages may say it: the subject, and by whom something was done."""
        done_by = [
            n for n in self.names[1:] if re.search(rf"\bby\s+(?:the\s+)?{re.escape(n)}", self.text)
        ]
        return [self.subject, *done_by]

    @property
    def is_valued(self) -> bool:
        """Whether a name or a number is asked about."""
        return self.focus in self.names[1:] or self.focus in self.numbers


def parse_claim(ctx: Context, question: str) -> Claim | None:
    """Return what a question claims, or None if it says nothing of anything."""
    text = strip_auxiliary(question).rstrip("?？ ")
    names = [question[a:b] for a, b in find_question_name_spans(ctx.view, question)]
    known = {word for name in names for word in split_words(name)}
    numbers = frozenset(number for number in find_numbers(text) if number not in known)
    said = (word for word in asked_words(_light(text)) if not is_negated(word))
    plain = [word for word in said if word not in known and word not in numbers]
    if not plain and not numbers and len(names) < 2:
        return None
    if (state := _STATE.search(text)) is not None:
        plain.append(state["word"].lower())
    last = max((*names, *numbers, *plain), key=lambda one: text.lower().rfind(one.lower()))
    words = frozenset(map(cut_ending, plain))
    return Claim(text, tuple(names), words, numbers, last, is_negated(drop_without(text)))


def find_numbers(text: str) -> set[str]:
    """Return the numbers of a text, in digits or as a word."""
    return {*_NUMBER.findall(text), *(COUNTED & set(split_words(text)))}


def _light(text: str) -> str:
    """Leave out "made" of "made of stone", which says nothing that "of stone" does not."""
    return re.sub(r"\b(?:made|built)\s+(?=of\b|from\b)", "", text, flags=re.IGNORECASE)


async def confirm(ctx: Context, passages: Sequence[Passage]) -> Note | None:
    """Note yes or no for the question, and the sentence that says so; None if no sentence does.

    Where the text asks the same, what stands under that line decides, and nothing else. What no
    sentence proves may be decided by one in other words, if the scorer finds it to.
    """
    if (under := find_under_question(ctx.question, passages)) is not None:
        replied = under.find_reply(table_for(ctx.question))
        return _note(ctx, *replied, probability=_REPLIED) if replied else None
    claim = parse_claim(ctx, ctx.question)
    proven = await _prove(ctx, claim, passages) if claim else None
    if proven is not None or not can_judge(ctx) or find_wanted_block(ctx.question):
        return _mark_disputed(ctx, claim, proven, passages)
    decided = await decide(ctx, passages)
    if decided and claim and _is_left_open(ctx, claim, decided, passages):
        return None
    return _mark_disputed(ctx, claim, decided, passages)


def _mark_disputed(
    ctx: Context, claim: Claim | None, note: Note | None, passages: Sequence[Passage]
) -> Note | None:
    """Mark a yes where another sentence says the same with another value: a date was moved."""
    if note is None or claim is None or note.answer != table_for(ctx.question).yes:
        return note
    others = (passage.text[start:end] for passage, start, end in _sentences(passages))
    if not any(compare_claim(claim.text, one, "") == "another" for one in others):
        return note
    signs = {**note.signs, "disputed": 1.0}
    return replace(note, signs=signs, probability=note.probability / 2)


def _is_left_open(ctx: Context, claim: Claim, decided: Note, passages: Sequence[Passage]) -> bool:
    """Whether the sentence that decides only supposes, plans or reports it, or is denied.

    Nor does it decide where it says it of some of the things alone, or of another one.
    """
    cited = decided.citation
    home = next((one for one in passages if cited and one.id == cited.chunk), None)
    if cited is None or home is None:
        return False
    span = cited.start - home.start, cited.end - home.start
    is_yes = decided.answer == table_for(ctx.question).yes
    if judge_without(claim.text, cited.quote) in ("open", "no" if is_yes else "yes"):
        return True
    if not is_yes:
        return _is_of_some(claim, cited.quote)
    if _is_apart(claim, cited.quote) or not _has_both(claim, f"{home.title} {home.text}"):
        return True
    return not _is_proof(ctx, claim, home, span, cited.quote)


def _is_of_some(claim: Claim, sentence: str) -> bool:
    """Whether a sentence denies it of some things or in a case: "An item that … cannot be …"."""
    found = _RESTRICTED.match(sentence.strip())
    restricted = (found["of"] or found["case"]) if found else ""
    limited = _LIMITED.search(sentence)
    for part in filter(None, (restricted, limited and limited["of"])):
        said = {cut_ending(word) for word in asked_words(part)}
        if said and not said & claim.words:
            return True
    return False


def _is_apart(claim: Claim, sentence: str) -> bool:
    """Whether a sentence says the words of a claim, but of something else than what is asked about.

    "Born in Ribe and studied in Lund" does not say that somebody studied in Ribe.
    """
    at = sentence.find(claim.focus) if claim.is_valued else -1
    if at < 0:
        return False
    clause = find_clause(sentence, at)
    here = {cut_ending(word) for word in split_words(sentence[clause.start : clause.end])}
    said = {cut_ending(word) for word in split_words(sentence)}
    return bool(claim.words & said) and not claim.words & here


def _has_both(claim: Claim, text: str) -> bool:
    """Whether a text mentions each of the things that a claim compares."""
    compares = _COMPARES.search(claim.text) is not None
    return not compares or all(mentions_name(name, text) for name in claim.names)


async def _prove(ctx: Context, claim: Claim, passages: Sequence[Passage]) -> Note | None:
    """Note yes or no by a sentence with all that is claimed, or with another value."""
    for passage, start, end in _sentences(passages):
        sentence = passage.text[start:end]
        told = resolve_pronoun(claim, passage.text[:start], sentence.lstrip())
        said = _says(claim, passage, start, told)
        if said is False and not claim.negated and _is_of_some(claim, told):
            continue
        if said is not None and _is_proof(ctx, claim, passage, (start, end), told):
            said = await _check(ctx, claim, Place(passage, start, end), told, said=said)
        else:
            continue
        if said is not None:
            cited = make_citation(passage, SupportSpan(start, end, 1.0))
            return _note(ctx, said, cited, probability=_SAID)
    if not claim.negated and _ASKS_LEAVE.search(ctx.question):
        for passage, start, end in _sentences(passages):
            if _forbids(claim, passage, passage.text[start:end]):
                cited = make_citation(passage, SupportSpan(start, end, 1.0))
                return _note(ctx, False, cited, probability=_SAID)
    return await _read_other_value(ctx, claim, passages)


async def _check(ctx: Context, claim: Claim, place: Place, told: str, *, said: bool) -> bool | None:
    """Return what a sentence says of a claim if its words belong together and the scorer agrees.

    What is denied without a thing is so with it, and says so in no other words.
    """
    if judge_without(claim.text, told) and "without" not in claim.text.lower():
        return said
    fit = _compare(claim, place.passage, told) if said is not claim.negated else "whole"
    if fit == "another":
        return not said
    disagrees = said and not claim.negated and await contradicts(ctx, place)
    return None if fit != "whole" or disagrees else said


def _compare(claim: Claim, passage: Passage, told: str) -> Fit:
    """Return how a sentence has what is claimed; the page and its heading may name the subject."""
    return compare_claim(claim.text, told, f"{passage.title} {passage.heading}")


def _is_proof(
    ctx: Context, claim: Claim, passage: Passage, span: tuple[int, int], told: str
) -> bool:
    """Whether a sentence says that what it has is so, and the one behind it does not deny it.

    One that says it of the two sides the other way round says something else.
    """
    table = table_for(ctx.question)
    if has_exchanged_sides(ctx.question, told, table) or is_taken_back(passage.text, *span, table):
        return False
    return asserts(ctx.question, claim.words, told, table, cut_ending)


def _forbids(claim: Claim, passage: Passage, sentence: str) -> bool:
    """Whether a sentence forbids what is asked for, and that alone: a condition forbids less."""
    main = _MAIN_END.split(sentence.strip())[0]
    if not _FORBIDS.search(main) or claim.numbers or judge_without(claim.text, main):
        return False
    bare = _LEAVE.sub(" ", _FORBIDS.sub(" ", main))
    said = {cut_ending(word) for word in asked_words(bare)}
    asked = {cut_ending(word) for word in asked_words(_LEAVE.sub(" ", claim.text))}
    home = {cut_ending(word) for word in split_words(f"{passage.title} {passage.heading}")}
    return bool(said & asked) and said <= asked | home and asked <= said | home


def _note(ctx: Context, yes: bool, cited: Citation, *, probability: float) -> Note:
    table = table_for(ctx.question)
    short = table.yes if yes else table.no
    # Another value that is read has the reader's own probability.
    proven = probability in (_SAID, _REPLIED)
    signs = describe_proof(ctx, cited.quote, yes=yes) if proven else {}
    if probability == _REPLIED:
        signs["close"] = 1.0  # what explains the reply takes nothing from it
    return Note(ctx.question, short, cited.quote, cited, probability=probability, signs=signs)


def describe_proof(ctx: Context, quote: str, *, yes: bool) -> dict[str, float]:
    """Return what speaks for a yes or no: how near the sentence that says so is to the question.

    A sentence that says little else leaves least to misread; a subject that it does not name was
    taken from the page or the sentence before.
    """
    asked = {cut_ending(word) for word in split_words(ctx.question)}
    said = {cut_ending(word) for word in asked_words(quote)}
    claimed = {cut_ending(word) for word in asked_words(strip_auxiliary(ctx.question))}
    return {
        "close": len(said & asked) / max(1, len(said)),
        "firm": len(said & claimed) / max(1, len(claimed)),
        "denied": float(not yes),
    }


def _sentences(passages: Sequence[Passage]) -> Iterable[tuple[Passage, int, int]]:
    return ((one.passage, one.start, one.end) for one in list_sentences(passages))


def _says(claim: Claim, passage: Passage, start: int, sentence: str) -> bool | None:
    """Whether the sentence at `start` says or denies a claim; None if it does neither."""
    if not _has_words(claim, sentence):
        return None
    own = [c for c in split_clauses(sentence) if _has_all(claim, passage, start, sentence, c)]
    about = any(names_subject(claim.subject, passage, start, c) for c in own)
    if not own or not (about or _is_about(claim, passage, sentence)):
        return None
    if any(not _repeats(sentence, *found) for found in _QUANTIFIED.findall(claim.text)):
        return None
    if verdict := judge_without(claim.text, sentence):
        return None if verdict == "open" else verdict == "yes"
    denied = _is_denied(claim, sentence)
    return None if denied is None else denied == claim.negated


def _has_all(claim: Claim, passage: Passage, start: int, sentence: str, clause: Clause) -> bool:
    """Whether one clause, with its subject, has all that is claimed: what is done and to what."""
    said = f"{clause.subject} {sentence[clause.start : clause.end]}"
    if not _has_words(claim, said) or not claim.numbers <= find_numbers(said):
        return False
    return all(is_of(name, passage, start, sentence, clause) for name in claim.names)


def resolve_pronoun(claim: Claim, before: str, sentence: str) -> str:
    """Return a sentence with what "it" stands for, if a claim is of that: "The office … It is …".

    It must be in the opening of the sentence before.
    """
    first = next(iter(asked_words(claim.text)), "")
    pronoun = _PRONOUN.match(sentence)
    if pronoun is None or not first or claim.text.find(first) > claim.text.find(claim.subject) >= 1:
        return sentence
    spans = list(sentence_spans(before))
    opening = split_words(before[slice(*spans[-1])])[:_MAX_SUBJECT_WORDS] if spans else []
    known = cut_ending(first) in map(cut_ending, opening)
    if known and first in split_words(claim.subject):
        return f"{claim.subject}{sentence[pronoun.end() :]}"
    return f"the {first}{sentence[pronoun.end() :]}" if known else sentence


def _repeats(sentence: str, quantifier: str, word: str) -> bool:
    """Whether "every year" stands in a sentence as it is, not as "every two years"."""
    return re.search(rf"\b{quantifier}\s+{re.escape(word)}\b", sentence, re.IGNORECASE) is not None


def _has_words(claim: Claim, sentence: str) -> bool:
    """Whether a sentence has the words of a claim, not as parts of a code alone."""
    plain = sentence
    for code in find_sure_names(sentence):
        if code.name not in claim.text:
            plain = plain.replace(code.name, " ")
    return claim.words <= {cut_ending(word) for word in split_words(plain)}


def _is_about(claim: Claim, passage: Passage, sentence: str) -> bool:
    """Whether a sentence has the claim's names, the subject as its own.

    "Born in B, he taught A" is no sentence about A, unless A's page has it; "designed by A" is.
    """
    others = [name for name in claim.names[1:] if not _mentions(name, passage, sentence)]
    if others:
        return False
    if not claim.subject or any(titles_name(passage, name) for name in claim.agents):
        return True
    at = name_key(sentence).find(name_key(claim.subject))
    if at < 0:
        return False
    place = sentence.lower().find(claim.subject.lower())
    if place >= 0 and _BY.search(sentence[:place]):
        return True
    focus = name_key(sentence).find(name_key(claim.focus))
    return (focus < 0 or at <= focus) and not _PRONOUN.search(sentence[: max(place, 0)])


def _mentions(name: str, passage: Passage, sentence: str) -> bool:
    return mentions_name(name, sentence) or titles_name(passage, name)


def _is_denied(claim: Claim, sentence: str) -> bool | None:
    """Whether the clause with what is asked about is negated; None where that is not clear.

    "Settings, but no firmware" denies the firmware alone; "not A and B" may deny both.
    """
    clauses = _CLAUSE.split(sentence)
    focus = cut_ending(split_words(claim.focus)[-1])
    own = [c for c in clauses if focus in map(cut_ending, split_words(c))]
    if not own:
        return is_negated(sentence)
    negated = [is_negated(clause) for clause in own]
    if not any(negated) and is_negated(sentence.split(own[0])[0]):
        joined = re.search(r"\band\b[^,;]*$", sentence.split(own[0])[0], re.IGNORECASE)
        return None if joined else False
    return all(negated) if all(negated) == any(negated) else None


async def _read_other_value(ctx: Context, claim: Claim, passages: Sequence[Passage]) -> Note | None:
    """Return no where a thing that has one value of a kind has another than the one asked about."""
    table = table_for(ctx.question)
    if not claim.is_valued or not table.unique.search(claim.text):
        return None
    asked = ask_for_value(ctx.question, claim, table)
    for reading in await read_passages(ctx, asked, passages, most=3):
        if reading.probability < _READ or not _is_other_value(claim, reading):
            continue
        start, end = reading.sentence()
        sentence = reading.passage.text[start:end]
        names = tuple(n for n in claim.names if n != claim.focus)
        rest = replace(claim, names=names, numbers=claim.numbers - {claim.focus})
        clause = find_clause(sentence, reading.start - start)
        proven = _is_proof(ctx, rest, reading.passage, (start, end), sentence)
        if proven and _has_all(rest, reading.passage, start, sentence, clause):
            cited = reading.cite()
            return _note(ctx, claim.negated, cited, probability=reading.probability)
    return None


def ask_for_value(question: str, claim: Claim, table: RuleTable) -> str:
    """Ask for the value that a question of yes or no proposes."""
    kind = "When" if claim.focus in claim.numbers else "Where"
    auxiliary = table.auxiliaries.search(question)
    before = claim.text[: claim.text.lower().rfind(claim.focus.lower())].rstrip()
    before = re.sub(r"\s+(?:in|at|on|by|of|to|from)$", "", before)
    return f"{kind} {auxiliary[0].lower() if auxiliary else 'was'} {before}?"


def _is_other_value(claim: Claim, reading: Reading) -> bool:
    """Whether a reading is of the kind of the value asked about, and not that one."""
    text, digits = reading.text, any(char.isdigit() for char in reading.text)
    if claim.focus in claim.numbers:
        return digits and claim.focus not in find_numbers(text)
    named = text[:1].isupper() and not digits
    start, end = reading.sentence()
    sentence = reading.passage.text[start:end]
    clause = find_clause(sentence, reading.start - start)
    said = sentence[clause.start : clause.end]
    return named and not same_answer(text, claim.focus) and not mentions_name(claim.focus, said)
