"""Cut a quote to the entry of a list of terms, options or codes that a question names."""

from collections.abc import Sequence
from dataclasses import replace

from clew.agents.answering.exact_terms import find_exact_terms
from clew.agents.citing.support import SupportSpan, make_citation
from clew.agents.core.types import Answer
from clew.agents.reading.lists import wants_several
from clew.agents.rules.question_analysis import find_wanted_block
from clew.text.definitions import holds_term
from clew.text.structure import Block, find_blocks, find_item_term
from clew.types import Citation

_LEAST_ENTRIES = 2  # from which a text is a list of them


def cut_to_entries(question: str, answer: Answer) -> Answer:
    """Return the answer with each quote of several entries cut to the one that a question names.

    An entry of a list of terms, options or codes says nothing about the others. Where a list is
    asked for, only a code leads to an entry: "Which values can max_size have?"
    """
    several = wants_several(question) or find_wanted_block(question) not in ("definition", "")
    if several and not find_exact_terms(question):
        return answer
    homes = {passage.id: passage for passage in answer.evidence.chunks}
    text, found = answer.answer, list[Citation]()
    for cited in answer.citations:
        home = homes.get(cited.chunk)
        span = _find_named_entry(question, cited.quote)
        if home and span and answer.candidate in cited.quote[slice(*span)]:
            begin = cited.start - home.start
            entry = make_citation(home, SupportSpan(begin + span[0], begin + span[1], 1.0))
            text = text.replace(f"“{cited.quote}”", f"“{entry.quote}”", 1)
            cited = entry
        found.append(cited)
    return replace(answer, answer=text, citations=tuple(found))


def _find_named_entry(question: str, text: str) -> tuple[int, int] | None:
    """Return where the only entry of a text stands that a question names; None where it is all.

    A term in plain words is only taken for named where its meaning is asked for.
    """
    entries = _find_entries(text)
    if len(entries) < _LEAST_ENTRIES:
        return None
    exact = find_exact_terms(question)
    defines = find_wanted_block(question) == "definition"
    named = [
        block
        for block, names in entries
        if any(_is_named(name, question, exact, plain=defines) for name in names)
    ]
    if len(named) != 1:
        return None
    [entry] = named
    left_out = text[: entry.start].strip() or text[entry.end :].strip()
    return (entry.start, entry.end) if left_out else None


def _find_entries(text: str) -> list[tuple[Block, list[str]]]:
    """Return the outermost entries of a text with the names of each."""
    found: list[tuple[Block, list[str]]] = []
    for block in find_blocks(text):
        term = block.title if block.kind == "definition" else find_item_term(text, block)
        inside = bool(found) and block.end <= found[-1][0].end
        if term and not inside:
            found.append((block, _split_names(term)))
    return found


def _split_names(term: str) -> list[str]:
    """Return what an entry may be called by, without values: "-o, --output=FILE"."""
    parts = (part.split() for part in term.replace("`", "").split(","))
    return [words[0].split("=")[0] or words[0] for words in parts if words]


def _is_named(name: str, question: str, exact: Sequence[str], *, plain: bool) -> bool:
    return name in exact or (plain and len(name) > 1 and holds_term(name, question))
