import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.llm.json_repair import iter_values, strip_thinking

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
).filter(lambda value: isinstance(value, dict | list))


def first(text):
    return next(iter_values(text), None)


def is_beginning(part, whole):
    """The complete items of a document's beginning, and nothing else."""
    if isinstance(whole, list):
        return isinstance(part, list) and part == whole[: len(part)]
    if not isinstance(whole, dict):
        return part == whole
    if not isinstance(part, dict):
        return False
    keys = list(part)
    if keys != list(whole)[: len(keys)]:
        return False
    return all(part[key] == whole[key] for key in keys[:-1]) and all(
        is_beginning(part[key], whole[key]) for key in keys[-1:]
    )


@given(documents, st.data(), st.booleans(), st.sampled_from([None, 2]))
def test_any_beginning_of_a_document_yields_its_complete_items(value, data, ascii_only, indent):
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    cut = data.draw(st.integers(1, len(text)))
    reading = first(text[:cut])
    assert reading is not None
    assert is_beginning(reading.value, value)
    assert reading.truncated == (cut < len(text))


@given(st.lists(st.lists(st.text(), min_size=3, max_size=3), max_size=8), st.data())
def test_no_complete_item_of_a_cut_list_is_lost(triples, data):
    text = '{"triples": ' + json.dumps(triples) + "}"
    cut = data.draw(st.integers(13, len(text)))
    ends, at = [], 13
    for triple in triples:
        at = text.index(json.dumps(triple), at) + len(json.dumps(triple))
        ends.append(at)
    complete = sum(end <= cut for end in ends)
    assert first(text[:cut]).value["triples"] == triples[:complete]


@given(documents)
def test_sound_json_is_read_as_it_is(value):
    text = f"Here it is:\n```json\n{json.dumps(value, indent=1)}\n```\nI hope this helps."
    assert first(text).value == value


@given(st.text(alphabet="{}[]\",:'\\/#*`<>\n tfn1-.ué“”", max_size=300))
def test_of_any_junk_json_values_are_read_one_after_the_other(text):
    _read_in_order(text)


@given(st.text())
def test_of_any_text_json_values_are_read_one_after_the_other(text):
    _read_in_order(text)


def _read_in_order(text):
    ends = [0]
    for reading in iter_values(text):
        assert isinstance(reading.value, dict | list)
        assert json.loads(json.dumps(reading.value)) == reading.value
        assert ends[-1] < reading.end <= len(text)
        ends.append(reading.end)
    assert len(ends) - 1 <= text.count("{") + text.count("[")
    if set(text).isdisjoint("{["):
        assert ends == [0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{'a': 'b', 'c': ['d', 'e']}", {"a": "b", "c": ["d", "e"]}),
        ("{'a': 'it's', 'b': \"it's\"}", {"a": "it's", "b": "it's"}),
        ('{"a": [1, 2,], "b": {"c": 3,},}', {"a": [1, 2], "b": {"c": 3}}),
        ('{a: 1, b-2: "x", "c": y}', {"a": 1, "b-2": "x", "c": "y"}),
        ("[True, None, False, NaN]", [True, None, False, None]),
        ('{"a": "b"', {"a": "b"}),
        ('{"a": ["x", "y"', {"a": ["x", "y"]}),
        ('{"a": ["x", "b": ["y"]}', {"a": ["x"], "b": ["y"]}),
        ('{"a": ["x"}, "b": ["y"]}', {"a": ["x"], "b": ["y"]}),
        ('[{"a": 1, {"a": 2}]', [{"a": 1}, {"a": 2}]),
        ('[{"a": 1}, {"a": 2]', [{"a": 1}, {"a": 2}]),
        ('{"a": "say "hi" to", "b": 1}', {"a": 'say "hi" to', "b": 1}),
        ('["a "b", c", "d"]', ['a "b", c', "d"]),
        ('["T. J." Red" Arnall", "x"]', ['T. J." Red" Arnall', "x"]),
        ('[["a" b], ["c", "d"]]', [['a" b'], ["c", "d"]]),
        ('["one"\n"two"\n"three"]', ["one", "two", "three"]),
        ('{"a": "two\nlines\tand tabs"}', {"a": "two\nlines\tand tabs"}),
        ('{"a": 1, // first\n /* then */ "b": 2, # last\n}', {"a": 1, "b": 2}),
        ('{“a”: “b”}', {"a": "b"}),
        ('{"a": "\\alpha \\u00e9 \\/ \\" \\x"}', {"a": '\\alpha é / " \\x'}),
        ('{"a": "\\ud83d\\ude00", "b": \'\\ud83d\'}', {"a": "😀", "b": "\ufffd"}),
        ('{"a":, "b": 2}', {"b": 2}),
        ('{"a": [1, ..., 9]}', {"a": [1, 9]}),
        ('[Paris", "Rome"]', ["Paris", "Rome"]),
        ('{"a": 1} {"a": 2}', {"a": 1}),
        ('{"a": "x"} and that is all', {"a": "x"}),
        ('{"a": ["x", 12', {"a": ["x"]}),
        ('{"a": +1.5e3, b: -2}', {"a": 1500.0, "b": -2}),
        ('{"a": ' + "9" * 5000 + "}", {"a": "9" * 5000}),
    ],
)  # fmt: skip
def test_common_mistakes_are_mended(text, value):
    assert first(text).value == value


def test_every_value_of_a_reply_is_offered_in_order():
    values = [reading.value for reading in iter_values('see [1]: {"a": 1} or {"a": 2')]
    assert values == [[1], {"a": 1}, {}]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("<think>{no}</think>{yes}", "{yes}"),
        ("{no}</think>{yes}", "{yes}"),
        ("{yes}<THINK>and so on", "{yes}"),
        ("<thinking>a<think>b</thinking>{yes}", "{yes}"),
        ("a < b", "a < b"),
    ],
)
def test_thoughts_are_left_out(text, kept):
    assert strip_thinking(text) == kept


def test_a_tag_within_sound_json_is_text():
    assert first('{"a": "the <think> tag"}').value == {"a": "the <think> tag"}


@pytest.mark.parametrize("size", [50_000, pytest.param(10_000_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("begin", "unit"),
    [
        ("", "["),
        ("", '{"a":'),
        ("", '"'),
        ("", '["'),
        ("", "<think>"),
        ("[", "1,"),
        ("", '["a" b '),
        ("", "[/*"),
        ("{", " "),
        ("", "[}"),
        ("[", '"a" '),
        ("", "la "),
        ('{"a": "', "x, \\"),
    ],
)
def test_much_junk_takes_bounded_time(begin, unit, size):
    junk = begin + unit * (size // len(unit))
    began = time.process_time()
    for _ in iter_values(junk):
        pass
    assert time.process_time() - began < 8  # seconds on a slow machine; quadratic would be hours
