"""Judge an answer: collect what speaks for it, and turn that into one confidence."""

import re
from collections.abc import Sequence
from dataclasses import replace

from clew.agents.answering.contrast import measure_contrast
from clew.agents.answering.exact_terms import find_exact_terms, misses_value
from clew.agents.answering.judged_answer import judge_cited
from clew.agents.answering.lacking import (
    asks_value,
    describe_lacking,
    find_telling,
    list_texts,
    name_home,
)
from clew.agents.answering.mismatch import LESS, MOST, is_less_sure, is_mismatched, is_of_other
from clew.agents.answering.other_subject import find_other_subject
from clew.agents.answering.told import find_home, find_untold, measure_told, read_sentence
from clew.agents.answering.units import weigh_words
from clew.agents.answering.unsaid import stops_short
from clew.agents.answering.word_signals import BY_WORDS, describe_quotes
from clew.agents.answering.write import LIST_BREAK
from clew.agents.citing.entailment import Quote, is_entailed
from clew.agents.citing.support import mentions_name, place_citations
from clew.agents.core.confidence import (
    DOUBTS,
    HOPELESS,
    JUDGED,
    OTHER_SUBJECT,
    LogisticModel,
    Signals,
    load_models,
    name_written,
    trace_confidence,
)
from clew.agents.core.evidence_page import passage_of
from clew.agents.core.messages import NOT_UNDERSTOOD, YES_NO
from clew.agents.core.types import Answer
from clew.agents.planning.check_values import bound_by_values
from clew.agents.reading.choose import (
    contradicts_kind,
    measure_coverage,
    measure_forms,
    measure_names,
    squash,
)
from clew.agents.reading.decide import DECIDED
from clew.agents.reading.lists import may_be_several, wants_several
from clew.agents.reading.measured import answers_other_measure
from clew.agents.reading.spans import Reading, asked_words, compare_readings, read_passages
from clew.agents.rules.chinese import find_subject, plan_chinese
from clew.agents.rules.operators import is_polar
from clew.agents.rules.question_analysis import find_subject_names, find_wanted_block, is_in_corpus
from clew.agents.rules.sections_about import cut_to_section, find_headings
from clew.agents.rules.table import drop_asking_words, table_for
from clew.context import Context
from clew.index.view import View
from clew.odds import to_log_odds
from clew.retrieve.paths.ranked import UNCLEAR
from clew.retrieve.question import NAME_BREAKS, OPENING_WORDS, strip_courtesy, tidy_question
from clew.text.language import is_chinese
from clew.text.options import spell_out_choice, split_options
from clew.text.unicode import split_words
from clew.text.word_forms import (
    asked_terms,
    find_written_names,
    is_read_language,
    strip_bound_words,
)
from clew.types import Evidence, Passage

WRITTEN = ("written", "seconded", "contested", "doubted")
"""What depends on the chat model: what it wrote, alone or with a second opinion, or is against."""
_LITERAL = 0.5  # score of a sentence that has every word of a question, to tell it of its subject
_READ = 3  # passages in which the question is read again, beside those that are cited
_MIN_PROBABILITY = 1e-4
_YEAR = re.compile(r"(?<![\w-])\d{4}(?![\w-])")
_MOST_UNCLEAR = 0.45  # confidence of a path that may be another one, and of what asks nothing
_ALTERNATIVE = re.compile(r"\bor\b|还是|或者?", re.IGNORECASE)
_MOST_KEYWORDS, _KNOWN_KEYWORDS = 6, 0.3  # words, and the share of them that some passage has
_FEW_WORDS = 2  # a question of so few words is a name


async def judge_answer(ctx: Context, answer: Answer) -> Answer:
    """Return the answer with its confidence, which the trace explains; a refusal has none."""
    return trace_confidence(ctx, await _judge(ctx, answer))


