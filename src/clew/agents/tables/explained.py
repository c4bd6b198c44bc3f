"""Which words of a question a query leaves unexplained: "sank" of boats whose landings are known.

A word is explained by what asks, compares or only joins others, by the names of the table and its
columns, by the values that the query looks for, and by what is close to one of these in meaning.
"""

from collections.abc import Iterator, Sequence

from clew.agents.rules.table_words import Word, is_same_word, load_operators
from clew.agents.tables.asked import Asked
from clew.agents.tables.load import Table
from clew.agents.tables.meanings import Senses, tells_names
from clew.agents.tables.reading import Filter, Query
from clew.text.dates import MONTHS
from clew.text.irregular_verbs import BASE_OF_FORM

_KINDS = (
    *("asks", "shares", "pairs", "products", "ordinals", "limits", "numbers", "orders"),
    *("aggregates", "superlatives", "degrees", "comparisons", "texts", "distinct", "groupings"),
    *("negations", "periods", "placements"),
)

_RANKING = ("superlatives", "degrees", "ordinals", "limits", "orders", "comparisons", "aggregates")
_PASSIVE = ("was", "were", "been", "being", "is", "are", "get", "got")
_LEAST_LETTERS = 4  # of a name of a column that is no word of another kind
_LEAST_OF_VALUE = 0.5  # cosine of a word with a value that it may mean
_LEAST_OF_DEED = 0.45  # cosine of a verb with what a query is made of, if that explains it


def passes_over_deed(question: str, query: Query, senses: Senses) -> bool:
    """Whether a question asks what was done to things, or what they did, and a query leaves it out.

    "Which style was exported most", "how many boats sank in 2025": rows of the style, and of the
    boats in that year, say nothing of it.
    """
    asked = Asked(question)
    unknown = (at for at, near in _list_unexplained(asked, query, senses) if near < _LEAST_OF_DEED)
    return any(_is_deed(asked, at) for at in unknown)


def _is_deed(asked: Asked, at: int) -> bool:
    """Whether a word is what was done ("were sold"), or all that is said of the noun before it."""
    operators, folds = load_operators(), [word.fold for word in asked.words]
    is_past = folds[at].endswith("ed") or folds[at] in BASE_OF_FORM
    if not is_past or folds[at] in operators.light:
        return False
    if folds[at - 1] in _PASSIVE:
        return True
    placed = folds[at + 1 : at + 2]
    ends = not placed or (placed[0] in asked.fillers and _is_time(asked, at + 2))
    return ends and asked.is_open and folds[at - 1] not in asked.fillers


def _is_time(asked: Asked, at: int) -> bool:
    periods = any(one.covers(at) for one in asked.periods)
    return periods or any(place == at for place, _, _ in asked.times)


def ranks_unasked(question: str, query: Query) -> bool:
    """Whether a query ranks rows or groups, and no word of the question asks for an order."""
    if not query.best or query.wants not in ("best", "group"):
        return False
    operators, words = load_operators(), Asked(question).words
    if any(one for kind in _RANKING for one in operators.find(kind, words)):
        return False
    folds = [word.fold for word in words]
    return not any(operators.degree_of(fold, end) for fold in folds for end in ("er", "est"))


def counts_unasked(question: str, query: Query) -> bool:
    """Whether a query tells how many rows each group has, and no word asks for a number or groups.

    "List everyone in Product" wants names.
    """
    if query.wants != "groups" or query.aggregate:
        return False
    operators, words = load_operators(), Asked(question).words
    counts = any(meaning == "count" for _, _, meaning in operators.find("asks", words))
    return not counts and not any(operators.find("groupings", words))


def adds_unsaid(question: str, query: Query) -> bool:
    """Whether a query has a condition for which no word of a question is left.

    A value that stands nowhere in the question is meant by another word, and each thing that is
    not there is denied: "still manned, with no automation date" denies one.
    """
    asked, operators = Asked(question), load_operators()
    denied = [one for one in query.filters if one.negated or one.how == "empty"]
    if query.unlinked is not None and denied:
        return _count_denials(asked) <= len(denied)
    unsaid = {one.column for one in query.filters if one.at < 0 and one.how == "="}
    if not unsaid:
        return False
    table, said = query.table, [one for one in query.filters if one.at >= 0]
    names = table.words.union(word for one in said for word in one.value.split())
    names |= {w for name in query.columns - unsaid - {""} for w in table.columns[name].words}
    taken = _find_operators(asked) | {one.at for one in said}
    left = [
        word
        for at, word in enumerate(asked.words)
        if at not in taken and word.fold not in asked.fillers | operators.fillers
        if word.fold.isalpha() and not any(is_same_word(word.fold, name) for name in names)
    ]
    return len(left) < len(unsaid)


