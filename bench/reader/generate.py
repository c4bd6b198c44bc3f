"""On the GPU machine: a small chat model writes questions about passages and reads them again.

    PYTHONPATH=src:DIR python3 -m bench.reader.generate --model DIR/hf \
        --passages DIR/reader/passages.jsonl.gz --out OUT --minutes 12

Everything kept is written at once to OUT/part-0/written-000.jsonl and so on: a run that is cut off
leaves what it has made. The last share of the time (`--two-hop`) goes to questions over two
passages. Several processes (`--parts 3 --part 0` …) keep a large GPU busier than one.
"""

import argparse
import json
import random
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from bench.reader.decode_batch import Job, JobRunner
from bench.reader.examples import Passage, load_passages, read_lines
from bench.reader.writing import Kept, write_about, write_two_hop

PART_BYTES = 12 * 2**20
CHUNK = 4096  # passages between which the order is random; within, it is by length


class Output:
    """Writes rows to files of limited size."""

    def __init__(self, folder: Path) -> None:
        """Start after the files that are there."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.number = folder, len(list(folder.glob("written-*.jsonl")))
        self.size = self.rows = 0

    def write(self, rows: list[dict[str, Any]]) -> None:
        """Append rows and flush."""
        if not rows:
            return
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        with (self.folder / f"written-{self.number:03d}.jsonl").open("a", encoding="utf-8") as file:
            file.write(text)
        self.rows, self.size = self.rows + len(rows), self.size + len(text.encode())
        if self.size > PART_BYTES:
            self.number, self.size = self.number + 1, 0


class Progress:
    """Writes what was kept and prints the speed every few seconds."""

    def __init__(self, runner: JobRunner, kept: Kept, output: Output, every: float) -> None:
        """Report every `every` seconds."""
        self.runner, self.kept, self.output, self.every = runner, kept, output, every
        self.began = self.last = time.monotonic()

    def __call__(self) -> None:
        """Report if it is time."""
        if time.monotonic() - self.last > self.every:
            self.last = time.monotonic()
            self.report()

    def report(self) -> None:
        """Write the rows and print one line."""
        self.output.write(self.kept.take())
        seconds = time.monotonic() - self.began
        line = {
            "minutes": round(seconds / 60, 2),
            "jobs": self.runner.finished,
            "rows": self.output.rows,
            "generated_per_s": round(self.runner.generated / seconds),
            "prefilled_per_s": round(self.runner.prefilled / seconds),
            **dict(self.kept.counts.most_common()),
        }
        print(json.dumps(line), flush=True)


def order_passages(
    passages: list[Passage], first: Collection[str], rng: random.Random
) -> list[Passage]:
    """Random order with neighbours of similar length, so that a batch has little padding.

    Those whose id or source is in `first` come before the others.
    """
    shuffled = list(passages)
    rng.shuffle(shuffled)
    shuffled.sort(key=lambda one: one.id not in first and one.source not in first)
    out: list[Passage] = []
    for at in range(0, len(shuffled), CHUNK):
        out += sorted(shuffled[at : at + CHUNK], key=lambda one: len(one.text))
    return out


def own_part(
    passages: list[Passage], pairs: list[dict[str, str]], given: argparse.Namespace
) -> list[Passage]:
    """The passages of this process: its share, and those its pairs need."""
    needed = {pair["b"] for pair in pairs}
    kept = [
        one
        for number, one in enumerate(passages)
        if number % given.parts == given.part or one.id in needed
    ]
    return kept[: given.most]


def singles(passages: list[Passage], kept: Kept, rng: random.Random) -> Iterator[Job]:
    """Jobs over one passage each."""
    for passage in passages:
        yield write_about(passage, kept, rng)


def doubles(
    pairs: list[dict[str, str]], passages: dict[str, Passage], kept: Kept, rng: random.Random
) -> Iterator[Job]:
    """Jobs over pairs whose second passage has questions that name it."""
    for pair in pairs:
        known = kept.by_passage.get(pair["b"], [])
        if pair["a"] in passages and any(pair["name"].lower() in one[0].lower() for one in known):
            yield write_two_hop(passages[pair["a"]], passages[pair["b"]], pair["name"], kept, rng)


def load_decoder(path: Path, graphs: bool) -> tuple[Any, Any]:
    """The model behind the fast decoder, and its tokenizer."""
    from clew.train.decode.fast_decoder import FastDecoder
    from clew.train.learn.policy import load_model

    model, tokenizer = load_model(path)
    return FastDecoder(model, graphs=graphs), tokenizer


def main() -> None:
    """Write questions until the time is up."""
    ask = argparse.ArgumentParser()
    ask.add_argument("--model", type=Path, required=True)
    ask.add_argument("--passages", type=Path, required=True)
    ask.add_argument("--out", type=Path, required=True)
    ask.add_argument("--minutes", type=float, default=12.0, help="of writing, loading not counted")
    ask.add_argument("--two-hop", type=float, default=0.3, help="share of the time for two hops")
    ask.add_argument("--rows", type=int, default=640, help="30 MB of memory each at room 1024")
    ask.add_argument("--room", type=int, default=1000, help="tokens of text, request and reply")
    ask.add_argument("--most", type=int, default=10**9, help="passages at most")
    ask.add_argument("--first", default="", help="sources to begin with, separated by commas")
    ask.add_argument("--part", type=int, default=0, help="which of --parts processes this is")
    ask.add_argument("--parts", type=int, default=1)
    ask.add_argument("--seed", type=int, default=0)
    ask.add_argument("--every", type=float, default=15.0, help="seconds between reports")
    ask.add_argument("--no-graphs", action="store_true")
    given = ask.parse_args()
    rng = random.Random(given.seed * given.parts + given.part)
    passages = load_passages(given.passages)
    pairs = [row for row in read_lines(given.passages) if "b" in row][given.part :: given.parts]
    decoder, tokenizer = load_decoder(given.model, not given.no_graphs)
    kept, output = Kept(), Output(given.out / f"part-{given.part}")
    runner = JobRunner(decoder, tokenizer, given.rows, given.room)
    progress = Progress(runner, kept, output, given.every)
    began = time.monotonic()
    # Questions over two passages are made of those of the second, so these are read first.
    first = {*given.first.split(","), *(pair["b"] for pair in pairs)}
    order = order_passages(own_part(list(passages.values()), pairs, given), first, rng)
    try:
        share = 1 - given.two_hop if pairs else 1.0
        end = began + 60 * given.minutes
        runner.run(singles(order, kept, rng), began + share * (end - began), progress)
        runner.restart(given.rows)
        print(json.dumps({"stage": "two hops", "pairs": len(pairs)}), flush=True)
        runner.run(doubles(pairs, passages, kept, rng), end, progress)
    finally:
        progress.report()


if __name__ == "__main__":
    main()
