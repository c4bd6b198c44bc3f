"""Vectors of relations, and of the kind of entity at the end of each step."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from clew.context import Context
from clew.graph.csr import Floats, Ints
from clew.graph.traverse import FactGraph, expand_entities
from clew.retrieve.labels import embed_cached, has_vectors, mean_direction, relation_names
from clew.retrieve.question import QUESTION_WORDS
from clew.text.names import head_type, relation_segments, relations_to_words

_SAMPLE_SIZE = 32  # sampled entities at the end of a step
_MAX_EMBEDDED_NAMES = 8  # names without a stored vector that are embedded for one step
_MIN_CLASS_SHARE = 0.5  # least share with outgoing relations for these to describe the kind
_MIN_STEM_CHARS = 4  # least letters that two words of one stem share
_MIN_STEM_SHARE = 0.5


CONVERSES = tuple(
    (frozenset(one.split()), frozenset(other.split()))
    for one, other in (
        (
            "child children son sons daughter daughters kid kids offspring",
            "parent parents father mother",
        ),
        ("grandchild grandchildren grandson granddaughter", "grandparents grandfather grandmother"),
        ("nephew nephews niece nieces", "uncle aunt"),
        ("descendant descendants", "ancestor ancestors"),
        ("successor successors", "predecessor predecessors"),
        ("student students pupil pupils", "teacher teachers tutor mentor advisor adviser"),
        ("employee employees staff worker workers", "employer employers"),
        ("subsidiary subsidiaries", "parent owner"),
        ("owner owners", "owns possessions"),
        ("resident residents inhabitant inhabitants", "residence"),
        ("citizen citizens", "citizenship nationality"),
        ("alumnus alumni graduate graduates", "education university college school"),
        ("author authors writer", "works books writings"),
        ("cause causes", "effect effects consequence consequences"),
    )
)
"""Nouns for the two ends of one relation: who asks for X's children may be told by "parents"."""
MUTUAL_NOUNS = frozenset(
    """
    spouse spouses husband wife married marries sibling siblings twin twins cousin cousins partner
    partners friend friends colleague colleagues classmate classmates neighbour neighbours neighbor
    neighbors borders bordering adjacent ally allies rival rivals contemporary relative relatives
    """.split()
)
"""Nouns and verbs for both ends of one relation: X's spouse is whoever has X for a spouse."""
# A bare word is ambiguous to an encoder; asked for, it is a property of something.
_FRAME = "what is the {}?"


@dataclass(frozen=True, slots=True)
class RelationVectors:
    """Vectors of relation labels: of the whole label, and of its content words."""

    whole: Floats
    content: Floats
    asked: Floats
    """The whole label as something that is asked for."""
    asked_content: Floats
    words: tuple[tuple[str, ...], ...]
    texts: tuple[str, ...]

    def compare(self, plain: Floats, asked: Floats) -> tuple[Floats, Floats]:
        """Return texts × labels: plain cosines, and their mean with the cosines as asked for."""
        bare = np.maximum(plain @ self.whole.T, plain @ self.content.T)
        return bare, (bare + np.maximum(asked @ self.asked.T, asked @ self.asked_content.T)) / 2

    def select(self, rows: Ints) -> "RelationVectors":
        """Return the labels at `rows`."""
        return RelationVectors(
            self.whole[rows],
            self.content[rows],
            self.asked[rows],
            self.asked_content[rows],
            tuple(self.words[at] for at in rows.tolist()),
            tuple(self.texts[at] for at in rows.tolist()),
        )


@dataclass(frozen=True, slots=True)
class EndVectors:
    """What is at the end of a step."""

    kind: Floats
    """Vector of its relation's label, or of its own relations where no label names it."""
    names: Floats
    """Mean vector of the entities' names; zeros when unknown."""
    from_relations: bool
    """Whether `kind` comes from its own relations: no label names the head of a relation."""


async def embed_asked(ctx: Context, texts: Sequence[str]) -> Floats:
    """Embed words and labels as something that is asked for."""
    return await embed_cached(ctx, [_FRAME.format(text) for text in texts])


async def load_short_texts(ctx: Context) -> list[str]:
    """Return every relation's last segment in words."""
    if "short labels" not in ctx.view.memo:
        last = [relation_segments(name)[-1] for name in await relation_names(ctx)]
        ctx.view.memo["short labels"] = relations_to_words(last)
    texts: list[str] = ctx.view.memo["short labels"]
    return texts


async def embed_relations(ctx: Context, labels: Ints) -> RelationVectors:
    """Embed the labels of some relations."""
    short = await load_short_texts(ctx)
    whole = [short[label] for label in labels.tolist()]
    content = [tuple(w for w in text.split() if w not in QUESTION_WORDS) for text in whole]
    content_texts = [" ".join(words) or text for words, text in zip(content, whole, strict=True)]
    texts = [*whole, *content_texts]
    plain, asked = await embed_cached(ctx, texts), await embed_asked(ctx, texts)
    words = tuple(one or tuple(text.split()) for one, text in zip(content, whole, strict=True))
    count = len(whole)
    return RelationVectors(
        plain[:count], plain[count:], asked[:count], asked[count:], words, tuple(whole)
    )


async def embed_step_ends(ctx: Context, ways: FactGraph, codes: Sequence[int]) -> list[EndVectors]:
    """Embed the end of each step from a few examples, once per generation."""
    cache: dict[int, EndVectors] = ctx.view.memo.setdefault("end meanings", {})
    for code in codes:
        if code not in cache:
            cache[code] = await _embed_step_end(ctx, ways, code)
    return [cache[code] for code in codes]


