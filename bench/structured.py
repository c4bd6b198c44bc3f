"""Triples recovered from a small model's real JSON replies, 1,644 of 6,119 broken.

`python -m bench.structured [--replies FILE]`. The expected triples are found without our parser,
by a regular expression over the raw text: every `["a", "b", "c"]` after `"triples"`.
"""

import argparse
import json
import os
import platform
import re
import time
from collections import Counter
from pathlib import Path

from pydantic import BaseModel

from bench.machine import require_path
from clew.errors import ParseError
from clew.llm.parse import parse_answer

REPLIES = Path("../shared/data/2wiki/llm_raw.qwen2.5-coder-1.5b.jsonl")
STRING = r'"((?:[^"\\]|\\.)*)"'
TRIPLE = re.compile(rf"\[\s*{STRING}\s*,\s*{STRING}\s*,\s*{STRING}\s*\]")
Triple = tuple[str, str, str]


class ParsedReply(BaseModel):
    """The schema that the replies should follow."""

    entities: list[str] = []
    triples: list[Triple] = []


def expected_triples(text: str) -> list[Triple]:
    """Find the complete triples of a raw reply, each once, in order."""
    at = text.find('"triples"')
    found = TRIPLE.finditer(text, at) if at >= 0 else ()
    return list(dict.fromkeys(tuple(map(_unescape, match.groups())) for match in found))  # type: ignore[misc]


def _unescape(string: str) -> str:
    return str(json.loads(f'"{string}"', strict=False))


def is_valid_json(text: str) -> bool:
    """Whether the reply is valid JSON."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def classify_reply(text: str) -> str:
    """Compare the parsed triples with the expected ones."""
    wanted = expected_triples(text)
    try:
        got = parse_answer(text, ParsedReply).value.triples
    except ParseError:
        return "nothing read" if wanted else "nothing there, nothing read"
    if len(set(got)) < len(got):
        return "duplicates left"
    if got == wanted:
        return "the same"
    return "the same and mended ones" if set(wanted) <= set(got) else "some missing"


def main() -> None:
    """Measure and print a table, then the JSON result."""
    parser = argparse.ArgumentParser(prog="python -m bench.structured", description=__doc__)
    parser.add_argument("--replies", type=Path, default=REPLIES)
    given = parser.parse_args()
    require_path(given.replies, "--replies")
    lines = given.replies.read_text(encoding="utf-8").splitlines()
    texts = [str(json.loads(line)["output"]) for line in lines if line]
    broken = [text for text in texts if not is_valid_json(text)]
    began = time.perf_counter()
    for text in texts:
        try:
            parse_answer(text, ParsedReply)
        except ParseError:
            continue
    seconds = time.perf_counter() - began
    verdicts, of_broken = Counter(map(classify_reply, texts)), Counter(map(classify_reply, broken))
    good = {"the same", "the same and mended ones", "nothing there, nothing read"}
    share = sum(verdicts[verdict] for verdict in good) / len(texts)
    share_of_broken = sum(of_broken[verdict] for verdict in good) / len(broken)
    print(f"{len(texts)} replies, {len(broken)} of them broken")
    for verdict, count in verdicts.most_common():
        print(f"  {verdict:28} {count:6} of all  {of_broken[verdict]:6} of the broken ones")
    print(f"complete: {100 * share:.2f} % of all, {100 * share_of_broken:.2f} % of the broken ones")
    report = {
        "bench": "structured",
        "figures": {
            "complete": round(share, 5),
            "complete_of_broken": round(share_of_broken, 5),
            "verdicts": dict(verdicts),
            "verdicts_of_broken": dict(of_broken),
            "ms_per_reply": round(1000 * seconds / len(texts), 4),
        },
        "sizes": {"replies": len(texts), "broken": len(broken)},
        "machine": {
            "processors": os.cpu_count(),
            "architecture": platform.machine(),
            "python": platform.python_version(),
        },
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
