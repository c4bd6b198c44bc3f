"""Leaves out of a question what only addresses the reader, whatever its wording.

Word lists know "could you please tell me" (`clew.retrieve.question`). What they do not know is
judged by meaning: a clause that names nothing and asks nothing ("I hope you are well"), and the
words before a question that speak of "I" or "you" ("would you mind telling me who …").
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from clew.context import Context
from clew.retrieve.breadth import wants_breadth
from clew.retrieve.question import content_words, locate_names, tidy_question
from clew.retrieve.wording import can_judge, judge
from clew.text.names import STOP_WORDS, Tokens, tokenize_question

Span = tuple[int, int]
"""The first token and the one behind the last."""


@dataclass(frozen=True, slots=True)
class Clause:
    """What stands between marks, and whether the mark before it is only a comma."""

    span: Span
    after_comma: bool

    @property
    def size(self) -> int:
        """Return the number of its words."""
        return self.span[1] - self.span[0]


ASKING = frozenset("who whom whose which what when where why how".split())
WHETHER = frozenset(("if", "whether"))
_ADDRESSING = frozenset(
    "i you u me we us my your ur somebody someone anybody anyone everybody everyone".split()
)
_VERBS = frozenset("is are was were did does do has have had can could will would".split())
_BEGINNING = ASKING | WHETHER | _VERBS  # words that a question may begin with
_OBJECTS = frozenset(("me", "us"))
_NEED_VERB = frozenset("do does did can could will would may might must should".split())
_POSSESSIVE = frozenset(("s",))  # of "Ada's", a token of its own
# Words that need what follows them.
_DANGLING = _VERBS | _NEED_VERB | WHETHER | STOP_WORDS | frozenset("when whenever once".split())
_JOINING = frozenset(("but", "and", "so"))  # "sorry to bother you, but who …"
_MAX_WORDS = 14  # of a clause that may be courtesy
_LEAST_LEFT = 2  # words that a question keeps
# Probability from which a clause is left out, one that does not say "you" or "I", and a last one
# that only a comma parts from the rest.
_COURTEOUS, _LIKELY_COURTEOUS, _SURELY_COURTEOUS = 0.6, 0.8, 0.9
_COURTEOUS_SENTENCE, _MAX_SENTENCE = 0.6, 30  # probability and words of a whole sentence
_MAX_UNMARKED = 6  # words of a closing without a mark before it
_NEARLY = 0.05
_UNKNOWN = 0.25  # what it adds to a probability that no word of a clause stands in the texts
_HARDLY_DOUBTED = 0.95  # least probability for one with words of the texts
_MAX_CLOSINGS = 3  # one behind the other: "… pls thx"
_MAX_CLOSING = 4  # words of such a one
_MAX_ADDRESSED = 8  # words of one that says "you": "…, if you would be so kind"
_MAX_SIGNATURE = 3  # words of a writer's name
# Probability and words of a clause that goes with a courteous one: "For my report, if I may: …".
_PERHAPS, _MAX_CONTEXT = 0.3, 6
_ABBREVIATION = 3  # letters of a capitalised word whose mark may be its own
_SENTENCE_END = re.compile(r"[.!?]\S?\s|\n")
_COMMA = re.compile(r"\s*[,:;–—]\s|\s+-+\s")


async def leave_out_courtesy(ctx: Context, question: str) -> str:
    """Return the question without the sentences and clauses that only address the reader.

    An order to list or to tell something is none of them: "List all people who …".
    """
    left = await _leave_out_clauses(ctx, await _leave_out_sentences(ctx, question))
    if wants_breadth(question) and not wants_breadth(left):
        left = question
    for _ in range(_MAX_CLOSINGS):
        shorter = await _leave_out_closing(ctx, left)
        if shorter == left:
            break
        left = shorter
    return left


async def _leave_out_sentences(ctx: Context, question: str) -> str:
    """Return the question without whole sentences of courtesy, whoever they name.

    What asks stays; of other sentences the meaning tells whether they say something of the matter.
    """
    t = tokenize_question(question)
    spans = list(_split_sentences(question, t))
    if len(spans) < 2 or not can_judge(ctx, question):
        return question
    asking = [span for span in spans if "?" in question[t.ends[span[1] - 1] :][:2]]
    asking = asking or [span for span in spans if not ASKING.isdisjoint(t.keys[slice(*span)])]
    asking = asking or [max(spans, key=lambda span: span[1] - span[0])]
    # "Good old Oak Hall. Who built it?": what asks names nothing itself.
    lone = all(_names_nothing(t, *span) for span in asking)
    others = [
        (first, last)
        for first, last in spans
        if (first, last) not in asking
        and last - first <= _MAX_SENTENCE
        and not any(t.digit[first:last])
        and (not lone or _names_nothing(t, first, last))
    ]
    texts = [question[t.starts[first] : t.ends[last - 1]] for first, last in others]
    chances = await judge(ctx, "courtesy", texts) if texts else []
    pairs = zip(others, chances, strict=True)
    dropped = {at for span, chance in pairs if chance > _COURTEOUS_SENTENCE for at in range(*span)}
    kept = [at for at in range(len(t)) if at not in dropped]
    return _keep_matter(question, _join(question, t, kept)) if dropped and kept else question


def _split_sentences(question: str, t: Tokens) -> Iterator[Span]:
    """Yield the sentences of a question."""
    first = 0
    clauses = list(_split_clauses(question, t))
    for number, clause in enumerate(clauses, start=1):
        if number == len(clauses) or not clauses[number].after_comma:
            yield first, clause.span[1]
            first = clause.span[1]


async def _leave_out_closing(ctx: Context, question: str) -> str:
    """Return the question without courtesy at its end that no mark parts from it."""
    t = tokenize_question(question)
    clauses = list(_split_clauses(question, t))
    spans = dict(_find_closings(ctx, t, clauses[-1])) if clauses else {}
    if not spans or not can_judge(ctx, question):
        return question
    texts = [question[t.starts[first] : t.ends[last - 1]] for first, last in spans]
    chances = dict(zip(spans, await judge(ctx, "closing", texts), strict=True))
    fitting = {span: chances[span] for span, enough in spans.items() if chances[span] > enough}
    if not fitting:
        return question
    # Of those that are nearly as likely, the shortest: the words before it may be the matter's.
    first, _ = max(span for span in fitting if fitting[span] > max(fitting.values()) - _NEARLY)
    return _keep_matter(question, _join(question, t, range(first)))


async def _leave_out_clauses(ctx: Context, question: str) -> str:
    """Return the question without clauses that only address the reader, and openings within one."""
    t = tokenize_question(question)
    clauses = list(_split_clauses(question, t))
    outer = [_take_outer(t, clauses), _take_last(t, clauses)] if len(clauses) > 1 else []
    openings = dict(_find_openings(t, clauses))
    spans = list(dict.fromkeys([*(one.span for run in outer for one in run), *openings]))
    if not spans or not can_judge(ctx, question):
        return question
    texts = [question[t.starts[first] : t.ends[last - 1]] for first, last in spans]
    chances = dict(zip(spans, await judge(ctx, "courtesy", texts), strict=True))
    # What has no word of the texts hardly says anything of what they are about.
    for first, last in spans:
        if last - first <= _MAX_CONTEXT and not _has_known_word(ctx, t, first, last):
            chances[first, last] += _UNKNOWN
    left_out = [span for run in outer for span in _choose_outer(t, run, chances)]
    left_out += [span for span, enough in openings.items() if chances[span] > enough]
    dropped = {at for span in left_out for at in range(*span)}
    kept = [at for at in range(len(t)) if at not in dropped]
    if 0 in dropped and kept and t.keys[kept[0]] in _JOINING:
        kept = kept[1:]
    if not dropped or len(kept) < _LEAST_LEFT:
        return question
    return _keep_matter(question, _join(question, t, kept))


def _keep_matter(question: str, left: str) -> str:
    """Return what is left unless it says nothing: "I have to move it, how do I do that?"."""
    return left if content_words(left) or not content_words(question) else question


async def tidy_around_names(ctx: Context, names: Sequence[str]) -> Context:
    """Return the context with a question without courtesy and with its mark, if it keeps names."""
    plain = tidy_question(await leave_out_courtesy(ctx, tidy_question(ctx.question)))
    kept = len(locate_names(plain, names)) == len(locate_names(ctx.question, names))
    return replace(ctx, question=plain) if kept else ctx


def _join(question: str, t: Tokens, kept: Sequence[int]) -> str:
    """Return the text of some tokens; marks stay with the words they follow."""
    ends = [*t.starts[1:], len(question)]
    last = kept[-1]
    text = "".join(question[t.starts[at] : ends[at]] for at in kept[:-1])
    closing = question[t.ends[last] : ends[last]].strip()
    return text + question[t.starts[last] : t.ends[last]] + closing.rstrip(",;:–—-")


def _take_outer(t: Tokens, clauses: Sequence[Clause]) -> list[Clause]:
    """Return the clauses before the first that names or asks something."""
    taken: list[Clause] = []
    for clause in clauses:
        first, last = clause.span
        if not ASKING.isdisjoint(t.keys[first:last]) or not _names_nothing(t, first, last):
            break
        taken.append(clause)
    return taken


def _take_last(t: Tokens, clauses: Sequence[Clause]) -> list[Clause]:
    """Return the clauses after the last that names or asks something, the last one first."""
    *others, last = clauses
    signature = [last] if others and _may_sign(t, last, others[-1]) else []
    taken = _take_outer(t, [*others, *([] if signature else [last])][::-1])
    enclosing = {one for before, one in pairwise(clauses) if before.after_comma}
    for at, one in enumerate(taken):
        # "…, as a sailor" belongs to the question, and so does what goes on behind a clause.
        addressed = not _ADDRESSING.isdisjoint(t.keys[slice(*one.span)])
        most = _MAX_ADDRESSED if addressed else _MAX_CLOSING
        if one.after_comma and (one.size > most or one in enclosing):
            return signature + taken[:at]
    return signature + taken


def _may_sign(t: Tokens, clause: Clause, before: Clause) -> bool:
    """Whether a clause may be a writer's name, as after "Cheers,"."""
    first, last = clause.span
    if not clause.after_comma or clause.size > _MAX_SIGNATURE or any(t.digit[first:last]):
        return False
    return before.size <= _MAX_CLOSING and not before.after_comma and before.span[0] > 0