async def _judge(ctx: Context, answer: Answer) -> Answer:
    if answer.verdict == "refused":
        return replace(answer, confidence=0.0)
    if answer.kind in ("account", "steps"):
        return answer  # how near its quotes are to the question was measured
    models, chat = await load_models(ctx.key_values), ctx.chat("answer")
    hints, asked = dict(answer.hints), tidy_question(split_options(ctx.question)[0])
    if not _may_judge(ctx, asked, answer):
        hints.pop(JUDGED, None)
    signals: Signals = {**hints, **await describe_answer(ctx, answer)}
    kind = judged_kind(replace(answer, signals=signals), by_model=chat is not None)
    own = models.get(name_written(kind, chat.name)) if chat is not None else None
    confidence = _estimate(own or models[kind], signals)
    if kind == "words" and answer.kind != "words" and answer.candidate:  # a pattern found it
        confidence = max(confidence, _estimate(models["answer"], signals))
    if chat is None and kind != f"{JUDGED} answer":
        signals, confidence = await _check(ctx, answer, signals, confidence)
    elif chat is None and answer.candidate and await is_of_other(ctx, answer):
        signals, confidence = {**signals, "mismatch": 1.0}, min(confidence, MOST)
    if chat is None and answers_other_measure(asked, answer):
        signals, confidence = {**signals, "other measure": 1.0}, min(confidence, MOST)
    if chat is None and confidence > _MOST_UNCLEAR and await stops_short(ctx, answer):
        signals, confidence = {**signals, "short": 1.0}, _MOST_UNCLEAR
    confidence = min(confidence, bound_by_values(hints))
    if chat is None and not signals["understood"]:
        confidence = min(confidence, _MOST_UNCLEAR)
    return replace(answer, confidence=round(confidence, 4), signals=signals)


def _estimate(model: LogisticModel, signals: Signals) -> float:
    """Return the confidence; what may be said of something else is unsure, yet still named."""
    plain = {**signals, **dict.fromkeys(DOUBTS, 0.0)}
    return max(model(signals), min(model(plain), HOPELESS))


async def _check(
    ctx: Context, answer: Answer, signals: Signals, confidence: float
) -> tuple[Signals, float]:
    """Lower the confidence of what is about something else, where no scorer judges that."""
    literal = signals.get("literal", 0.0) >= _LITERAL
    # "Thanks in advance" restricts nothing that is asked.
    plain = strip_courtesy(ctx.question)
    asked = ctx if plain == ctx.question else ctx.with_question(plain)
    if await is_mismatched(asked, answer, literal=literal):
        return {**signals, "mismatch": 1.0}, min(confidence, MOST)
    if await is_less_sure(asked, answer):
        return {**signals, "unsaid": 1.0}, confidence * LESS
    if UNCLEAR in answer.hints:
        return signals, min(confidence, _MOST_UNCLEAR)
    return signals, confidence


def judged_kind(answer: Answer, *, by_model: bool) -> str:
    """Return which model of confidence judges an answer: written, short, computed, or quotes.

    A written one is seconded where the reader was asked as well, or code computed it from values;
    a span is contested where a model wrote something else, doubted where it found nothing.
    """
    if answer.kind == "path":  # of sentences there are no relations to compare with the question
        related = "relation path" if "chance" in answer.hints else "path"
        return "asked path" if "asked" in answer.hints else related
    by_words = BY_WORDS in answer.signals and not (by_model or answer.computed)
    if answer.kind in ("words", "steps") or by_words:
        return answer.kind if answer.kind == "steps" else "words"
    by_scorer = f"{JUDGED} " if JUDGED in answer.signals else ""
    if answer.kind == "span" and answer.candidate:
        if "unfound" in answer.hints:
            return "doubted"
        return "contested" if "contested" in answer.hints else f"{by_scorer}answer"
    if by_model:
        heard = ("agreed", "against", "unread")
        seconded = answer.computed or not answer.hints.keys().isdisjoint(heard)
        return "seconded" if seconded else "written"
    if answer.computed:
        if DECIDED in answer.hints:
            return "decided"
        return "confirmed" if "close" in answer.hints else "computed"
    return f"{by_scorer}answer" if answer.candidate else f"{by_scorer}quote"


