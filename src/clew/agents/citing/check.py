"""Check every sentence a model writes against the passages; mark or drop unsupported ones."""

import re
from collections.abc import Sequence

from clew.agents.citing.entailment import (
    Quote,
    cut_quote,
    has_same_polarity,
    has_same_signs,
    parse_claim,
)
from clew.agents.citing.fact_roles import agrees_with_facts
from clew.agents.citing.support import (
    MIN_SHARE,
    SupportSpan,
    contains_answer,
    contains_same_names,
    find_about,
    find_best_citation,
    find_best_span,
    find_citations,
    find_names,
    has_invented_name,
    make_citation,
    mentions_name,
    select_passages,
    split_subjects,
)
from clew.agents.core.messages import (
    UNSUPPORTED_MARK,
    YES_NO,
    is_unknown,
    localise,
    strip_marks,
)
from clew.agents.core.types import Mode
from clew.context import Context
from clew.text.names import name_key
from clew.text.options import spell_out_choice, split_options
from clew.text.sentences import sentence_spans
from clew.types import Citation, Passage, Statement

_MIN_PARAPHRASE_COSINE = 0.7  # cosine of two sentences (MiniLM)
_YES_NO = (*YES_NO, "不是")
_MAX_QUESTION_CITATIONS = 2  # a yes or no about two things rests on a passage of each
_ANSWER_FRAME = re.compile(
    r"(?:(?:so|thus|hence|therefore),?\s+)?(?:the\s+)?(?:(?:final|short|correct|right)\s+)?"
    r"answer(?:\s+to\s+(?:the|this)\s+question)?\s*(?:\s+is|\s+was|:)\s*(\S.*?)[.。]?"
    r"|(?:(?:well|so),?\s+)?i(?:\s+would)?\s+(?:think|believe|guess|suppose|say|assume)\s+(?:that\s+)?"
    r"(?:it|this|that|the\s+answer)\s+(?:is|was|must\s+be)\s+(?P<held>\S.*?)[.。]?"
    r"|(?:所以|因此)?[，,]?(?:最终|正确)?答案(?:是|为|：|:)\s*(?P<zh>\S.*?)[.。]?",
    re.IGNORECASE | re.DOTALL,
)
# "In the passage, …" says where something stands, and claims nothing itself.
_SOURCE_FRAME = re.compile(
    r"(?:in|from|per|according to|based on|as (?:stated|said|mentioned|described) in)\s+"
    r"(?:the|this|these|that)\s+(?:(?:given|provided|above|first|second|third)\s+)?"
    r"(?:passage|text|document|context|evidence|article|source|excerpt)s?"
    r"(?:\s+(?:above|provided|given))?,\s+(?=\S)",
    re.IGNORECASE,
)
# What a model says to whom it speaks, in whole sentences: no claim at all.
_SMALL_TALK = re.compile(
    r"(?:(?:well|ok|okay|sure|certainly|of course|great question|good question)[,.!]?\s*)*"
    r"(?:(?:let me|let's|let us) (?:think|see|look|check)(?: about (?:this|that|it))?"
    r"|i hope (?:this|that|it) helps(?: you)?|(?:please )?let me know if .{0,80}"
    r"|here(?:'s| is) (?:the|my|your) answer|you(?:'re| are) welcome)?\s*[.!:…]*",
    re.IGNORECASE,
)
_WORD_CHAR = re.compile(r"\w")
# "It's a Wonderful Day" and "Her Majesty" are names.
_LEADING_PRONOUN = re.compile(r"(?:He|She|It|They|His|Her|Its|Their)\s+(?=[a-z])")


def mark_sentences(
    ctx: Context, cited: Sequence[tuple[str, Sequence[Citation]]], mode: Mode
) -> tuple[list[str], list[Citation]]:
    """Return sentences with citation marks; those without citations are marked, or dropped."""
    lines: list[str] = []
    citations: list[Citation] = []
    for text, found in cited:
        citations += [c for c in dict.fromkeys(found) if c not in citations]
        marks = "".join(f"[{citations.index(c) + 1}]" for c in found)
        if marks:
            lines.append(f"{text} {marks}")
        elif mode == "open":
            lines.append(f"{text} {localise(ctx.question, UNSUPPORTED_MARK)}")
    return lines, citations


