"""Which side of its verb a question asks for, and which side of a relation a step ends at.

"What eats X" asks for a subject, "what does X eat" and "what is eaten by X" for an object. The tail
of "eats" is an object, that of "eaten by" and of "employer" a subject.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from clew.context import Context
from clew.retrieve.labels import embed_cached
from clew.retrieve.mutual import is_mutual
from clew.retrieve.order_sides import compare_order
from clew.retrieve.question import NAME_MARK, QUESTION_WORDS, QuestionShape
from clew.retrieve.relation_vectors import find_converse, is_end_noun
from clew.text.word_forms import word_class

Side = Literal["subject", "object", ""]
_ASKING, _DO, _BE, _MODAL, _AGENTS = (
    word_class("en", name) for name in ("asking_for_things", "do", "be", "modal", "agent_endings")
)
_HELPING = frozenset((*_DO, *_BE, *_MODAL))
_MIN_SHARED = 3  # least letters that two forms of a verb share
_ENDING = 2  # letters at the end of the shorter form that may differ
_SAME_VERB = 0.6  # least cosine of two forms of an irregular verb ("wrote", "writes")
_MAX_BEFORE_VERB = 3  # content words of "which wild animals eat X"


def asked_side(shape: QuestionShape) -> tuple[str, Side]:
    """Return the one verb of a question about one name, and which side of it is asked for."""
    asks = next((at for at, key in enumerate(shape.keys) if key in _ASKING), -1)
    name = shape.name_position
    if not 0 <= asks < name or shape.chain or shape.keys.count(NAME_MARK) > 1:
        return "", ""
    content = set(shape.positions)
    before = [at for at in range(asks + 1, name) if at in content]
    after = [at for at in range(name + 1, len(shape.keys)) if at in content]
    helping = [at for at in range(asks + 1, name) if shape.keys[at] in _HELPING]
    if not helping and before and not after:
        noun = shape.keys[asks] in ("which", "what")
        if len(before) <= (_MAX_BEFORE_VERB if noun else 1) and shape.keys[asks] != "where":
            return shape.keys[before[-1]], "subject"
    by = "by" in shape.keys[name - 2 : name] or shape.keys[-1] == "by"
    if len(helping) != 1:
        return "", ""
    does, is_last = shape.keys[helping[0]], not any(at > helping[0] for at in before)
    if does in _DO and is_last and len(after) == 1:
        return shape.keys[after[0]], "object"
    if does in _BE and is_last and len(after) == 1 and by:
        return shape.keys[after[0]], "subject"
    if does in _BE and before and before[-1] > helping[0] and not after and by:
        return shape.keys[before[-1]], "object"
    return "", ""


def name_subject(shape: QuestionShape, labels: Sequence[str]) -> QuestionShape:
    """Return a question with the noun for who acts, where a relation's name is for the other end.

    "Who works for X" asks for the workers of an "employer". A verb that some relation has means it.
    """
    verb, side = asked_side(shape)
    known = (word for label in labels for word in label.split())
    if side != "subject" or any(share_start(verb, word) for word in known):
        return shape
    stems = (verb, verb.removesuffix("s"), verb.removesuffix("es"), verb.removesuffix("e"))
    for noun in dict.fromkeys(f"{stem}er" for stem in stems):
        if any(find_converse([noun], label) for label in labels):
            said = tuple(noun if word == verb else word for word in shape.words)
            return replace(shape, words=said)
    return shape


def tail_side(label: str) -> tuple[str, Side]:
    """Return the verb of a relation's name, and which side of it the relation's tail is."""
    words = label.split()
    if words[-1:] == ["by"] and len(words) > 1:
        return words[-2], "subject"
    of = words[-1:] == ["of"]
    said = words[: len(words) - of]
    if not said or is_end_noun(said[-1]) and not said[-1].endswith(_AGENTS):
        return "", ""
    if len(said) == 1 and said[0].endswith(_AGENTS):
        return said[0], "object" if of else "subject"
    is_verb = all(word in QUESTION_WORDS for word in words[1:]) and not of
    return (words[0], "object") if is_verb and words[0] not in QUESTION_WORDS else ("", "")


async def contradicts_side(
    ctx: Context, shape: QuestionShape, label: str, code: int, *, both_ways: bool
) -> bool:
    """Whether a step ends at the other side of the verb than the question asks for.

    The question must have the relation's verb; where the entity has the relation both ways, any
    other verb is taken for one with the same sides, if the relation's name is plainly a verb.
    """
    verb, asked = asked_side(shape)
    named, tail = tail_side(label)
    if not asked or not tail:
        return False
    end = tail if code % 2 == 0 else ("object" if tail == "subject" else "subject")
    if end == asked:
        return False
    same = await _is_same_verb(ctx, verb, named)
    inflected = named.endswith(("s", "ed", *_AGENTS)) or label.endswith(" by")
    if same:
        return inflected or verb == named or not share_start(verb, named)
    return both_ways and (label.endswith(" by") or named.endswith("s"))


async def _is_same_verb(ctx: Context, one: str, other: str) -> bool:
    """Whether two words are forms of one verb, by their letters or, for irregular ones, meaning."""
    if share_start(one, other):
        return True
    if one[:1] != other[:1]:
        return False
    first, second = await embed_cached(ctx, [one, other])
    return float(first @ second) >= _SAME_VERB


def share_start(one: str, other: str) -> bool:
    """Whether two words begin alike, as forms of one verb do."""
    shared = next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
    return shared >= max(_MIN_SHARED, min(len(one), len(other)) - _ENDING)


async def find_contradicting(
    ctx: Context, shape: QuestionShape, texts: Sequence[str], codes: Sequence[int]
) -> set[int]:
    """Return those of an entity's steps that end at the side that is not asked for.

    A relation that holds both ways has no such side.
    """
    taken = {code for code in codes if 0 <= code >> 1 < len(texts)}
    order = {code: compare_order(shape, texts[code >> 1], code) for code in taken}
    return {
        code
        for code in taken
        if (
            order[code] < 0
            or not order[code]
            and await contradicts_side(
                ctx, shape, texts[code >> 1], code, both_ways=code ^ 1 in taken
            )
        )
        and not await is_mutual(ctx, texts[code >> 1])
    }
