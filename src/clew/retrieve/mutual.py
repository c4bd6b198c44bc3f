"""Whether a relation holds both ways: who is next to somebody has that one next to them.

Told by meaning, learnt from examples of relations that do and that do not. That a graph states some
facts both ways tells nothing: people may follow each other.
"""

import numpy as np

from clew.context import Context
from clew.graph.csr import Floats
from clew.retrieve.labels import embed_cached
from clew.retrieve.relation_vectors import CONVERSES, MUTUAL_NOUNS


def _list(text: str) -> list[str]:
    """Return the phrases between commas."""
    return [" ".join(phrase.split()) for phrase in text.split(",")]


_MUTUAL = (
    *sorted(MUTUAL_NOUNS),
    *_list("""
    adjacent to, next to, beside, near, close to, alongside, shares border with, connected to,
    connects, linked to, link, joined to, touches, adjoins, abuts, intersects, crosses, opposite,
    parallel to, in contact with, equivalent to, same as, similar to, related to, synonym, antonym,
    married to, engaged to, roommate, enemy, met, knows, differs from, conflicts with, competitor,
    sister city, overlaps, peer, shares office with, plays against, corresponds with, reacts with,
    interacts with, compatible with, communicates with, collaborator, coauthor, bound to,
    attached to, tied to, wired to, interchange, trades with
    """),
)
_AT_END = tuple(f" {example}" for example in _MUTUAL)
_DIRECTED = (
    *sorted({word for pair in CONVERSES for ends in pair for word in ends}),
    *_list("""
    follows, precedes, next, next one, next step, previous, before, after, leads to, leads, manager,
    reports to, belongs to, part of, contains, located in, hangs in, lives in, born in, based in,
    works for, supplies, depends on, requires, uses, produces, creator, wrote, directed by, founder,
    founded by, capital, capital of, country, flows into, upstream of, above, below, under,
    on top of, left of, larger than, older than, derived from, made of, treats, eats, hunts,
    teaches, member of, head of, acquired by, sent to, delivered to, given to, sold to, paid to,
    points to, refers to, cites, inherits from, calls, imports, influenced by, named after, type,
    instance of, moved to, travels to, departs from, exports to, feeds, powers, promoted to,
    assigned to, opens onto, faces, sends, pipes to, transfers to, guards, visits, admires, loves,
    likes, hates, defeated, beat, distributed by, signed by, stored in, genre, year, date, price
    """),
)
_RIDGE = 0.01  # how far the weights are kept small
_LEAST_TOLD = 0.7  # share of the examples that the others tell
_LEAST = 0.2  # value of a relation that holds both ways; examples have about 1 and -1


async def is_mutual(ctx: Context, text: str) -> bool:
    """Whether a relation that is called so holds both ways.

    A noun for both ends tells that, and so does a phrase at its end ("sits next to"), else meaning.
    """
    said = f" {text.strip()}"
    if not MUTUAL_NOUNS.isdisjoint(said.split()) or said.endswith(_AT_END):
        return True
    if not text.strip():
        return False
    known: dict[str, bool] = ctx.view.memo.setdefault("mutual relations", {})
    if said not in known:
        weights = await _learn(ctx)
        [vector] = await embed_cached(ctx, [said.strip()])
        known[said] = float(vector @ weights[:-1] + weights[-1]) >= _LEAST
    return known[said]


async def _learn(ctx: Context) -> Floats:
    """Return the weights that tell the examples apart, and at last what is added.

    Either kind counts alike, however many examples it has. Where most examples are not told by the
    others, vectors say nothing of this: then nothing is added up, and nothing holds both ways.
    """
    if "mutual weights" not in ctx.view.memo:
        vectors = (await embed_cached(ctx, [*_MUTUAL, *_DIRECTED])).astype(np.float64)
        sign = np.repeat([1.0, -1.0], [len(_MUTUAL), len(_DIRECTED)])
        share = np.where(sign > 0, 0.5 / len(_MUTUAL), 0.5 / len(_DIRECTED))
        mean = share @ vectors
        apart = vectors - mean
        spread = (apart * share[:, None]).T @ apart + _RIDGE * np.eye(len(mean))
        solved = np.linalg.solve(spread, (apart * share[:, None]).T)
        weights, own = solved @ sign, np.einsum("nd,dn->n", apart, solved)
        # What the others say of each: without its own part.
        by_others = (apart @ weights - own * sign) / (1.0 - own)
        told = float(share @ ((by_others >= _LEAST) == (sign > 0)))
        weights = weights if told >= _LEAST_TOLD else np.zeros_like(weights)
        ctx.view.memo["mutual weights"] = np.append(weights, -mean @ weights).astype(np.float32)
    found: Floats = ctx.view.memo["mutual weights"]
    return found
