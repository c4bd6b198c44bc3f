"""Tell which terms of a list deny another one: `nocopy` beside `copy`, `--no-pager` and `--pager`.

Both say the same words, the one that they be done, the other that they be not. Which of two such
terms a question means is told by whether it denies something itself.
"""

from collections.abc import Collection, Sequence
from functools import lru_cache

from clew.agents.citing.entailment import is_negated
from clew.text.structure import Block, find_blocks
from clew.text.unicode import split_words
from clew.text.word_forms import question_language, word_class
from clew.types import Passage

_OPENING = 3  # words of a definition that may deny what it tells
_PREFIX = 5  # letters before a term that make its opposite


def asks_denied(question: str) -> bool:
    """Whether a question asks for what is not done, or prevented."""
    denying = word_class(question_language(question), "denying")
    return is_negated(question) or any(
        word.startswith(denying) for word in split_words(question.lower())
    )


def denies_other(title: str, text: str, terms: Collection[str]) -> bool:
    """Whether a definition denies what another of the terms does: "no" and its name, "do not …"."""
    body = text.partition("\n")[2].lstrip(" \t:")
    if not is_negated(" ".join(body.split()[:_OPENING])):
        return False
    bare = {name_term(term) for term in terms}
    for own in map(name_term, title.split(",")):
        cuts = (own[at:].lstrip("-_") for at in range(1, min(len(own), _PREFIX)))
        if any(cut in bare for cut in cuts):
            return True
    return False


def name_term(term: str) -> str:
    """Return a term without its signs and its value: "no-pager" of "--no-pager=WHEN"."""
    first = term.replace("`", " ").split()[:1]
    return first[0].split("=")[0].lstrip("-") if first else ""


def is_denied(question: str, passage: Passage, at: int, passages: Sequence[Passage]) -> bool:
    """Whether what is read at a place denies another term, though the question denies nothing.

    The other term is defined in one of the passages.
    """
    own = [block for block in _list_defined(passage.text) if block.holds(at)]
    if not own or asks_denied(question):
        return False
    terms = {
        term
        for one in (passage, *passages)
        for b in _list_defined(one.text)
        for term in b.title.split(",")
    }
    return denies_other(own[-1].title, passage.text[own[-1].start : own[-1].end], terms)


@lru_cache(maxsize=64)
def _list_defined(text: str) -> list[Block]:
    """Return the definitions of a passage, of which a question has many rivals."""
    return [block for block in find_blocks(text) if block.kind == "definition"]
