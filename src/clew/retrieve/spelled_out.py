"""Says in full what a question says in short and a graph in several relations.

Who has "a mother born in X" has one that was born there, and whose "parents include X" has X as a
parent.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from clew.context import Context
from clew.retrieve.courtesy import tidy_around_names
from clew.retrieve.question import locate_names
from clew.text.irregular_verbs import BASE_OF_FORM
from clew.text.word_forms import question_language, word_class

_HAS = re.compile(
    r"\b(?:has|have|had)\s+(?:an?|the)\s+[\w-]+(?=\s+(?P<verb>[\w-]+))", re.IGNORECASE
)
_WHOSE = re.compile(
    rf"\s*whose\s+(?P<noun>[\w-]+)\s+(?:includes?|included|{'|'.join(word_class('en', 'be'))})\s+",
    re.IGNORECASE,
)
_PARTICIPLE = "ed"


async def ask_plainly(ctx: Context, names: Sequence[str]) -> Context:
    """Return the context with a question without courtesy that says in full what it asks."""
    ctx = await tidy_around_names(ctx, names)
    if question_language(ctx.question) != "en":
        return ctx
    full = _HAS.sub(_relate, ctx.question)
    full = _name_last(full, names)
    kept = len(locate_names(full, names)) == len(locate_names(ctx.question, names))
    return replace(ctx, question=full) if kept else ctx


def _relate(found: re.Match[str]) -> str:
    """Say "has a mother born" as "has a mother that was born"."""
    verb = found["verb"].casefold()
    past = verb.endswith(_PARTICIPLE) or verb in BASE_OF_FORM or verb == "born"
    return f"{found[0]} that was" if past else found[0]


def _name_last(question: str, names: Sequence[str]) -> str:
    """Say "whose parents include X" as "who has X as parents", where nothing else is said of X."""
    found = _WHOSE.match(question)
    if found is None:
        return question
    rest = question[found.end() :].strip(" ?.!")
    bare = re.sub(r"\Athe\s+", "", rest, flags=re.IGNORECASE).casefold()
    if bare not in {name.casefold() for name in names}:
        return question
    return f"who has {rest} as {found['noun']}?"