async def cite_sentences(
    ctx: Context,
    written: Sequence[tuple[str, Sequence[int]]],
    passages: Sequence[Passage],
    facts: Sequence[Statement] = (),
) -> list[tuple[str, list[Citation]]]:
    """Return each sentence with the citations that support it: none where nothing does.

    A model may write several sentences as one: each is checked separately. `facts` are those that
    were found: a sentence that rests on triples of a graph must give their entities these roles.
    """
    cited: list[tuple[str, list[Citation]]] = []
    previous = ""
    for several, sources in written:
        for text in _split_sentences(several):
            found = await cite_claims(ctx, text, sources, passages, facts)
            cited.append((text, _filter_by_pronoun_subject(text, previous, found, passages)))
            previous = text
    return cited


def _split_sentences(text: str) -> list[str]:
    """Split a text into sentences, without those that have no word or only make talk."""
    pieces = [text[start:end] for start, end in sentence_spans(text)]
    pieces = [piece for piece in pieces if _WORD_CHAR.search(piece)]
    return [piece for piece in pieces if not _SMALL_TALK.fullmatch(piece)] or pieces


def _filter_by_pronoun_subject(
    text: str, before: str, found: Sequence[Citation], passages: Sequence[Passage]
) -> list[Citation]:
    """Filter the citations of a sentence that begins with a pronoun.

    "She was born in Ribe" is true of many: the passage must name somebody from the sentence before.
    """
    if not before or not _LEADING_PRONOUN.match(text):
        return list(found)
    names = parse_claim(before).names
    pages = {p.id: set(name_key(f"{p.title} {p.text}").split()) for p in passages}
    if not names:  # the one word that begins the sentence may be a name too
        first = frozenset(name_key(before).split()[:1])
        names = first if any(first & page_words for page_words in pages.values()) else names
    return [citation for citation in found if not names or names & pages.get(citation.chunk, set())]


def check_short_answer(
    ctx: Context, short: str, lines: Sequence[str], passages: Sequence[Passage], mode: Mode
) -> str:
    """Return the short answer; in reject mode only if the kept sentences contain it.

    In open mode it is what the model answers, supported or not: its sentences carry the marks.
    A yes or no needs no check, and a letter stands for its option.
    """
    bare = short.strip().rstrip(".。")
    if is_unknown(bare):
        return ""
    if mode == "open" or bare.casefold() in _YES_NO:
        return bare
    if has_invented_name(bare, _source_texts(ctx, passages)):
        return ""
    options = spell_out_choice(ctx.question, bare)
    if not options:
        return bare if contains_answer(bare, " ".join(lines)) else ""
    chosen = {one for line in lines for one in spell_out_choice(ctx.question, strip_marks(line))}
    kept = " ".join([*lines, *chosen])
    return bare if all(contains_answer(option, kept) for option in options) else ""


async def cite_claims(
    ctx: Context,
    text: str,
    sources: Sequence[int],
    passages: Sequence[Passage],
    facts: Sequence[Statement] = (),
) -> list[Citation]:
    """Cite everything that a sentence claims, or nothing."""
    claims = spell_out_claim(ctx.question, text)
    if claims == [asked_question(ctx.question)]:
        return _cite_question(ctx, sources, passages)
    cited = [await _cite_sentence(ctx, claim, sources, passages, facts) for claim in claims]
    return [citation for some in cited for citation in some] if all(cited) else []


def spell_out_claim(question: str, text: str) -> list[str]:
    """Return what a sentence claims: a letter each of its options, a bare yes what was asked.

    "The answer is Oslo" claims no more than "Oslo".
    """
    bare = find_framed(text) or text
    if frame := _SOURCE_FRAME.match(bare):
        bare = bare[frame.end()].upper() + bare[frame.end() + 1 :]
    if bare.strip(" .。!").casefold() in _YES_NO:
        return [asked_question(question)]
    return spell_out_choice(question, text) or [bare]