async def _embed_step_end(ctx: Context, ways: FactGraph, code: int) -> EndVectors:
    sample = sample_ends(ctx, ways, code)
    edges = expand_entities(
        FactGraph(ways.facts, ways.members, ways.labels, ways.relation_count), sample
    )
    forward = (edges.code % 2 == 0) & (edges.code >> 1 < ways.relation_count)
    pairs = np.unique(np.column_stack([edges.source[forward], edges.code[forward] >> 1]), axis=0)
    leading_share = len(np.unique(pairs[:, 0])) / max(1, len(sample))
    labels, count = np.unique(pairs[:, 1], return_counts=True)
    # Between things of one kind a relation is called by its tail: alone it does not tell its head.
    alone = labels.tolist() == [code >> 1] and bool((edges.code == code).any())
    classed = bool(code % 2) and leading_share >= _MIN_CLASS_SHARE and not alone
    named = head_type((await relation_names(ctx))[code >> 1]) if code % 2 else ""
    if named:
        [kind] = await embed_cached(ctx, [named])
    elif not classed:
        kind = (await embed_relations(ctx, np.array([code >> 1]))).content[0]
    else:
        meaning = await embed_relations(ctx, labels)
        weight = (count / count.sum()).astype(np.float32)
        kind = mean_direction(meaning.whole * weight[:, None])
    return EndVectors(kind, await _embed_names(ctx, sample, len(kind)), classed or bool(named))


def is_end_noun(word: str) -> bool:
    """Whether a word is known as a noun for an end of a relation: "parents", "spouse"."""
    known = any(word in one for pair in CONVERSES for one in pair)
    return word in MUTUAL_NOUNS or (known and word != "owns")  # the one verb among them


def find_converse(words: Sequence[str], label: str) -> str:
    """Return the word that names the other end of a relation than its label does, or ""."""
    said = set(label.split())
    for pair in CONVERSES:
        for asked, held in (pair, pair[::-1]):
            if held & said and (spoken := asked.intersection(words)):
                return next(word for word in words if word in spoken)
    return ""


def is_same_end(one: str, other: str) -> bool:
    """Whether two nouns are known for the same end of a relation: "mother" and "parent"."""
    return any(one in ends and other in ends for pair in CONVERSES for ends in pair)


async def name_converse_ends(
    ctx: Context, words: Sequence[str], ends: dict[int, EndVectors]
) -> dict[int, EndVectors]:
    """Give the ends that words of the question name by a label's converse the word's vector.

    The tail of "parents" is a parent, its head a child; of "parent of" it is the other way round;
    both of "spouse" are spouses. A word that some label says itself means that relation.
    """
    texts, found = await load_short_texts(ctx), dict(ends)
    said = {word for code in ends for word in texts[code >> 1].split()}
    words = [word for word in words if word not in said]
    for code, end in ends.items():
        label = texts[code >> 1]
        if code % 2 and not MUTUAL_NOUNS.isdisjoint(label.split()):
            found[code] = replace(ends.get(code ^ 1, end), from_relations=True)
        elif code % 2 != label.endswith(" of") and (word := find_converse(words, label)):
            [kind] = await embed_cached(ctx, [word])
            found[code] = EndVectors(kind, end.names, from_relations=True)
    return found


def sample_ends(ctx: Context, ways: FactGraph, code: int, most: int = _SAMPLE_SIZE) -> Ints:
    """Return some of the entities that a step ends at, those of facts spread over all of them."""
    order: Ints = ctx.view.memo.get("facts by label", np.zeros(0, np.int64))
    if not len(order):
        order = np.argsort(ways.labels, kind="stable").astype(np.int64)
        ctx.view.memo["facts by label"] = order
    first, last = np.searchsorted(ways.labels, [code >> 1, (code >> 1) + 1], sorter=order)
    facts = order[np.unique(np.linspace(first, last - 1, most).astype(np.int64))]
    at, edge = ways.members.edges_of(facts)
    role = 2 if code % 2 else 3
    at_end = ways.members.weights[edge] == role
    if not at_end.any():
        at_end = np.ones(len(edge), np.bool_)
    return np.unique(ways.members.columns[edge][at_end]).astype(np.int64)[: 2 * most]


async def _embed_names(ctx: Context, entities: Ints, dim: int) -> Floats:
    """Mean direction of entity names; embedded here where no vectors are stored."""
    view = ctx.view
    known = entities
    if has_vectors(view, "entity"):
        known = entities[view.arrays["entity_rows"][entities] >= 0]
        if len(known) * 2 >= len(entities):
            return mean_direction(view.vectors("entity", known))
    keys = view.keys("entity")[entities][:_MAX_EMBEDDED_NAMES].tolist()
    fetched = await ctx.snapshot.entities(keys)
    return mean_direction(await embed_cached(ctx, [fetched[key].name for key in keys])) + np.zeros(
        dim, np.float32
    )


def stem_share(word: str, parts: Sequence[str]) -> float:
    """Share of a label word's stem that occurs in `word`: "writ" of "written" in "screenwriter"."""
    best = 0.0
    for part in parts:
        for size in range(len(part), _MIN_STEM_CHARS - 1, -1):
            if part[:size] in word:
                best = max(best, size / len(part))
                break
    return best if best > _MIN_STEM_SHARE else 0.0
