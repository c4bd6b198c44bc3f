"""Our reader of broken JSON against json-repair, on real replies of a small model and on junk.

`python -m bench.json_repair [--replies FILE]`. Four readers parse the same replies into the same
model: ours; json-repair with the schema (`salvage`); json-repair, then Pydantic alone; and
json-repair, then our fitting (aliases, dropping what does not fit). What a reply contains is found
by a regular expression over its raw text: every complete string of `"entities"`, every complete
`["a", "b", "c"]` of `"triples"`. More than that is a wrong recovery if the text breaks off within
it. Needs `pip install json-repair jsonschema`.
"""

import argparse
import json
import multiprocessing
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from bench.machine import load_library, print_result, require_path
from bench.structured import (
    REPLIES,
    STRING,
    ParsedReply,
    Triple,
    expected_triples,
    is_valid_json,
)
from clew.errors import ParseError
from clew.llm.json_repair import JsonValue, iter_values
from clew.llm.parse import _fit_value, parse_answer


@cache
def library() -> Any:
    """json-repair, loaded when it is needed."""
    return load_library("json_repair", "json-repair jsonschema")


ROUNDS = 3
PATIENCE = 20.0
ENTITY_LIST = '"entities"'


class Loose(BaseModel):
    """The shape for a reader that fits nothing itself."""

    entities: list[str] = []
    triples: list[Triple] = []


Read = Callable[[str], tuple[list[str], list[Triple]] | None]


def ours(text: str) -> tuple[list[str], list[Triple]] | None:
    """Read by our own code."""
    try:
        value = parse_answer(text, ParsedReply).value
    except ParseError:
        return None
    return value.entities, value.triples


def theirs(text: str) -> tuple[list[str], list[Triple]] | None:
    """json-repair, then the shape: all or nothing."""
    try:
        value = Loose.model_validate(library().loads(text))
    except (ValidationError, RecursionError, ValueError):
        return None
    return value.entities, value.triples


def theirs_fitted(text: str) -> tuple[list[str], list[Triple]] | None:
    """json-repair in place of `llm/json_repair.py`, then our `llm/parse.py`."""
    try:
        value = library().loads(text)
        fitted = _fit_value(JsonValue(value, not is_valid_json(text), len(text)), ParsedReply).value
    except (ParseError, RecursionError, ValueError):
        return None
    return fitted.entities, fitted.triples


def theirs_by_schema(text: str) -> tuple[list[str], list[Triple]] | None:
    """json-repair told the shape, to keep what fits of it."""
    try:
        value = library().loads(text, schema=Loose, schema_repair_mode="salvage")
        fitted = Loose.model_validate(value)
    except (ValidationError, RecursionError, ValueError):
        return None
    return fitted.entities, fitted.triples


SIDES: Mapping[str, Read] = {
    "ours": ours,
    "json-repair by schema": theirs_by_schema,
    "json-repair + Pydantic": theirs,
    "json-repair + our fitting": theirs_fitted,
}


def entities_in(text: str) -> list[str]:
    """The complete strings of the first list of entities, each once."""
    at = text.find(ENTITY_LIST)
    if at < 0:
        return []
    one = re.compile(rf"\s*[\[,]\s*{STRING}(?=\s*(?:,|\]))")
    found, place = [], text.find("[", at)
    while place >= 0 and (match := one.match(text, place)) is not None:
        found.append(str(json.loads(f'"{match[1]}"', strict=False)))
        place = match.end()
    return list(dict.fromkeys(found))


def judge(text: str, got: tuple[list[str], list[Triple]] | None) -> str:
    """Compare what was read with what is there."""
    names, triples = entities_in(text), expected_triples(text)
    if got is None:
        return "nothing read" if names or triples else "nothing there, nothing read"
    read_names, read_triples = list(dict.fromkeys(got[0])), list(dict.fromkeys(got[1]))
    if not set(triples) <= set(read_triples) or not set(names) <= set(read_names):
        return "some missing"
    more = [part for one in read_triples if one not in triples for part in one]
    more += [one for one in read_names if one not in names]
    if not more:
        return "exactly what is there"
    return "half an item taken" if any(_torn(text, one) for one in more) else "mended items more"