def find_framed(text: str) -> str:
    """Return what a sentence only says to be the answer: "I think it is Oslo"; "" of others."""
    named = _ANSWER_FRAME.fullmatch(text.strip())
    return (named[1] or named["held"] or named["zh"]) if named else ""


def asked_question(question: str) -> str:
    """Return a question without its options."""
    return split_options(question)[0]


def _cite_question(
    ctx: Context, sources: Sequence[int], passages: Sequence[Passage]
) -> list[Citation]:
    """Cite the passages, named or else any, that speak of what the question asks.

    A yes or no about several subjects rests on a passage about each of them, or on nothing.
    """
    named = select_passages(sources, passages)
    asked = asked_question(ctx.question)
    if subjects := split_subjects(asked):
        found = [
            find_about(rest, subject, named) or find_about(rest, subject, passages)
            for subject, rest in subjects
        ]
        cited = [citation for citation in found if citation is not None]
        return list(dict.fromkeys(cited)) if len(cited) == len(found) else []
    names = find_names(asked)
    about = [p for p in named or passages if _mentions_any(names, p)]
    spans = [(find_best_span(asked, passage), passage) for passage in about]
    best = sorted((pair for pair in spans if pair[0].share >= MIN_SHARE), key=lambda p: -p[0].share)
    return [make_citation(passage, span) for span, passage in best[:_MAX_QUESTION_CITATIONS]]


def _mentions_any(names: Sequence[str], passage: Passage) -> bool:
    text = f"{passage.title} {passage.text}"
    return not names or any(mentions_name(name, text) for name in names)


async def _cite_sentence(
    ctx: Context,
    text: str,
    sources: Sequence[int],
    passages: Sequence[Passage],
    facts: Sequence[Statement],
) -> list[Citation]:
    """Find citations of a sentence in the named passages, else in any; by words or by meaning."""
    if has_invented_name(text, _source_texts(ctx, passages)):
        return []
    found = find_citations(text, sources, passages)
    if found and agrees_with_facts(text, found, facts):
        return found
    best = find_best_citation(text, passages)
    if best is not None and agrees_with_facts(text, [best], facts):
        return [best]
    # A small model names one passage where it takes two.
    combined = find_citations(text, range(1, len(passages) + 1), passages)
    if combined and agrees_with_facts(text, combined, facts):
        return combined
    if ctx.embed is None:
        return []
    best = await find_paraphrase(ctx, text, select_passages(sources, passages))
    agrees = best is not None and agrees_with_facts(text, [best], facts, by_meaning=True)
    return [best] if best is not None and agrees else []


def _source_texts(ctx: Context, passages: Sequence[Passage]) -> list[str]:
    """Return all texts the model was given: any other name is invented."""
    return [ctx.question, *(f"{passage.title} {passage.text}" for passage in passages)]


async def find_paraphrase(ctx: Context, text: str, passages: Sequence[Passage]) -> Citation | None:
    """Find a paraphrase of the sentence by cosine; its names and numbers must match exactly."""
    spans = [(p, start, end) for p in passages[:2] for start, end in sentence_spans(p.text)][:16]
    if not spans:
        return None
    vectors = await ctx.vectors([text, *(p.text[start:end] for p, start, end in spans)])
    cosines = [float(vector @ vectors[0]) for vector in vectors[1:]]
    best = max(range(len(spans)), key=lambda at: cosines[at])
    passage, start, end = spans[best]
    quote = passage.text[start:end]
    of_it = bool(cut_quote(text, Quote(passage, start, end)))
    same = of_it and contains_same_names(text, passage, quote) and has_same_signs(text, quote)
    if cosines[best] < _MIN_PARAPHRASE_COSINE or not same or not has_same_polarity(text, quote):
        return None
    return make_citation(passage, SupportSpan(start, end, cosines[best]))
