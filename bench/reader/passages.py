"""Collects passages to write questions about, with pairs and hard negatives.

    python -m bench.reader.passages --data DATA --docs DIR --out carry/reader/passages.jsonl.gz

DATA holds the sets 2wiki, wildgraph-*, redocred, mine and squad2; DIR holds one folder per package
with its documentation unpacked. What measures the reader is left out: hotpotqa100 and musique100
(also by title), gold passages of the first 300 questions of 2wiki, every third article of squad2,
the documentation of PostgreSQL, Git, Python and R, RFCs, and other sources of bench/documents.
"""

import argparse
import gzip
import hashlib
import json
import random
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.reader.documents import Block, read_document, read_plain
from bench.reader.examples import load_squad, read_lines

LEFT_OUT_PACKAGES = (
    *("dict-", "r-doc", "installation-guide", "debian-reference", "maint-guide", "iso-codes"),
    *("distro-info", "tzdata", "nut-doc"),
)
MIN_WORDS, MAX_WORDS = 60, 250
MEASURED_2WIKI = 300  # questions whose gold passages are left out
LEFT_OUT = re.compile(
    r"postgres|psql|libpq|(?:^|[/_.-])git(?:$|[/_.-])|python3?[-.]doc|rfc\d", re.I
)
FOREIGN = re.compile(r"/(?:[a-z]{2}(?:[-_][A-Z]{2})?)/(?:.*\.(?:page|html?)$)")
ENGLISH = re.compile(r"/(?:C|en|en-US|en_US)/")
_COMMON = frozenset("the of and to in a is that for with as by on be are it or was this".split())
_WORD = re.compile(r"[A-Za-z0-9_]{3,}")
_TITLE_SOURCES = ("2wiki", "redocred", "squad2", "dict-foldoc", "dict-jargon")


@dataclass
class Found:
    """One passage."""

    source: str
    title: str
    text: str
    similar: list[str] = field(default_factory=list)
    id: str = ""


def pack_blocks(blocks: Iterable[Block], source: str, rng: random.Random) -> Iterator[Found]:
    """Join paragraphs of one document to passages of different lengths."""
    title, section, texts, words = "", "", list[str](), 0
    wanted = rng.randint(MIN_WORDS, 190)
    for block in blocks:
        parts = _cut_long(block.text)
        for part in parts:
            count = len(part.split())
            fresh = (block.title, block.section) != (title, section)
            if texts and (words + count > MAX_WORDS or words >= wanted or fresh):
                if words >= MIN_WORDS:
                    yield _make(source, title, section, texts)
                texts, words, wanted = [], 0, rng.randint(MIN_WORDS, 190)
            if not texts:
                title, section = block.title, block.section
            texts.append(part)
            words += count
    if words >= MIN_WORDS:
        yield _make(source, title, section, texts)


def _cut_long(text: str) -> list[str]:
    words = text.split(" ")
    if len(words) <= 200:
        return [text]
    return [" ".join(words[at : at + 160]) for at in range(0, len(words), 160)]


def _make(source: str, title: str, section: str, texts: list[str]) -> Found:
    named = section and section.lower() not in title.lower()
    full = f"{title} – {section}" if named and title else title or section
    return Found(source, full[:120], "\n".join(texts))


def is_prose(text: str) -> bool:
    """Whether a text is English and mostly words, not a menu, a table of numbers or code."""
    words = text.split()
    if not words or len(words) > MAX_WORDS + 10:
        return False
    common = sum(word.lower() in _COMMON for word in words) / len(words)
    letters = sum(one.isalpha() or one.isspace() for one in text) / len(text)
    links = text.count("http") + text.count("](") + text.count("|")
    return common > 0.14 and letters > 0.75 and links < 4 and "\ufffd" not in text