def _torn(text: str, one: str) -> bool:
    """Whether a string was cut off by the end of the reply: it stands there and nowhere whole."""
    written = json.dumps(one, ensure_ascii=False)[1:-1]
    return text.rstrip().endswith((one, written)) and f'{one}"' not in text


def timed(read: Read, texts: list[str]) -> float:
    """Processor seconds for all of them, the best of the rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        for text in texts:
            read(text)
        best = min(best, time.process_time() - began)
    return best


# --- hostile input ------------------------------------------------------------------------------

MISTAKES: tuple[tuple[str, Any], ...] = (
    ("{'a': 'b', 'c': ['d', 'e']}", {"a": "b", "c": ["d", "e"]}),
    ("{'a': 'it's', 'b': \"it's\"}", {"a": "it's", "b": "it's"}),
    ('{"a": [1, 2,], "b": {"c": 3,},}', {"a": [1, 2], "b": {"c": 3}}),
    ('{a: 1, b-2: "x", "c": y}', {"a": 1, "b-2": "x", "c": "y"}),
    ('{"a": ["x", "y"', {"a": ["x", "y"]}),
    ('{"a": ["x", "yy', {"a": ["x"]}),
    ('{"a": [["x", "y", "z"], ["u", "v', {"a": [["x", "y", "z"]]}),
    ('{"a": ["x", "b": ["y"]}', {"a": ["x"], "b": ["y"]}),
    ('{"a": ["x"}, "b": ["y"]}', {"a": ["x"], "b": ["y"]}),
    ('[{"a": 1, {"a": 2}]', [{"a": 1}, {"a": 2}]),
    ('[{"a": 1}, {"a": 2]', [{"a": 1}, {"a": 2}]),
    ('{"a": "say "hi" to", "b": 1}', {"a": 'say "hi" to', "b": 1}),
    ('["a "b", c", "d"]', ['a "b", c', "d"]),
    ('["T. J." Red" Arnall", "x"]', ['T. J." Red" Arnall', "x"]),
    ('["one"\n"two"\n"three"]', ["one", "two", "three"]),
    ('{"a": "two\nlines\tand tabs"}', {"a": "two\nlines\tand tabs"}),
    ('{"a": 1, // first\n /* then */ "b": 2, # last\n}', {"a": 1, "b": 2}),
    ("{“a”: “b”}", {"a": "b"}),
    ('{"a":, "b": 2}', {"b": 2}),
    ('{"a": [1, ..., 9]}', {"a": [1, 9]}),
    ('[Paris", "Rome"]', ["Paris", "Rome"]),
    ('{"a": ["x", 12', {"a": ["x"]}),
    ('Sure:\n```json\n{"a": 1}\n```\nI hope it helps.', {"a": 1}),
    ('<think>maybe {"a": 0}</think>{"a": 1}', {"a": 1}),
    ('{"a": 1} {"a": 2}', {"a": 1}),
)
JUNK: Mapping[str, Callable[[int], str]] = {
    "[[[[": lambda n: "[" * n,
    '{"a":{"a":': lambda n: '{"a":' * (n // 5),
    '"""""': lambda n: '"' * n,
    '["["["': lambda n: '["' * (n // 2),
    "[1,1,1,": lambda n: "[" + "1," * (n // 2),
    '["a" b ["a" b': lambda n: '["a" b ' * (n // 7),
    "[/*[/*": lambda n: "[/*" * (n // 3),
    "{ and blanks": lambda n: "{" + " " * n,
    "[}[}[}": lambda n: "[}" * (n // 2),
    '["a" "a" "a"': lambda n: "[" + '"a" ' * (n // 4),
    "words only": lambda n: "la " * (n // 3),
    "string of escapes": lambda n: '{"a": "' + "x, \\" * (n // 4),
    "one triple in a loop": lambda n: '{"triples": [' + '["a", "b", "c"], ' * (n // 17),
}


def _read_ours(text: str) -> None:
    for _ in iter_values(text):
        pass


def _timed_junk(side: str, text: str, pipe: Any) -> None:
    read = {"ours": _read_ours, "json-repair": library().loads}[side]
    began = time.process_time()
    try:
        read(text)
    except (RecursionError, ValueError) as error:
        pipe.send((time.process_time() - began, type(error).__name__))
    else:
        pipe.send((time.process_time() - began, ""))


def junk(side: str, text: str) -> tuple[float, str]:
    """Processor seconds for one hostile text in a process of its own, given up after a while."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.Process(target=_timed_junk, args=(side, text, there))
    process.start()
    there.close()
    try:
        if here.poll(PATIENCE):
            seconds, raised = here.recv()
            return float(seconds), str(raised)
        return PATIENCE, "given up"
    except EOFError:
        return 0.0, "died"
    finally:
        process.kill()
        process.join()


def mended(side: str, text: str) -> Any:
    """The first value found in a text, or the error's name."""
    try:
        if side == "ours":
            first = next(iter_values(text), None)
            return first.value if first else None
        return library().loads(text)
    except (RecursionError, ValueError) as error:
        return type(error).__name__


def hostile(sizes: tuple[int, ...]) -> dict[str, Any]:
    """Time each side on junk of each size."""
    found: dict[str, Any] = {}
    print(f"junk: processor seconds at {' and '.join(f'{size:,}' for size in sizes)} letters")
    for name, make in JUNK.items():
        row = {}
        for side in ("ours", "json-repair"):
            took = [junk(side, make(size)) for size in sizes]
            row[side] = [{"s": round(seconds, 3), "raised": raised} for seconds, raised in took]
        found[name] = row
        cells = [
            "  ".join(f"{one['s']:7.3f} {one['raised']:14}" for one in row[side]) for side in row
        ]
        print(f"  {name:22} ours {cells[0]}  json-repair {cells[1]}")
    return found


def main() -> None:
    """Measure, print tables, and the figures as the last line."""
    parser = argparse.ArgumentParser(prog="python -m bench.json_repair", description=__doc__)
    parser.add_argument("--replies", type=Path, default=REPLIES)
    given = parser.parse_args()
    library()  # exit now if it is missing
    require_path(given.replies, "--replies")
    lines = given.replies.read_text(encoding="utf-8").splitlines()
    texts = [str(json.loads(line)["output"]) for line in lines if line]
    broken = [text for text in texts if not is_valid_json(text)]
    print(f"{len(texts)} replies, {len(broken)} of them broken")
    figures: dict[str, Any] = {"replies": {}}
    for name, read in SIDES.items():
        got = [(text, read(text)) for text in broken]
        verdicts = Counter(judge(text, value) for text, value in got)
        found = sum(
            len(set(value[1]) & set(expected_triples(text))) for text, value in got if value
        )
        there = sum(len(expected_triples(text)) for text in broken)
        whole = Counter(judge(text, read(text)) for text in texts if is_valid_json(text))
        figures["replies"][name] = {
            "broken": dict(verdicts),
            "sound": dict(whole),
            "triples_recovered": round(found / there, 5),
            "ms_per_reply": round(1000 * timed(read, texts) / len(texts), 4),
            "ms_per_broken": round(1000 * timed(read, broken) / len(broken), 4),
        }
        row = figures["replies"][name]
        print(f"  {name}: {row['triples_recovered']:.2%} of the triples of broken replies")
        print(f"    {row['ms_per_reply']} ms a reply, {row['ms_per_broken']} ms a broken one")
        print(f"    broken: {dict(verdicts)}")
        print(f"    sound:  {dict(whole)}")
    figures["mistakes"] = {}
    for side in ("ours", "json-repair"):
        wrong = {
            text: repr(mended(side, text))[:80]
            for text, value in MISTAKES
            if mended(side, text) != value
        }
        figures["mistakes"][side] = {"right": len(MISTAKES) - len(wrong), "wrong": wrong}
        print(f"  {side}: {len(MISTAKES) - len(wrong)} of {len(MISTAKES)} usual mistakes mended")
        for text, value in wrong.items():
            print(f"    {text!r} read as {value}")
    figures["junk"] = hostile((10_000, 100_000))
    figures["json_repair"] = version("json-repair")
    print_result("json_repair", figures, {"replies": len(texts), "broken": len(broken)})


if __name__ == "__main__":
    main()
