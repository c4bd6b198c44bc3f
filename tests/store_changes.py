"""Random changes to a store, for tests that compare stores."""

from hypothesis import strategies as st

from clew.store.protocol import Addition, Change
from clew.testing.contracts import make_addition, make_triple

NAMES = st.sampled_from(["a", "b", "c", "d"])
WORDS = st.sampled_from(["Marie", "marie", "Пётр", "北京", "Paris", "found", "İstanbul", "é", "é"])
TEXTS = st.lists(WORDS, min_size=1, max_size=4).map(" ".join)


@st.composite
def additions(draw: st.DrawFn) -> Addition:
    facts = [
        make_triple(draw(WORDS), draw(st.sampled_from(["knows", "Knows", "likes"])), draw(WORDS))
        for _ in range(draw(st.integers(0, 2)))
    ]
    text = draw(TEXTS)
    # Facts are a function of the text, as with any deterministic extractor.
    return make_addition(draw(NAMES), text, facts=facts if len(text) % 2 else ())


CHANGES = st.lists(
    st.builds(
        Change,
        add=st.lists(additions(), max_size=3),
        remove=st.lists(NAMES, max_size=2, unique=True),
    ),
    max_size=5,
)


def make_consistent(changes: list[Change]) -> list[Change]:
    """The same content always has the same extraction, whatever its name."""
    first: dict[str, Addition] = {}
    found = []
    for change in changes:
        added = []
        for one in change.add:
            known = first.setdefault(one.document.id, one)
            added.append(Addition(one.document, known.chunks, known.extractions, known.stamp))
        found.append(Change(add=added, remove=change.remove))
    return found