def may_be_anothers(question: str, query: Query) -> bool:
    """Whether "whose" may be answered by another column of names, and the question names neither.

    "Whose repair" is the customer's and the mechanic's.
    """
    words = Asked(question).words
    if words[0].fold != "whose" or query.wants not in ("best", "group", "value"):
        return False
    columns = query.table.columns
    texts = {n: one for n, one in columns.items() if one.type == "text" and not one.is_key}
    named = {n for n, one in texts.items() if tells_names(one)}
    told = {*query.targets, query.group} & named
    said = {
        name
        for name in named
        if any(is_same_word(word.fold, own) for word in words for own in columns[name].words)
    }
    used = {column for one in query.filters for column in one.columns}
    return bool(told) and not told & said and bool(named - told - used)


def leaves_column(question: str, query: Query, tables: Sequence[Table]) -> bool:
    """Whether a question names a column that only another table has: "revenue per city".

    And no word of the table's own columns that it could be, nor a value of a row.
    """
    asked = Asked(question)
    own = {word for one in query.table.columns.values() for word in one.words}
    own |= {*query.table.own_words}
    others = {name: one for t in tables for name, one in t.columns.items() if len(t) > 0}
    said = [word.fold for word in asked.words if word.fold not in asked.fillers]
    valued = " ".join(str(one.value).casefold() for one in query.filters).split()
    return any(
        one.words == (word,) and not any(is_same_word(word, known) for known in (*own, *valued))
        for word in said
        if len(word) >= _LEAST_LETTERS
        for one in others.values()
    )


def _count_denials(asked: Asked) -> int:
    """Return how many words of a question deny something: "never", "unpaid"."""
    operators = load_operators()
    prefixes = tuple(operators.denying)
    spoken = [at for at, _, _ in operators.find("negations", asked.words)]
    formed = [at for at, word in enumerate(asked.words) if word.fold.startswith(prefixes)]
    return len({*spoken, *formed})


def _find_operators(asked: Asked) -> set[int]:
    """Return the words that ask, compare or count."""
    return {
        at
        for kind in _KINDS
        for start, end, _ in load_operators().find(kind, asked.words)
        for at in range(start, end)
    }


def is_of_nothing(question: str, query: Query) -> bool:
    """Whether a query ranks what no word of a question asks to be ranked, nor names: "lessee"."""
    names = _list_names(query)
    said = any(is_same_word(word.fold, name) for word in Asked(question).words for name in names)
    return not said and ranks_unasked(question, query)


def _list_unexplained(asked: Asked, query: Query, senses: Senses) -> Iterator[tuple[int, float]]:
    """Yield the words that nothing of a query explains, each with its nearest cosine to it."""
    operators, words = load_operators(), asked.words
    taken = _find_operators(asked) | {one.at for one in query.filters}
    names = _list_names(query)
    concepts = {concept for name in names for concept in operators.concepts_of(name)}
    near_names = _list_near(query)
    for at, word in enumerate(words):
        if at in taken or not _is_content(asked, word) or word.fold not in senses:
            continue
        if operators.concepts_of(word.fold) & concepts:
            continue
        if any(is_same_word(word.fold, name) for name in names):
            continue
        others = [one.fold for place, one in enumerate(words) if place != at]
        near = senses[word.fold]
        free = [name for name in near_names if not _is_said(name, others)]
        yield at, max((near.get(name, 0.0) for name in free), default=0.0)


def _is_said(name: str, words: Sequence[str]) -> bool:
    """Whether other words of the question say a name: "sank" is close to the boats that did."""
    return all(any(is_same_word(own, word) for word in words) for own in name.split())


def is_far_fetched(one: Filter, words: Sequence[Word], senses: Senses) -> bool:
    """Whether no word of a question says or means the value of a condition: an engineer by "work".

    Without an embedder, and of values that were not compared, nobody can tell.
    """
    if one.at >= 0 or one.how != "=":
        return False
    folds = {word.fold for word in words}
    own = {said: near for said, near in senses.items() if folds.issuperset(said.split())}
    near = [row[one.value] for row in own.values() if one.value in row]
    said = any(is_same_word(word, part) for word in folds for part in one.value.split())
    return bool(near) and not said and max(near) < _LEAST_OF_VALUE


def _is_content(asked: Asked, word: Word) -> bool:
    """Whether a word is a noun, verb or adjective in small letters that no operator is."""
    operators = load_operators()
    if word.fold in asked.fillers or word.fold in MONTHS or not word.text.islower():
        return False
    if operators.degree_of(word.fold) or operators.degree_of(word.fold, "est"):
        return False
    return word.fold.isalpha()


def _list_names(query: Query) -> set[str]:
    """Return the words of a query's table, of its columns and of the values it looks for."""
    found = {word for one in query.filters for word in one.value.split()}
    for table in _list_tables(query):
        found |= table.words
        found |= {word for one in table.columns.values() for word in one.words}
    return found


def _list_tables(query: Query) -> list[Table]:
    return [query.table, *([query.unlinked.table] if query.unlinked else [])]


def _list_near(query: Query) -> list[str]:
    """Return what a word may be close to: columns that the query uses, tables, values."""
    used = [query.table.columns[name] for name in sorted(query.columns - {""})]
    tables = [word for table in _list_tables(query) for word in table.words]
    return [*(" ".join(one.words) for one in used), *tables, *(f.value for f in query.filters)]