def _choose_outer(
    t: Tokens, run: Sequence[Clause], chances: Mapping[Span, float]
) -> Sequence[Span]:
    """Return the clauses up to the last courteous one, if those before it are or go with it."""
    chosen = 0
    for at, one in enumerate(run):
        first, last = one.span
        closing = run[0].span > run[-1].span
        enough = _SURELY_COURTEOUS if closing and one.after_comma else _COURTEOUS
        if chances[one.span] > enough:
            chosen = at + 1
        elif closing:
            # A signature has its courtesy before it.
            if at or not _may_sign(t, one, run[1]):
                break
        elif chances[one.span] < _PERHAPS or one.size > _MAX_CONTEXT:
            break
        elif _ADDRESSING.isdisjoint(t.keys[first:last]):
            break
    return [one.span for one in run[:chosen]]


def _find_openings(t: Tokens, clauses: Sequence[Clause]) -> Iterator[tuple[Span, float]]:
    """Yield what stands before a question within its clause, and how sure one must be."""
    for clause in clauses:
        first, last = clause.span
        least = 2 if first else 1  # "…, and why" goes on
        begins = [at for at in range(first + least, last - 1) if t.keys[at] in _BEGINNING]
        asks = next((at for at in begins if t.keys[at] in ASKING), last)
        told = next((at for at in range(first + 2, asks) if t.keys[at] in ("me", "us")), last)
        # "can u tell me were they …", where "were" is a slip
        begins += [told + 1] if told + 1 < asks else []
        for at in begins:
            if (
                at > asks
                or t.keys[first] in _BEGINNING - _VERBS
                or not _names_nothing(t, first, at)
            ):
                break
            addressed = not _ADDRESSING.isdisjoint(t.keys[first:at])
            # With an object it may be the question: "Do you switch the lamp off when …?"; and so
            # may what stands before a condition: "Can you stop it if …".
            sure = addressed and (at == asks or t.keys[at] == "whether")
            sure = sure and "the" not in t.keys[first:at]
            if addressed or at == asks:
                yield (first, at), _COURTEOUS if sure else _LIKELY_COURTEOUS


