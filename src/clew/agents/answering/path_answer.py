"""Answers from the paths of a graph: their ends, how many there are, or whether one is among them.

What the query scorer finds asked is told whole and alone; otherwise the ends that are likely.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from clew.agents.answering.kinds import list_kind
from clew.agents.answering.namesakes import find_namesakes
from clew.agents.answering.path_check import Verdict, check_claim
from clew.agents.answering.path_compare import compare_things
from clew.agents.answering.path_ends import prefer_fitting_ends
from clew.agents.answering.write import make_answer
from clew.agents.core.messages import explain_not_written
from clew.agents.core.types import Answer
from clew.agents.reading.restrictions import says_form
from clew.agents.reading.spans import asked_words
from clew.agents.rules.asked_noun import find_asked_phrase
from clew.context import Context
from clew.retrieve.asked_form import AskedForm, read_form, wants_check
from clew.retrieve.pack import fetch_entity_labels
from clew.retrieve.paths.ranked import UNCLEAR, list_ends, measure_fit
from clew.retrieve.paths.relation_paths import ASKED_MARK, MAX_ASKED_ENDS
from clew.retrieve.rank import ANSWER_MARK
from clew.retrieve.relation_vectors import load_short_texts
from clew.retrieve.spelled_out import ask_plainly
from clew.text.unicode import split_words
from clew.text.word_forms import asking_words, question_language
from clew.types import Citation, Evidence, Found, Hit, Path

_PATH_NOTE = "these are the ends of the best paths in the graph"
# Share of the best score, as of the entities at the end of the same relation path.
_MIN_RELATIVE_SCORE = 0.5
_MAX_ANSWERS = 32  # of those that the first path leads to, where scores decide
_MAX_TOLD = 300  # names in an answer; what is more is counted
_MAX_AHEAD = 64  # facts of an end whose relations are looked at
_MAX_CITED_PATHS = 8  # candidates whose paths are quoted


async def answer_from_paths(ctx: Context, evidence: Evidence, found: Found) -> Answer:
    """Tell what the best paths reach as the question wants it, and quote the first of them."""
    plain = await ask_plainly(ctx, found.names)
    form = read_form(plain.question, found.names)
    verdict = await compare_things(plain, found)
    if not verdict and form.wants == "check":
        verdict = await check_claim(plain, form, found)
    return await _tell(ctx, evidence, found, form, verdict)


async def answer_unnamed(ctx: Context, evidence: Evidence) -> Answer | None:
    """Tell all things of a kind, or which has most or least, where a question names nothing."""
    found = Found()
    if ctx.given_entities:
        return None
    verdict = await compare_things(ctx, found) or await list_kind(ctx)
    if not verdict:
        return None
    return await _tell(ctx, evidence, found, read_form(ctx.question, ()), verdict)


async def _tell(
    ctx: Context, evidence: Evidence, found: Found, form: AskedForm, verdict: Verdict
) -> Answer:
    """Tell what a verdict says, or the ends of the best paths, with the facts that say so."""
    plain = await ask_plainly(ctx, found.names)
    found = verdict.put_first(found) if verdict else found
    ends, more = await _find_ends(ctx, found, verdict)
    labels = await fetch_entity_labels(ctx, ends)
    names = [labels[end].name for end in ends]
    short = verdict.short or _count(ctx, form, found, names, more)
    paths = [_first_path_to(found.paths, end) for end in ends[:_MAX_CITED_PATHS]]
    led = [path for path in paths if path is not None]
    citations, marks = await _cite_paths(ctx, [*led, *verdict.beside])
    text = ", ".join(
        f"{name} {''.join(f'[{n}]' for n in marks.get(end, ()))}".strip()
        for name, end in zip(names, ends, strict=True)
    )
    text += f" and {more} more" if more else ""
    text += "".join(f"[{n}]" for path in verdict.beside for n in marks.get(path.entities[-1], ()))
    if short:
        text = f"{short}: {text}" if form.wants == "count" else f"{short}\n{text}"
    same = await find_namesakes(ctx, found)
    differ = same is not None and same.differ and form.wants != "check"
    if same is not None and differ:
        text = same.tell_all(count=form.wants == "count" and bool(short))
    said = "; ".join(filter(None, (_PATH_NOTE, same.describe() if same else "")))
    note = explain_not_written(ctx, said)
    answer = make_answer(ctx, evidence, text, citations, short or names[0], note)
    hints = {**answer.hints, **await measure_fit(ctx, found), **verdict.hints}
    if (
        differ
        or not short
        and (
            wants_check(plain.question)
            or _asks_further(plain.question, found)
            or await _leads_on(plain, found)
        )
    ):
        hints[UNCLEAR] = 1.0
    whole = not more or form.wants != "things"
    complete = answer.complete and whole
    return replace(answer, kind="path", hints=hints, complete=complete, computed=verdict.compared)


async def _find_ends(ctx: Context, found: Found, verdict: Verdict) -> tuple[list[int], int]:
    """Return the ends to tell, and how many there are beside them."""
    if verdict:
        ends = [path.entities[-1] for path in verdict.paths]
        return ends[:_MAX_TOLD], max(0, len(ends) - _MAX_TOLD)
    asked = [path for path in found.paths if path.by == ASKED_MARK]
    if not asked:
        found = await prefer_fitting_ends(ctx, found)
    return _list_all(ctx, found, [hit.at for hit in _find_likely(ctx, found, asked)])


def _find_likely(ctx: Context, found: Found, asked: Sequence[Path]) -> list[Hit]:
    """Return the answers to tell: the ends of what is asked, else of the first path.

    Without the query scorer only those of them with like scores: other paths may deny some.
    """
    ranked = [hit for hit in found.entities if hit.by == ANSWER_MARK]
    if asked:
        ends = {path.entities[-1] for path in asked}
        return [hit for hit in ranked if hit.at in ends]
    least, ends = _MIN_RELATIVE_SCORE * ranked[0].score, {ranked[0].at, *list_ends(ctx, found)}
    return [hit for hit in ranked if hit.score >= least and hit.at in ends][:_MAX_ANSWERS]


def _asks_further(question: str, found: Found) -> bool:
    """Whether a question has more clauses that ask ("what eats what eats X") than steps lead on."""
    asking = asking_words(question_language(question))
    steps = len(found.paths[0].facts) if found.paths else 1
    return sum(word.casefold() in asking for word in split_words(question)) > max(steps, 1)


async def _leads_on(ctx: Context, found: Found) -> bool:
    """Whether another relation of the end says a word of the question that the path does not.

    "Which tissue expresses the target of …" is not answered by the target.
    """
    if not found.paths or not found.paths[0].facts:
        return False
    first, relations, texts = found.paths[0], ctx.view.relations, await load_short_texts(ctx)

    def say(facts: Iterable[int]) -> str:
        return " ".join({texts[relations[one]] for one in facts if relations[one] >= 0})

    gone = say(first.facts)
    ahead = ctx.view.links("entity_fact").row(first.entities[-1])[:_MAX_AHEAD].tolist()
    named = {word for name in found.names for word in split_words(str(name))}
    named.update(find_asked_phrase(ctx.question).words)  # "which ship" says what the end is
    asked = [word for word in asked_words(ctx.question) if word not in named]
    further = say(ahead)
    return any(says_form(one, further) and not says_form(one, gone) for one in asked)


def _list_all(ctx: Context, found: Found, told: list[int]) -> tuple[list[int], int]:
    """Return the ends to tell, and how many there are beside them.

    Where as many were found as are searched for, there may be others: all that the relation path
    leads to are told, up to a bound.
    """
    if not found.paths:
        return told, 0
    first = found.paths[0]
    if len(told) < (MAX_ASKED_ENDS if first.by == ASKED_MARK else _MAX_ANSWERS):
        return told, 0
    if first.meant:
        return told, max(0, first.meant - len(told))
    every = list(dict.fromkeys([*told, *list_ends(ctx, found)]))
    return every[:_MAX_TOLD], max(0, len(every) - _MAX_TOLD)


def _count(ctx: Context, form: AskedForm, found: Found, names: Sequence[str], more: int) -> str:
    """Return the number of ends where it is asked for, "" where names are."""
    if form.wants != "count" or len(names) == 1 and _is_number(names[0]):
        return ""
    told = bool(found.paths) and found.paths[0].by == ASKED_MARK
    return str(len(names) + more if told else len(list_ends(ctx, found)))


def _is_number(name: str) -> bool:
    return name.replace(",", "").replace(".", "").isdigit()


def _first_path_to(paths: Sequence[Path], end: int) -> Path | None:
    return next((path for path in paths if path.entities[-1] == end), None)


async def _cite_paths(
    ctx: Context, paths: Sequence[Path]
) -> tuple[tuple[Citation, ...], dict[int, list[int]]]:
    """Return the citations of the paths' facts, and which of them support each end."""
    keys = ctx.view.keys("fact")
    facts = list(dict.fromkeys(fact for path in paths for fact in path.facts))
    supports = await ctx.snapshot.supports("fact", [int(keys[fact]) for fact in facts])
    chunk_keys, where = ctx.view.keys("chunk"), ctx.view.links("fact_chunk")
    wanted = {int(chunk_keys[at]) for fact in facts for at in where.row(fact)[:1].tolist()}
    chunks = {chunk.id: chunk for chunk in (await ctx.snapshot.chunks(sorted(wanted))).values()}
    names = await ctx.snapshot.names([chunk.document for chunk in chunks.values()])
    citations: list[Citation] = []
    number: dict[int, int] = {}
    for fact in facts:
        places = supports.get(int(keys[fact]), ())
        place = next((one for one in places if one.chunk in chunks), None)
        if place is None:
            continue
        chunk = chunks[place.chunk]
        quote = chunk.text[place.start - chunk.start : place.end - chunk.start]
        doc = (names.get(chunk.document) or (chunk.document,))[0]
        citations.append(Citation(doc, chunk.id, place.start, place.end, quote))
        number[fact] = len(citations)
    marks = {path.entities[-1]: [number[f] for f in path.facts if f in number] for path in paths}
    return tuple(citations), marks