async def describe_answer(ctx: Context, answer: Answer) -> Signals:
    """Return what speaks for an answer, as numbers between -1 and 1."""
    asked = tidy_question(split_options(ctx.question)[0])
    passages = answer.evidence.chunks
    answer = replace(answer, citations=place_citations(answer.citations, passages))
    cited, names = _cited_passages(answer), _find_answered_names(ctx, asked, answer)
    quotes = " ".join(citation.quote for citation in answer.citations)
    titles = " ".join(passage.title for passage in cited)
    # Quotes stand under the headings that announce them; a short answer's sentence says it all.
    quoted = not answer.candidate and answer.kind != "words"
    wanted = drop_asking_words(asked) if quoted else asked
    said = f"{quotes} {titles}"
    if quoted:
        texts = [f"{name_home(one, passages)} {one.quote}" for one in answer.citations]
        said = find_telling(weigh_words(ctx.view, wanted), texts)
    signals = {
        "covered": measure_coverage(wanted, said),
        "named": measure_grounding(names, answer, cited)
        if is_read_language(asked) and not is_chinese(asked)
        else measure_forms(names, (*passages, *cited)),
        "open": float(asks_openly(asked)),
        "cited": float(bool(answer.citations)),
        "understood": float(_is_question(ctx, asked)),
        "cosine": await _nearest_cosine(ctx),
    }
    # What names nothing and shares no word with the quotes says nothing about them; whether "the
    # oldest" asks for a comparison was for the query scorer to tell.
    compared = answer.kind == "path" and answer.computed
    if answer.kind != "span" and not compared and not signals["covered"] and not names:
        signals["named"] = 0.0
    if answer.kind == "words":
        return {**signals, **describe_quotes(asked, names, answer), "own": -1.0}
    if not answer.candidate:
        lacking = await describe_lacking(ctx, asked, answer.citations, passages)
        judged = await _judge_one(ctx, asked, names, answer, (), cited)
        # Steps and tables are quoted under the heading that announces them.
        counted = is_chinese(asked) and not find_wanted_block(asked)
        by_words = describe_quotes(asked, names, answer) if counted else {}
        return {**signals, **by_words, **lacking, **judged, "own": -1.0}
    # No reader reads Chinese: what a pattern finds in one sentence is judged by its words.
    counted = is_chinese(asked) and not answer.computed and len(answer.citations) == 1
    by_words = describe_quotes(asked, names, answer) if counted else {}
    return {**signals, **by_words, **await _describe_candidate(ctx, answer, asked, names)}


async def _judge_one(
    ctx: Context,
    asked: str,
    names: Sequence[str],
    answer: Answer,
    chosen: Sequence[str],
    cited: Sequence[Passage],
) -> Signals:
    """Let the scorer judge where it can."""
    if not _may_judge(ctx, asked, answer):
        return {}
    judged = await judge_cited(ctx, asked, names, answer, chosen, cited)
    if not judged or not answer.candidate:
        return judged
    return {**judged, **await measure_contrast(ctx, asked, names, answer, chosen, cited)}


def _may_judge(ctx: Context, asked: str, answer: Answer) -> bool:
    """Whether the scorer can judge an answer: a span that is named, or what has one short answer.

    It has learnt what answers a few words, too: "price of the green bin".
    """
    written = ctx.chat("answer") is not None and not answer.kind
    if not answer.candidate or not (written or answer.kind == "span"):
        return asks_one_answer(asked)
    understood = is_understood(asked) or is_keywords(ctx.view, asked)
    return understood and not wants_several(asked)


async def _describe_candidate(
    ctx: Context, answer: Answer, asked: str, names: Sequence[str]
) -> Signals:
    """Return what speaks for the short answer that is named."""
    passages, cited = answer.evidence.chunks, _cited_passages(answer)
    # What code computed from values stands in no passage as such.
    seen = () if answer.computed else tuple(dict.fromkeys((*passages[:_READ], *cited)))
    readings = await read_passages(ctx, asked, seen)
    # Letters are judged by the options that they stand for.
    chosen = spell_out_choice(ctx.question, answer.candidate) or list_parts(asked, answer)
    agreeing, rival = compare_readings((answer.candidate, *chosen), readings)
    own = max(answer.support, agreeing.probability if agreeing else 0.0)
    polar = answer.candidate.casefold() in YES_NO
    # Which of two was first stands in no passage: a span beside it says nothing against it.
    compared = polar or is_offered(asked, answer.candidate)
    single = len(answer.citations) < 2 and not answer.computed and not polar
    # No span says "no": what code concludes from cited values follows from them.
    entailed = (answer.computed and polar) or all(
        _is_supported(one, answer, cited) for one in chosen
    )
    sentence = await read_sentence(ctx, asked, answer, cited, chosen)
    alone = squash(sentence.score) if sentence else -1.0
    untold = await find_untold(ctx, asked, names, answer)
    of_it = max(0.0, alone) * (1 - untold.strayed) ** 2
    return {
        **await _judge_one(ctx, asked, names, answer, chosen, cited),
        "told": measure_told(ctx, asked, answer),
        OTHER_SUBJECT: await find_other_subject(ctx, asked, names, answer, cited),
        "sentence": alone,
        "strayed": untold.strayed,
        "literal": max(0.0, alone) if untold.literal else 0.0,
        # Either is enough: it leads all others, or one sentence tells it of what is asked about.
        "settled": max(answer.hints.get("lead", 0.0), of_it),
        "elsewhere": measure_elsewhere(answer, (answer.candidate, *chosen), readings),
        "own": squash(to_log_odds(own, _MIN_PROBABILITY)),
        "direct": squash(agreeing.score) if agreeing else 0.0 if compared else -1.0,
        "rival": squash(rival.score) if rival and (polar or not compared) else -1.0,
        "entailed": float(entailed),
        "untold": float(single and untold.wholly),
        "unfit": float(not polar and all(_is_unfit(asked, one, answer) for one in chosen)),
        "computed": float(answer.computed),
        "polar": float(polar),
        "steps": min(1.0, (len(answer.citations) - 1) / 2),
    }


