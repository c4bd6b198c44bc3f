"""Which end of the paths found is of the kind that a question asks for."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from clew.agents.answering.mismatch import is_of_other_kind
from clew.context import Context
from clew.retrieve.question import locate_names, parse_question, tidy_question
from clew.retrieve.rank import ANSWER_MARK
from clew.text.countries import find_countries
from clew.text.names import relation_segments, relation_to_words
from clew.text.unicode import split_words
from clew.types import Entity, Found, Hit, Path


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
    ends = {hit.at: entities[int(keys[hit.at])] for hit in ranked}
    if is_of_other_kind(ctx.question, ends[ranked[0].at].name):
        better = [at for at, end in ends.items() if not is_of_other_kind(ctx.question, end.name)]
        return _answer_with(found, better[:1], 0.0)
    question = tidy_question(ctx.question)
    nouns = parse_question(question, locate_names(question, found.names)).nouns
    if not nouns:
        return found
    beyond = [
        path
        for path in found.paths
        if path.entities[:-1] == first.entities and path.entities[-1] in ends
    ]
    fitting = await _find_called(ctx, [first, *beyond], ends, nouns)
    better = [] if first in fitting else [path.entities[-1] for path in fitting]
    return _answer_with(found, better, ranked[0].score)


async def _find_called(
    ctx: Context, paths: Sequence[Path], ends: Mapping[int, Entity], nouns: Sequence[str]
) -> list[Path]:
    """Return the paths whose last relation, or the type of whose end, is one of the nouns."""
    keys = ctx.view.keys("fact")[[path.facts[-1] for path in paths]].tolist()
    relations = await ctx.snapshot.relations(keys)
    found = []
    for path, key in zip(paths, keys, strict=True):
        relation, end = relations[key], ends[path.entities[-1]]
        label = relation_to_words(relation_segments(relation)[-1]).lower() if relation else ""
        called = {*label.split()[-1:], end.type.casefold()}
        if find_countries(split_words(end.name))[0]:
            called.add("country")
        if not called.isdisjoint(nouns):
            found.append(path)
    return found


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
