"""Check a sentence against the facts of a graph: the entities in the roles that it gives them.

The words of several facts make many false sentences. What a graph states is a triple, so a sentence
that rests on triples alone is checked as one: its entities must be the ends of one fact or of a
chain of facts which has its words, and what it says of them must point the same way.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product

from clew.agents.citing.entailment import Quote, is_entailed, parse_claim
from clew.text.names import Tokens, name_key, strip_disambiguation, tokenize
from clew.text.unicode import UNSPACED_CHAR
from clew.types import Citation, Passage, Statement

_MAX_HOPS = 4  # facts between two entities of one sentence
_MAX_CHAINS = 16  # between two entities
_MAX_CHOICES = 64  # chains of all its pairs that are tried together
_MIN_WORD_LETTERS = 4  # of a word that carries a relation
_STEM_LETTERS = 5  # that "designed" and "designer" share
_AGENT_ENDINGS = ("er", "or", "ers", "ors")


@dataclass(frozen=True, slots=True)
class Mention:
    """An entity at its place in a sentence, in tokens."""

    name: str
    start: int
    end: int


def agrees_with_facts(
    sentence: str,
    cited: Sequence[Citation],
    facts: Sequence[Statement],
    *,
    by_meaning: bool = False,
) -> bool:
    """Whether citations that are triples of a graph bear a sentence out; True for any other text.

    Where a sentence was found `by_meaning`, its words are not compared again.
    """
    triples = [fact for fact in facts if _is_triple(fact)]
    if not any(_overlaps(fact, one) for fact in triples for one in cited):
        return True
    claim, tokens = parse_claim(sentence), tokenize(sentence)
    if claim.is_comparison or UNSPACED_CHAR.search(sentence):
        return True
    mentions = find_mentions(tokens, [name for fact in triples for name in fact.entities])
    rest = [_remove_triples(one, triples) for one in cited]
    if len({one.name for one in mentions}) < 2 or _relates_two(" . ".join(rest), mentions):
        return True
    others = [_to_quote(text, cited[at].doc) for at, text in enumerate(rest) if text.strip()]
    return any(
        _keep_roles(tokens, mentions, chosen)
        and (by_meaning or is_entailed(sentence, [*map(_quote_fact, chosen), *others]))
        for chosen in _connect(mentions, triples)
    )


def _is_triple(fact: Statement) -> bool:
    """Whether a fact's quote is the triple itself and no prose."""
    if len(fact.entities) != 2 or not fact.relation or not fact.quote:
        return False
    said = f"{' '.join(fact.entities)} {fact.relation} {fact.description} {' '.join(fact.keywords)}"
    return set(name_key(fact.quote).split()) <= set(name_key(said).split())


def _overlaps(fact: Statement, cited: Citation) -> bool:
    return fact.doc == cited.doc and fact.start < cited.end and cited.start < fact.end


def _remove_triples(cited: Citation, triples: Sequence[Statement]) -> str:
    """Return what a quote says beside the triples in it."""
    text = list(cited.quote)
    for fact in triples:
        if _overlaps(fact, cited):
            begin, end = max(0, fact.start - cited.start), max(0, fact.end - cited.start)
            text[begin:end] = " " * len(text[begin:end])
    return "".join(text)


def _relates_two(text: str, mentions: Sequence[Mention]) -> bool:
    """Whether a text names two of the entities itself."""
    here = f" {name_key(text)} "
    return len({m.name for m in mentions if f" {m.name} " in here}) > 1


def find_mentions(tokens: Tokens, names: Sequence[str]) -> list[Mention]:
    """Find the entities that a sentence names in full, the longest name at each place."""
    keys = {name_key(strip_disambiguation(name)) for name in names} - {""}
    longest = max((len(key.split()) for key in keys), default=0)
    found: list[Mention] = []
    at = 0
    while at < len(tokens.keys):
        sizes = range(min(longest, len(tokens.keys) - at), 0, -1)
        size = next((n for n in sizes if " ".join(tokens.keys[at : at + n]) in keys), 0)
        if size:
            found.append(Mention(" ".join(tokens.keys[at : at + size]), at, at + size))
        at += size or 1
    return found


def _ends(fact: Statement) -> tuple[str, str]:
    head, tail = (name_key(strip_disambiguation(name)) for name in fact.entities)
    return head, tail