def _find_closings(ctx: Context, t: Tokens, clause: Clause) -> Iterator[tuple[Span, float]]:
    """Yield what may stand behind a question without a mark: "… was born thx", "… if that's ok"."""
    first, last = clause.span
    closing = range(max(first + _LEAST_LEFT, last - _MAX_UNMARKED), last)
    addressed = not _ADDRESSING.isdisjoint(t.keys[at] for at in closing)
    if ctx.question.rstrip().endswith(("?", "？")) and not addressed:
        return
    for at in closing:
        # "is it allowed" needs its last word, "the" and "Ada's" what follows.
        if t.keys[at - 1] in _DANGLING or t.keys[at] in _POSSESSIVE or _is_verb_of(t, first, at):
            continue
        if _names_nothing(t, at, last):
            yield (at, last), _find_least_chance(ctx, t, at, last)


def _is_verb_of(t: Tokens, first: int, at: int) -> bool:
    """Whether a word is the verb that "does" or "can" before it needs: "What does E4 tell me?"."""
    objective = t.keys[at + 1 : at + 2] and t.keys[at + 1] in _OBJECTS
    return bool(objective) and not _NEED_VERB.isdisjoint(t.keys[first:at])


def _find_least_chance(ctx: Context, t: Tokens, first: int, last: int) -> float:
    """Return how likely courtesy must be; a word of the texts may belong to the matter."""
    keys = t.keys[first:last]
    if not _ADDRESSING.isdisjoint(keys):
        return _COURTEOUS
    if _has_known_word(ctx, t, first, last):
        return _HARDLY_DOUBTED
    return _SURELY_COURTEOUS


