"""Which end of the paths found is of the kind that a question asks for."""

from collections.abc import Sequence
from dataclasses import replace

from clew.agents.answering.mismatch import is_of_other_kind
from clew.context import Context
from clew.retrieve.question import locate_names, parse_question, tidy_question
from clew.retrieve.rank import ANSWER_MARK
from clew.text.countries import find_countries
from clew.text.names import relation_segments, relation_to_words
from clew.text.unicode import split_words
from clew.types import Found, Hit, Path


async def prefer_fitting_ends(ctx: Context, found: Found) -> Found:
    """Answer with the next best ends where the first is of another kind than is asked for.

    For "when" a date; for "in which country" what is one step beyond the first end, if that step
    or its end is known as a country and the first is not.
    """
    ranked = [hit for hit in found.entities if hit.by == ANSWER_MARK]
    first = next((path for path in found.paths if path.entities[-1] == ranked[0].at), None)
    if first is None:
        return found
    keys = ctx.view.keys("entity")
    entities = await ctx.snapshot.entities([int(keys[hit.at]) for hit in ranked])
    names = {hit.at: entities[int(keys[hit.at])].name for hit in ranked}
    if is_of_other_kind(ctx.question, names[ranked[0].at]):
        better = [at for at, name in names.items() if not is_of_other_kind(ctx.question, name)]
        return _answer_with(found, better[:1], 0.0)
    question = tidy_question(ctx.question)
    nouns = parse_question(question, locate_names(question, found.names)).nouns
    if not nouns or await _is_called(ctx, first, names[ranked[0].at], nouns):
        return found
    beyond = [path for path in found.paths if path.entities[:-1] == first.entities]
    better = [
        path.entities[-1]
        for path in beyond
        if path.entities[-1] in names
        and await _is_called(ctx, path, names[path.entities[-1]], nouns)
    ]
    return _answer_with(found, better, ranked[0].score)


async def _is_called(ctx: Context, path: Path, name: str, nouns: Sequence[str]) -> bool:
    """Whether the last relation of a path, or the type of its end, is one of the nouns."""
    key = int(ctx.view.keys("fact")[path.facts[-1]])
    relation = (await ctx.snapshot.facts([key]))[key].relation
    label = relation_to_words(relation_segments(relation)[-1]).lower() if relation else ""
    place = int(ctx.view.keys("entity")[path.entities[-1]])
    kind = (await ctx.snapshot.entities([place]))[place].type.casefold()
    called = {*label.split()[-1:], kind}
    if find_countries(split_words(name))[0]:
        called.add("country")
    return not called.isdisjoint(nouns)


def _answer_with(found: Found, ends: Sequence[int], score: float) -> Found:
    """Return what was found with these ends as the only answers; a score of 0 leaves theirs."""
    if not ends:
        return found
    paths = [path for path in found.paths if path.entities[-1] in ends]
    own = {hit.at: hit.score for hit in found.entities}
    answers = [Hit(at, max(own[at], score), ANSWER_MARK) for at in dict.fromkeys(ends)]
    rest = [hit for hit in found.entities if hit.by != ANSWER_MARK]
    raised = [replace(path, score=max(path.score, score)) for path in paths]
    return replace(
        found,
        paths=(*raised, *(path for path in found.paths if path.entities[-1] not in ends)),
        entities=(*answers, *rest),
    )