def measure_elsewhere(answer: Answer, chosen: Sequence[str], readings: Sequence[Reading]) -> float:
    """Return the best score of another answer in passages that are not cited, -1 to 1."""
    cited = {citation.chunk for citation in answer.citations}
    _, rival = compare_readings(chosen, [r for r in readings if r.passage.id not in cited])
    return squash(rival.score) if rival else -1.0


def list_parts(question: str, answer: Answer) -> list[str]:
    """Return what a short answer lists where several things are asked for; else it alone."""
    if answer.kind != "span" or not may_be_several(question):
        return [answer.candidate]
    return [part for part in LIST_BREAK.split(answer.candidate) if part]


def _is_unfit(question: str, short: str, answer: Answer) -> bool:
    """Whether a short answer is of another kind than is asked for, or the value of another term."""
    return contradicts_kind(question, short) or misses_value(question, list_texts(answer.citations))


def is_offered(question: str, short: str) -> bool:
    """Whether a question offers this answer as one of several: "… first, the Tarn or the Ure?"."""
    return mentions_name(short, question) and _ALTERNATIVE.search(question) is not None


def measure_grounding(names: Sequence[str], answer: Answer, cited: Sequence[Passage]) -> float:
    """Return the share of the names that the passages mention.

    None where a name has a section of its own and what is cited stands in others that are silent
    about it: on a page of many things the value of another one is soon found.
    """
    sections = [
        f"{home.title}\n{cut_to_section(home.text, c.start - home.start)}"
        for c in answer.citations
        if (home := find_home(c, cited)) is not None
    ]
    headings = [one for home in cited for one in find_headings(home.text)]
    apart = any(mentions_name(name, one) for name in names for one in headings)
    if apart and not any(mentions_name(name, text) for name in names for text in sections):
        return 0.0
    return measure_names(names, (*answer.evidence.chunks, *cited))


def _find_answered_names(ctx: Context, question: str, answer: Answer) -> list[str]:
    """Return the names that an answer should be about.

    For a path "the CEO of" is what is asked for: a relation may say it in other words.
    """
    names = find_asked_names(ctx, question)
    if answer.kind != "path":
        return names
    role = r"(?:\b(?:the|an?)|['’]s)\s+{}(?=\s+of\b|['’]s|\W*$)"
    return [
        name
        for name in names
        if not (name.isupper() and re.search(role.format(re.escape(name)), question))
        or is_in_corpus(ctx.view, name)
    ]


def find_asked_names(ctx: Context, question: str) -> list[str]:
    """Return the names and years that a question is about; in Chinese its subject or its pair."""
    years = _YEAR.findall(question)
    if not is_read_language(question):
        return find_written_names(question) + years
    if not is_chinese(question):
        names = find_subject_names(ctx.view, question)
        return names + [year for year in years if not any(year in name for name in names)]
    join = plan_chinese(question).join
    subjects = join.options if join else _name_subject(find_subject(question))
    return [name.strip("《》“”「」『』") for name in subjects if name]


def _name_subject(subject: str) -> list[str]:
    """Return the codes in what a Chinese question is about, else all of it but the last verb."""
    codes = [code for code in find_exact_terms(subject) if not code.isdigit()]
    return codes or [strip_bound_words(subject)]


def asks_openly(question: str) -> bool:
    """Whether quotes can answer a question: it orders, or asks for no date, person or place."""
    table = table_for(question)
    if find_wanted_block(question) and not (is_chinese(question) and find_subject(question)):
        return True
    return not table.find_answer_kind(question) and not table.question_words.search(question)


def asks_one_answer(question: str) -> bool:
    """Whether a question has one short answer, which the scorer can judge.

    Steps, a list, a description and what is no question are judged by their words alone; "What is
    the length of the fuse?" asks for no description, though it begins as if it did.
    """
    short = not asks_openly(question) or asks_value(question)
    return is_understood(question) and short and not wants_several(question)


def is_understood(question: str) -> bool:
    """Whether a question says something, and asks or orders in a language that has a table."""
    words = set(split_words(question))
    if not is_read_language(question):
        return bool(asked_terms(question))
    if not is_chinese(question) and not asked_words(question):
        return False
    if len(words) <= _FEW_WORDS or is_chinese(question):
        return True
    table = table_for(question)
    asks = table.question_words.search(question) or table.auxiliaries.search(question)
    return bool(asks) or bool(words & (OPENING_WORDS - NAME_BREAKS)) or "the" in words