def collect_sets(data: Path, rng: random.Random) -> Iterator[Found]:
    """Passages of the data sets."""
    rows = list(read_lines(data / "2wiki" / "questions.jsonl"))
    gold = {one for row in rows[:MEASURED_2WIKI] for one in row["gold"]}
    for row in read_lines(data / "2wiki" / "corpus.jsonl"):
        if row["id"] not in gold and len(row["text"].split()) >= 25:
            yield Found("2wiki", row["title"], row["text"][:1600], id=f"2wiki-{row['id']}")
    for folder in sorted(data.glob("wildgraph-*")):
        pages = [
            one
            for row in read_lines(folder / "corpus.jsonl")
            for one in pack_blocks(read_plain(row["text"], row["title"]), "web", rng)
            if is_prose(one.text)
        ]
        yield from rng.sample(pages, min(len(pages), 2500))
    for doc in json.loads((data / "redocred" / "dev.json").read_text("utf-8")):
        text = _join_tokens([" ".join(sentence) for sentence in doc["sents"]])
        yield Found("redocred", doc["title"], text[:1700])
    essays = json.loads((data / "mine" / "essays.json").read_text("utf-8"))
    for essay in essays:
        topic, text = essay.get("topic", ""), essay.get("content", essay.get("essay", ""))
        yield from pack_blocks(read_plain(text, topic), "mine", rng)
    seen = set()
    for example in load_squad(data / "squad2", held=False):
        passage = example.passages[0]
        if passage.id not in seen:
            seen.add(passage.id)
            yield Found("squad2", passage.title, passage.text, id=f"squad2-{passage.id}")


def _join_tokens(sentences: list[str]) -> str:
    """Undo the spaces of a tokenised text."""
    text = " ".join(sentences)
    text = re.sub(r" ([.,;:!?%)\]]|'s\b|n't\b)", r"\1", text)
    return re.sub(r"([(\[]) ", r"\1", text)


def collect_docs(folder: Path, most: int, rng: random.Random) -> Iterator[Found]:
    """Passages of documentation, at most so many of a package."""
    for package in sorted(folder.iterdir()):
        if LEFT_OUT.search(package.name) or package.name.startswith(LEFT_OUT_PACKAGES):
            continue
        files = [
            path for path in package.rglob("*") if path.is_file() and _is_wanted(path, package)
        ]
        rng.shuffle(files)
        made: list[Found] = []
        for path in files[:1200]:
            found = pack_blocks(read_document(path), package.name, rng)
            good = [one for one in found if is_prose(one.text)]
            made += rng.sample(good, min(len(good), 60 if len(files) > 12 else most))
            if len(made) > 2 * most:
                break
        yield from rng.sample(made, min(most, len(made)))


def _is_wanted(path: Path, package: Path) -> bool:
    name = f"/{path.relative_to(package)}"
    if LEFT_OUT.search(name) or path.stat().st_size > 3_000_000:
        return False
    if FOREIGN.search(name) and not ENGLISH.search(name):
        return False
    return not re.search(
        r"genindex|searchindex|/search\.html|copyright|changelog|NEWS|/_static/", name
    )


def collect_entries(folder: Path, rng: random.Random) -> Iterator[Found]:
    """Dictionary entries of some length, each a passage of its own."""
    for name, most in (("dict-foldoc", 3500), ("dict-jargon", 900), ("dict-devil", 200)):
        for path in (folder / name).rglob("*.dict.dz"):
            entries = [
                Found(name, block.title, block.text[:1600])
                for block in read_document(path)
                if 35 <= len(block.text.split()) <= MAX_WORDS
            ]
            yield from rng.sample(entries, min(most, len(entries)))


def leave_out_measured(found: Iterable[Found], data: Path) -> Iterator[Found]:
    """Drop duplicates and pages that the sets kept for measuring have too."""
    titles = {
        row["title"].lower()
        for name in ("hotpotqa100", "musique100")
        for row in read_lines(data / name / "corpus.jsonl")
    }
    titles |= {one.passages[0].title.lower() for one in load_squad(data / "squad2", held=True)}
    seen = set()
    for one in found:
        key = hashlib.sha256(re.sub(r"\W+", " ", one.text.lower())[:400].encode()).hexdigest()
        if key not in seen and one.title.lower() not in titles and len(one.text) > 120:
            seen.add(key)
            one.id = one.id or f"{one.source}-{key[:10]}"
            yield one


