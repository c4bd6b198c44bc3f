"""How close the words of a question are in meaning to what columns, cells and tables are called."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from clew.agents.rules.table_words import Word, is_same_word, load_operators, split_question
from clew.agents.tables.load import Column, Table
from clew.agents.tables.unspaced import asks_unspaced
from clew.context import Context
from clew.graph.csr import Floats

Senses = Mapping[str, Mapping[str, float]]
"""For words of a question, the cosine with the name of every column."""

SAME_CONCEPT = 0.95
"""For a cosine, of words that are listed as naming the same."""
PRICE, PLACE, PERSON = "price", "city", "person"
_IMPLIED = (PRICE, PLACE, PERSON)  # "bring in", "where", "who": compared with columns, too
_MAX_VALUES = 1_000  # of all tables that words are compared with
_MAX_KINDS = 100  # different values of a column that tells kinds
_MAX_NAMES = 400  # columns of all tables, beyond which meaning costs too much


async def load_senses(ctx: Context, tables: Sequence[Table]) -> Senses:
    """Compare the words of the question with the names of columns; empty without an embedder."""
    names = list(dict.fromkeys(" ".join(c.words) for t in tables for c in t.columns.values()))
    words = [word.fold for word in split_question(ctx.question) if _has_meaning(word)]
    words += [*_IMPLIED, *find_measured_phrase(split_question(ctx.question))]
    words += [join_last(split_question(ctx.question))]
    if not names or len(names) > _MAX_NAMES or asks_unspaced(ctx.question):
        return {}
    values = [value for t in tables for c in list_kind_columns(t) for value in c.rows_by_value]
    words_of_tables = [word for table in tables for word in table.own_words]
    names = list(dict.fromkeys([*names, *words_of_tables, *values[:_MAX_VALUES]]))
    cosines: Floats = np.zeros((len(words), len(names)), np.float32)
    if ctx.meaning() == 1:
        vectors = np.stack(await ctx.vectors([*words, *names]))
        cosines = vectors[: len(words)] @ vectors[len(words) :].T
    return {
        word: {
            name: SAME_CONCEPT if shares_concept(word, name, words_of_tables) else cosine
            for name, cosine in zip(names, row, strict=True)
        }
        for word, row in zip(words, cosines.tolist(), strict=True)
    }


def shares_concept(word: str, name: str, tables: Collection[str] = ()) -> bool:
    """Whether a word and one of a name's words name the same thing: "earns" and "salary".

    What a table is called says nothing in the names of its columns: "order no".
    """
    concepts, parts = load_operators().concepts_of, name.split()
    known = [one for one in parts if len(parts) == 1 or not _is_any_of(one, tables)]
    return any(concepts(word) & concepts(own) for own in known if own != word)


def _is_any_of(word: str, names: Collection[str]) -> bool:
    """Whether a word is a form of one of some names."""
    return any(is_same_word(word, name) for name in names)


def _has_meaning(word: Word) -> bool:
    """Whether a word is neither a name, a number nor one that only joins others."""
    is_plain = word.text.islower() and word.fold.isalpha()
    return is_plain and word.fold not in load_operators().fillers


def list_kind_columns(table: Table) -> list[Column]:
    """Return the columns of texts that rows share: kinds, states, places."""
    return [one for one in table.columns.values() if list_kinds(one)]


def list_kinds(column: Column) -> Collection[str]:
    """Return the texts that rows share, if they are few enough to be kinds."""
    is_kind = column.type == "text" and not column.is_nearly_key
    return column.rows_by_value if is_kind and len(column.rows_by_value) <= _MAX_KINDS else ()


def tells_names(column: Column) -> bool:
    """Whether the values of a column begin as names do, and few have digits."""
    cells = [str(cell) for cell in column.cells if cell is not None]
    named = sum(not one[:1].islower() and not any(map(str.isdigit, one)) for one in cells)
    return named * 2 > len(cells)


def find_measured_phrase(words: Sequence[Word]) -> list[str]:
    """Return the words behind "how" that say together what is measured, if there are several."""
    folds = [word.fold for word in words]
    if folds[:1] != ["how"]:
        return []
    ends = [at for at, one in enumerate(folds) if at and one in load_operators().auxiliaries]
    phrase = folds[1 : min(ends, default=1)]
    return [" ".join(phrase)] if len(phrase) > 1 and phrase[0] not in ("many", "much") else []


def join_last(words: Sequence[Word]) -> str:
    """Return the last two words of a question: "made of" is material, and "made" alone is not."""
    return " ".join(word.fold for word in words[-2:])
