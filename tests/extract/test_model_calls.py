"""The loop: both variants, with their calls in order and their ends."""

import pytest

from clew.errors import ModelError, ParseError
from clew.extract.model_calls import Gleaning, glean


class Model:
    """Finds one more letter each time and judges as told; an error in the list is raised."""

    def __init__(self, finds: list[str | Exception], verdicts: list[bool]) -> None:
        self.finds, self.verdicts, self.calls = finds, verdicts, ""

    async def more(self, known: str) -> str:
        self.calls += "m"
        found = self.finds.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    async def lacks(self, known: str) -> bool:
        self.calls += "j"
        return self.verdicts.pop(0)


def join(one: str, other: str) -> str:
    return "".join(dict.fromkeys(one + other))


@pytest.mark.parametrize(
    ("variant", "most", "finds", "verdicts", "result", "calls"),
    [
        ("trial", 0, [], [], "a", ""),
        ("trial", 3, [], [False], "a", "j"),
        ("trial", 3, ["b"], [True, False], "ab", "jmj"),
        ("trial", 2, ["b", "c"], [True, True], "abc", "jmjm"),
        ("trial", 5, ["b", "ab"], [True, True], "ab", "jmjm"),
        ("base", 3, ["b"], [False], "ab", "mj"),
        ("base", 3, ["b", "c"], [True, False], "abc", "mjmj"),
        ("base", 1, ["b"], [], "ab", "m"),
        ("base", 5, ["a"], [], "a", "m"),
        ("base", 3, ["b", ParseError("nonsense")], [True], "ab", "mjm"),
    ],
)
async def test_the_order_of_calls(variant, most, finds, verdicts, result, calls):
    model = Model(list(finds), list(verdicts))
    assert await glean(Gleaning(variant, most), "aa", model.more, model.lacks, join) == result
    assert model.calls == calls


async def test_a_dead_endpoint_is_no_end_of_the_loop():
    model = Model([ModelError("gone")], [])
    with pytest.raises(ModelError):
        await glean(Gleaning("base", 1), "a", model.more, model.lacks, join)


def test_an_unknown_variant_is_refused():
    with pytest.raises(ValueError, match="trial and base"):
        Gleaning("tral")
