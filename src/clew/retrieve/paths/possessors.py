"""Paths to whoever has something: "whose mother was born in X", "who has a mother born in X".

Such a question names the last relation of what it asks for by what this starts at. Where words of
relations tell which steps lead from a mother to whom she belongs, paths with other last steps are
put behind: those that end at her, and those that take no relation to her.
"""

from dataclasses import replace
from typing import Literal

import numpy as np

from clew.context import Context
from clew.retrieve.claim_sides import Sides, read_tail
from clew.retrieve.mutual import is_mutual
from clew.retrieve.paths.relation_paths import PathSearchContext, ScoredRelationPaths
from clew.retrieve.question import NAME_MARK, QUESTION_WORDS, QuestionShape
from clew.retrieve.relation_vectors import find_converse, is_same_end, load_short_texts
from clew.retrieve.verb_sides import share_start

Side = Literal["head", "tail", "either", ""]
_WHO = frozenset("who which what whose".split())
_ELSE = frozenset("when where why how".split())
_HAVE = frozenset("has have had".split())
_ARTICLES = frozenset("a an the".split())
_OTHER_CHANCE = 0.1  # that a path is asked for which ends elsewhere


def find_possessed(shape: QuestionShape) -> str:
    """Return the noun for what somebody has who is asked for; "" where nobody is.

    Before it stands no more than what that one is: "which horse has a sire".
    """
    keys, name = shape.keys, shape.name_position
    if keys.count(NAME_MARK) != 1 or _WHO.isdisjoint(keys[:name]):
        return ""
    after = [at + 1 for at, key in enumerate(keys[:name]) if key == "whose" or key in _HAVE]
    before = [key for key in keys[: after[0] - 1] if key not in QUESTION_WORDS] if after else []
    if len(before) > 1 or not _ELSE.isdisjoint(keys[:name]):  # "the genres of films whose writer"
        return ""
    if keys[name + 1 : name + 2] == ("as",):  # "who has X as a mother"
        after = [name + 2] if after else []
    for at in after:
        noun = at + (keys[at : at + 1] != () and keys[at] in _ARTICLES)
        if noun < len(keys) and keys[noun] != NAME_MARK and keys[noun] not in QUESTION_WORDS:
            return keys[noun]
    return ""


async def find_side(ctx: Context, noun: str, label: str) -> Side:
    """Return at which end of a relation is what a noun names; "" where its words do not tell."""
    tail = read_tail(label, Sides((noun,), "noun"))
    turned = bool(find_converse([noun], label))
    same = any(is_same_end(noun, word) or share_start(noun, word) for word in tail.words)
    if tail.is_verb or not (turned or same):
        return ""
    if not turned and await is_mutual(ctx, label):
        return "either"
    return "tail" if (tail.role == "noun") != turned else "head"


async def find_possessing(
    ctx: Context, search: PathSearchContext, found: ScoredRelationPaths
) -> frozenset[int]:
    """Return the last steps of paths that lead from what a question names to whoever has it."""
    noun = find_possessed(search.shape)
    if not noun:
        return frozenset()
    texts = await load_short_texts(ctx)
    last = {int(found.step_codes(row)[-1]) for row in range(len(found.codes))}
    codes = [code for code in last if code >> 1 < len(texts)]
    sides = {code: await find_side(ctx, noun, texts[code >> 1]) for code in codes}
    return frozenset(
        code for code in codes if sides[code] in ("either", "tail" if code % 2 else "head")
    )


def put_possessors_first(found: ScoredRelationPaths, steps: frozenset[int]) -> ScoredRelationPaths:
    """Put the paths that end with other steps behind those that end with one of these, if any."""
    if not steps or not len(found.codes):
        return found
    last = [int(found.step_codes(row)[-1]) for row in range(len(found.codes))]
    fit = np.isin(last, sorted(steps)) & np.isfinite(found.scores)
    if found.chances is not None:
        fit &= found.chances >= 0
    if not fit.any() or fit.all():
        return found
    scores = found.scores.copy()
    scores[~fit] -= max(0.0, float(scores[~fit].max() - scores[fit].max()) + 1.0)
    chances = found.chances
    if chances is not None:
        chances = np.where(fit, chances, np.minimum(chances, _OTHER_CHANCE)).astype(np.float32)
    return replace(found, scores=scores, chances=chances)