def _connect(
    mentions: Sequence[Mention], triples: Sequence[Statement]
) -> Iterator[list[Statement]]:
    """Yield the facts that may connect the entities of a sentence, each with the one before."""
    between: dict[tuple[str, str], list[Statement]] = defaultdict(list)
    near: dict[str, set[str]] = defaultdict(set)
    for fact in triples:
        head, tail = _ends(fact)
        for one, other in {(head, tail), (tail, head)}:
            between[one, other].append(fact)
            near[one].add(other)
    names = list(dict.fromkeys(one.name for one in mentions))
    pairs = zip(names, names[1:], strict=False)
    chains = [list(islice(_walk(near, (one,), other), _MAX_CHAINS)) for one, other in pairs]
    for choice in islice(product(*chains), _MAX_CHOICES):
        hops = [hop for chain in choice for hop in zip(chain, chain[1:], strict=False)]
        facts = [fact for hop in hops for fact in between[hop]]
        yield list({(fact.id, fact.start): fact for fact in facts}.values())


def _walk(
    near: dict[str, set[str]], taken: tuple[str, ...], goal: str
) -> Iterator[tuple[str, ...]]:
    """Yield the simple paths to an entity, in a fixed order."""
    for one in sorted(near[taken[-1]] - set(taken)):
        if one == goal:
            yield (*taken, one)
        elif len(taken) < _MAX_HOPS:
            yield from _walk(near, (*taken, one), goal)


# -- the direction of a relation


def _keep_roles(tokens: Tokens, mentions: Sequence[Mention], facts: Sequence[Statement]) -> bool:
    """Whether each relation points the same way in the sentence and in some fact."""
    inside = {at for one in mentions for at in range(one.start, one.end)}
    for at, word in enumerate(tokens.keys):
        if at in inside:
            continue
        before = next((m for m in reversed(mentions) if m.end <= at), None)
        after = next((m for m in mentions if m.start > at), None)
        named = {m.name for m in (before, after) if m is not None}
        same = [f for f in facts if _says(f, word) and named & set(_ends(f))]
        if same and not any(_points_alike(tokens, at, f, before, after) for f in same):
            return False
    return True


def _relation_words(fact: Statement) -> list[str]:
    return name_key(fact.relation).split()


def _says(fact: Statement, word: str) -> bool:
    """Whether a word is the relation's own, or names who does it ("designer" for "designed")."""
    own = [one for one in _relation_words(fact) if len(one) >= _MIN_WORD_LETTERS]
    return word in own or (_is_agent(word) and any(_is_same_stem(word, one) for one in own))


def _is_agent(word: str) -> bool:
    return word.endswith(_AGENT_ENDINGS) and len(word) > _STEM_LETTERS


def _is_same_stem(one: str, other: str) -> bool:
    return one[:_STEM_LETTERS] == other[:_STEM_LETTERS]


def _points_alike(
    tokens: Tokens, at: int, fact: Statement, before: Mention | None, after: Mention | None
) -> bool:
    """Whether a relation's word stands between the entities as the fact has them.

    "By" turns the order around. Where it cannot be told ("Ilse's bridge", "of" in one of both, "In
    Kiel was born …"), any order is right.
    """
    relation = _relation_words(fact)
    behind = tokens.keys[at + 1 : after.start if after else None]
    word = tokens.keys[at]
    if word not in relation:  # who does it: "X is the designer of Y"
        if behind[:1] != ["of"]:
            return True
        turned = "by" in relation
    else:
        fronted = before is not None and before.start > 0 and tokens.keys[before.start - 1]
        genitive = before is not None and tokens.keys[before.end] == "s"
        if genitive or (fronted and fronted in relation) or ("of" in behind) != ("of" in relation):
            return True
        turned = ("by" in behind) != ("by" in relation)
    head, tail = reversed(_ends(fact)) if turned else _ends(fact)
    if head == tail:
        return True
    return (before is None or before.name != tail) and (after is None or after.name != head)


def _quote_fact(fact: Statement) -> Quote:
    return _to_quote(fact.quote, fact.title)


def _to_quote(text: str, title: str) -> Quote:
    return Quote(Passage("", "", title, 0.0, text, 0, len(text)), 0, len(text))