def _is_question(ctx: Context, asked: str) -> bool:
    """Whether what is said asks something, or names it in a few words."""
    if is_bare_name(ctx.view, asked):
        return False
    understood = is_understood(asked) or is_understood(ctx.question)
    return understood or is_keywords(ctx.view, asked)


def is_bare_name(view: View, question: str) -> bool:
    """Whether a question word stands with nothing but a known name: "Who who Ada Moe?"."""
    table = table_for(question)
    if not table.question_words.search(question) or table.auxiliaries.search(question):
        return False
    rest = dict.fromkeys(asked_words(table.question_words.sub(" ", question)))
    return bool(rest) and len(view.find_by_name_or_alias(" ".join(rest))) > 0


def is_keywords(view: View, question: str) -> bool:
    """Whether a few words that the documents have name what is wanted: "label storage period"."""
    words = list(asked_words(question))
    if not 0 < len(words) <= _MOST_KEYWORDS:
        return False
    known = sum(bool(len(view.bm25.chunks_with_all([word]))) for word in words)
    return known >= _KNOWN_KEYWORDS * len(words)


def _cited_passages(answer: Answer) -> list[Passage]:
    """Return the passages that are cited, and the spans of facts that no passage found holds."""
    chunks = {citation.chunk for citation in answer.citations}
    found = {passage.id for passage in answer.evidence.chunks}
    stated = [span for span in list_stated(answer.evidence) if span.id not in found]
    return [one for one in (*answer.evidence.chunks, *stated) if one.id in chunks]


def list_stated(evidence: Evidence) -> list[Passage]:
    """Return the spans that state the facts of the evidence, alone and on its paths."""
    steps = (step for path in evidence.paths for step in path.steps)
    return [span for fact in (*evidence.facts, *steps) for span in passage_of(fact)]


async def _nearest_cosine(ctx: Context) -> float:
    """Return the similarity of the nearest passage to the question."""
    if ctx.embed is None or not ctx.view.count("chunk"):
        return 0.0
    _, cosines = ctx.nearest("chunk", await ctx.vector(), 1)
    return float(cosines.max(initial=0))


def _is_supported(short: str, answer: Answer, cited: Sequence[Passage]) -> bool:
    """Whether a cited sentence contains the answer."""
    quotes = [
        Quote(home, c.start - home.start, c.end - home.start)
        for c in answer.citations
        if (home := find_home(c, cited)) is not None
    ]
    return bool(quotes) and is_entailed(short, quotes)


def explain_unmentioned(ctx: Context, answer: Answer) -> str:
    """Say which names of a question no passage mentions, if they are at least half of them.

    Names that no document has are told from those that only what was found lacks.
    """
    names = _find_answered_names(ctx, split_options(ctx.question)[0], answer)
    shows_facts = {"facts", "paths"} & {*ctx.layout.kinds}
    read = (*answer.evidence.chunks, *(list_stated(answer.evidence) if shows_facts else ()))
    known_language = is_read_language(ctx.question)
    # A Chinese question glues what it says to the name: "消息写入哪里".
    glued = not known_language or is_chinese(ctx.question)
    measure = measure_forms if glued else measure_names
    missing = [name for name in names if measure([name], read) == 0]
    if not missing or 2 * len(missing) < len(names):
        return ""
    unknown = [name for name in missing if known_language and not is_in_corpus(ctx.view, name)]
    if unknown:
        return f"the documents do not mention {', '.join(unknown[:3])}"
    if answer.verdict == "refused":  # why it was refused says more
        return ""
    return f"the passages found do not mention {', '.join(missing[:3])}"


def explain_doubt(answer: Answer, threshold: float) -> str:
    """Say how unsure an answer below the threshold is, or that the question is not understood."""
    if answer.signals.get("understood") == 0:
        return NOT_UNDERSTOOD
    if answer.signals.get("undecided"):
        whether = is_polar(answer.question)
        return f"no passage says {'whether this is so' if whether else 'what is compared'}"
    what = f"“{answer.candidate}”" if answer.candidate else "the nearest passage"
    # Rounded to the same digits, 0.4981 would be "0.50, below 0.50".
    digits = next((n for n in (2, 3) if round(answer.confidence, n) < round(threshold, n)), 4)
    return f"{what} has a confidence of {answer.confidence:.{digits}f}, below {threshold:.2f}"


def explain_hopeless(answer: Answer) -> str:
    """Say why no answer is named at all."""
    unclear = answer.signals.get("understood") == 0
    return NOT_UNDERSTOOD if unclear else "the passages do not contain the answer"