def find_similar(passages: list[Found], most: int = 5) -> None:
    """Fill `similar` by shared rare words, weighted by how rare they are."""
    words = [Counter(w.lower() for w in _WORD.findall(f"{p.title} {p.text}")) for p in passages]
    postings: dict[str, list[int]] = defaultdict(list)
    for number, counts in enumerate(words):
        for word in counts:
            postings[word].append(number)
    for number, counts in enumerate(words):
        rare = sorted(counts, key=lambda word: (len(postings[word]), word))
        scores: dict[int, float] = defaultdict(float)
        for word in [w for w in rare if 2 <= len(postings[w]) <= 500][:24]:
            for other in postings[word]:
                scores[other] += 1 / (1 + len(postings[word])) ** 0.5
        scores.pop(number, None)
        best = sorted(scores, key=lambda at: -scores[at])[:most]
        passages[number].similar = [passages[at].id for at in best]


def find_pairs(passages: list[Found], rng: random.Random, most: int) -> list[dict[str, Any]]:
    """Pairs (a, b) in which the text of `a` mentions the title of `b`."""
    by_title: dict[str, list[int]] = defaultdict(list)
    for number, one in enumerate(passages):
        name = re.sub(r" \([^)]*\)$", "", one.title)
        if one.source in _TITLE_SOURCES and (" " in name or len(name) >= 6):
            by_title[name].append(number)
        elif name != one.title and "(manual page)" in one.title:
            by_title[f"{name}("].append(number)
    pairs, count = [], Counter[int]()
    for one in passages:
        for name in _titles_in(one.text, by_title):
            if name.lower() in one.title.lower() or one.title.lower() in name.lower():
                continue
            target = rng.choice(by_title[name])
            if count[target] < 4:
                count[target] += 1
                pairs.append({"a": one.id, "b": passages[target].id, "name": name.rstrip("(")})
    rng.shuffle(pairs)
    return pairs[:most]


def _titles_in(text: str, by_title: dict[str, list[int]]) -> list[str]:
    """Titles that stand in a text as whole words, the longest ones first."""
    found = []
    starts = [m.start() for m in re.finditer(r"\b\w", text)]
    ends = [m.end() for m in re.finditer(r"\w\b|\w\(", text)]
    for start in starts:
        nearest = bisect_right(ends, start)
        for end in ends[nearest : bisect_right(ends, start + 60, nearest)]:
            if text[start:end] in by_title:
                found.append(text[start:end])
    longest = sorted(set(found), key=len, reverse=True)
    return [one for at, one in enumerate(longest) if not any(one in two for two in longest[:at])]


def main() -> None:
    """Collect, link and write the passages; print counts by source."""
    ask = argparse.ArgumentParser()
    ask.add_argument("--data", type=Path, required=True)
    ask.add_argument("--docs", type=Path, required=True)
    ask.add_argument("--out", type=Path, required=True)
    ask.add_argument("--per-package", type=int, default=420)
    ask.add_argument("--most", type=int, default=50_000)
    ask.add_argument("--pairs", type=int, default=20_000)
    ask.add_argument("--seed", type=int, default=0)
    given = ask.parse_args()
    rng = random.Random(given.seed)

    def everything() -> Iterator[Found]:
        yield from collect_sets(given.data, rng)
        yield from collect_entries(given.docs, rng)
        yield from collect_docs(given.docs, given.per_package, rng)

    passages = list(leave_out_measured(everything(), given.data))
    rng.shuffle(passages)
    passages = passages[: given.most]
    find_similar(passages)
    pairs = find_pairs(passages, rng, given.pairs)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(given.out, "wt", encoding="utf-8", compresslevel=9) as file:
        for one in passages:
            row = {"id": one.id, "source": one.source, "title": one.title, "text": one.text}
            file.write(json.dumps({**row, "similar": one.similar}, ensure_ascii=False) + "\n")
        for pair in pairs:
            file.write(json.dumps(pair, ensure_ascii=False) + "\n")
    counts = Counter(one.source for one in passages)
    print(
        json.dumps({"passages": len(passages), "pairs": len(pairs), **dict(counts.most_common())})
    )


if __name__ == "__main__":
    main()