def _has_known_word(ctx: Context, t: Tokens, first: int, last: int) -> bool:
    """Whether a passage has one of the words, those that stand everywhere apart."""
    words = content_words(" ".join(t.keys[first:last]))
    return any(len(ctx.view.bm25.chunks_with(word)) for word in words)


def _split_clauses(question: str, t: Tokens) -> Iterator[Clause]:
    """Yield what stands between marks.

    Marks of abbreviations ("Mr. Moto", "U.S.A.") end nothing.
    """
    first, after_comma = 0, False
    for at in range(len(t)):
        last = at + 1 == len(t)
        between = "" if last else question[t.ends[at] : t.starts[at + 1]]
        short = t.upper[at] and t.ends[at] - t.starts[at] <= _ABBREVIATION and at > first
        ends = _SENTENCE_END.search(between) and not (short and between.startswith("."))
        comma = _COMMA.match(between)
        if last or ends or comma:
            yield Clause((first, at + 1), after_comma)
            first, after_comma = at + 1, not ends


def _names_nothing(t: Tokens, first: int, last: int) -> bool:
    """Whether words have neither digits nor a capital but for the first one's and that of "I"."""
    if last - first > _MAX_WORDS or any(t.digit[first:last]):
        return False
    return not any(t.upper[at] and t.keys[at] != "i" for at in range(first + 1, last))
