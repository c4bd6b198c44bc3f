"""Trains the span reader, on a GPU or (a small share of the data) on a CPU.

    PYTHONPATH=src python3 -m bench.reader.train --dir DIR --out OUT --minutes 4 \
        --written DIR/written*.jsonl

DIR holds minilm.npz, passages.jsonl.gz, squad2/ and 2wiki/ (see README.md). The weights go to
OUT/NAME.npz, the scores on the SQuAD articles held out to OUT/NAME.json; with $OUT set, both are
copied there, the weights in parts of 15 MB (`cat NAME.npz.part-* > NAME.npz`).
"""

import argparse
import copy
import json
import math
import os
import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

try:
    import torch
except ImportError as missing:
    raise SystemExit("this needs torch; install the extra: pip install 'clew[train]'") from missing

from bench.reader.batches import COLUMNS, EncodedSet, encode_all, iterate_batches
from bench.reader.cloze import write_clozes
from bench.reader.examples import (
    Example,
    Mixture,
    Pool,
    compose_epoch,
    load_2wiki,
    load_passages,
    load_squad,
    load_written,
)
from bench.reader.model import ReaderModel, load_weights, save_weights, span_loss, view_of
from bench.reader.notes import NOTES, load_notes
from bench.reader.scoring import format_table, read_with_torch, summarise
from clew.reader.windows import WindowMaker

WARM_UP = 0.06  # share of the training until the full learning rate
PART_BYTES = 15 * 2**20
UNSEEN = ("hotpotqa100", "musique100")  # folders of DIR, if there, that only measure
DEV_2WIKI = (300, 400)  # questions that neither train nor measure


def load_pool(given: argparse.Namespace) -> Pool:
    """Load everything to draw questions from."""
    passages = load_passages(given.dir / "passages.jsonl.gz")
    single, double = load_written(given.written, passages)
    rng = random.Random(given.seed)
    rng.shuffle(single)
    pool = Pool(
        passages,
        load_squad(given.dir / "squad2", held=False),
        single[: given.most],
        [] if given.no_two_hop else double[: given.most],
        [] if given.no_wiki else load_2wiki(given.dir / "2wiki"),
    )
    if given.notes:
        load_notes(pool)
    counts = {name: len(getattr(pool, name)) for name in ("human", "written", "two_hop", "wiki")}
    print(json.dumps({"passages": len(passages), **counts}), flush=True)
    return pool


def compose_epochs(given: argparse.Namespace, pool: Pool, tokenizer: bytes) -> list[EncodedSet]:
    """Encode the epochs before the GPU is used: first clozes, then questions."""
    mixture = Mixture(human=given.human, negatives=given.negatives, written=given.share)
    if given.no_together:
        mixture = replace(mixture, together=0.0)
    sets = []
    plans: list[list[Example]] = []
    if given.clozes:
        plans.append(write_clozes(list(pool.passages.values()), given.clozes, given.seed))
    for epoch in range(given.epochs):
        plans.append(compose_epoch(pool, mixture, random.Random(1000 * given.seed + epoch)))
    for examples in plans:
        began = time.perf_counter()
        made = encode_all(examples, tokenizer, given.window, given.workers)
        sets.append(made)
        answered = float((made.starts > 0).mean()) if len(made) else 0.0
        report = {
            "windows": len(made),
            "answered": round(answered, 3),
            "tokens": int(made.lengths.sum()),
            "seconds": round(time.perf_counter() - began, 1),
        }
        print(json.dumps(report), flush=True)
    return sets


def load_labelled(given: argparse.Namespace) -> list[EncodedSet]:
    """The windows that a teacher labelled (`bench.reader.teach`), once per epoch."""
    sets = []
    for path in given.soft:
        with np.load(path) as held:
            columns = {name: held[name] for name in (*COLUMNS, "soft")}
        sets.append(EncodedSet(**columns))
    return sets * given.epochs


class Average:
    """A moving average of the weights, which generalises better than the last ones."""

    def __init__(self, model: Any, decay: float = 0.999) -> None:
        """Start from the model's weights."""
        self.decay, self.steps = decay, 0
        self.held = [one.detach().clone() for one in model.parameters()]

    def update(self, model: Any) -> None:
        """Move a little towards the model's weights."""
        self.steps += 1
        decay = min(self.decay, self.steps / (self.steps + 10))
        current = [one.detach() for one in model.parameters()]
        torch._foreach_lerp_(self.held, current, 1 - decay)

    def swap(self, model: Any) -> None:
        """Exchange the averages and the model's weights."""
        for mine, other in zip(self.held, model.parameters(), strict=True):
            kept = other.detach().clone()
            other.data.copy_(mine)
            mine.copy_(kept)


def learning_rate(progress: float, peak: float) -> float:
    """Linear up, then down along a cosine; progress runs from 0 to 1."""
    if progress < WARM_UP:
        return peak * max(progress, 1e-3) / WARM_UP
    return peak * 0.5 * (1 + math.cos(math.pi * min(1.0, (progress - WARM_UP) / (1 - WARM_UP))))


def train(
    model: Any, sets: list[EncodedSet], given: argparse.Namespace, device: str
) -> tuple[Average, dict[str, float]]:
    """Train on all epochs, or until the time is up; the schedule ends with either."""
    decay = [one for one in model.parameters() if one.ndim > 1]
    plain = [one for one in model.parameters() if one.ndim <= 1]
    groups = [{"params": decay, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(
        groups, lr=given.lr, betas=(0.9, 0.98), eps=1e-6, fused=device == "cuda"
    )
    average, rng = Average(model), random.Random(given.seed)
    first = copy.deepcopy(model).eval() if given.near else None
    total = sum(int(one.lengths.sum()) for one in sets)
    began, seen, windows, steps = time.perf_counter(), 0, 0, 0
    loss_sum = torch.zeros((), device=device)
    model.train()
    for number, data in enumerate(sets):
        for batch in iterate_batches(data, given.tokens, rng, device):
            ids, types, mask, allowed, starts, ends, soft = batch
            spent = (time.perf_counter() - began) / (60 * given.minutes)
            if spent >= 1:
                break
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(max(seen / total, spent), given.lr)
            with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
                logits = model(ids, types, mask)
                trust: Any = given.trust
                if first is not None:
                    soft, trust = view_of(first, batch, given.near)
            loss = span_loss(logits, allowed, starts, ends, soft, trust)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            average.update(model)
            loss_sum += loss.detach()
            seen, windows, steps = seen + mask.numel(), windows + len(ids), steps + 1
            if steps % given.every == 0:
                seconds = time.perf_counter() - began
                report = {
                    "set": number,
                    "step": steps,
                    "loss": round(float(loss_sum) / given.every, 4),
                    "windows_per_s": round(windows / seconds),
                    "minutes": round(seconds / 60, 2),
                }
                print(json.dumps(report), flush=True)
                loss_sum.zero_()
    seconds = time.perf_counter() - began
    return average, {"steps": steps, "windows": windows, "seconds": round(seconds, 1)}


def evaluate(
    model: Any, maker: WindowMaker, folder: Path, device: str, most: int
) -> dict[str, dict[str, float]]:
    """Scores on what is held out, and on sets never trained on with their gold passages."""
    unseen = {
        f"{name} together": load_2wiki(folder / name, 0)[:most]
        for name in UNSEEN
        if (folder / name).is_dir()
    }
    held = load_squad(folder / "squad2", held=True)[:most]
    wiki = load_2wiki(folder / "2wiki", *DEV_2WIKI)[:most]
    notes = load_notes(Pool())[:most] if NOTES.is_file() else []
    sets = {"notes": notes, "squad2": held, "2wiki together": wiki, **unseen}
    return {
        name: summarise(read_with_torch(model, maker, examples, device))
        for name, examples in sets.items()
    }


def main() -> None:
    """Encode, train, evaluate and save, with the averaged and with the last weights."""
    given = parse_arguments()
    torch.manual_seed(given.seed)
    weights, tokenizer = load_weights(given.start or given.dir / "minilm.npz")
    sets = load_labelled(given) or compose_epochs(given, load_pool(given), tokenizer)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model: Any = ReaderModel(weights, given.drop).to(device)
    average, facts = train(model, sets, given, device)
    maker = WindowMaker(Tokenizer.from_buffer(tokenizer), given.window)
    given.out.mkdir(parents=True, exist_ok=True)
    tables = {}
    for which in ("last", "average"):
        if which == "average":
            average.swap(model)
        end = "" if which == "average" else "-last"
        save_weights(given.out / f"{given.name}{end}.npz", model.numpy_weights(), tokenizer)
        rows = evaluate(model, maker, given.dir, device, given.most_evaluated)
        tables |= {f"{given.name} {which}: {name}": row for name, row in rows.items()}
    print(format_table(tables), flush=True)
    options = {key: str(value) for key, value in vars(given).items()}
    (given.out / f"{given.name}.json").write_text(
        json.dumps({"options": options, "facts": facts, "scores": tables}, indent=1)
    )
    if not given.keep:
        copy_results(given)


def copy_results(given: argparse.Namespace) -> None:
    """Copy scores and averaged weights to $OUT: few files, none above 16 MB."""
    if not (target := os.environ.get("OUT")):
        return
    out = Path(target)
    (out / f"{given.name}.json").write_bytes((given.out / f"{given.name}.json").read_bytes())
    data = (given.out / f"{given.name}.npz").read_bytes()
    for number, at in enumerate(range(0, len(data), PART_BYTES)):
        (out / f"{given.name}.npz.part-{number}").write_bytes(data[at : at + PART_BYTES])


def add_data_options(ask: argparse.ArgumentParser) -> None:
    """Options of what is trained on, which the large reader has too."""
    ask.add_argument("--dir", type=Path, required=True)
    ask.add_argument("--out", type=Path, required=True)
    ask.add_argument("--written", type=Path, nargs="*", default=[])
    ask.add_argument("--start", type=Path, help="weights to start from, if not the encoder's")
    ask.add_argument("--window", type=int, default=384)
    ask.add_argument("--seed", type=int, default=0)
    ask.add_argument("--human", type=int, default=6, help="repetitions of a human question")
    ask.add_argument("--share", type=float, default=1.0, help="of written questions, per epoch")
    ask.add_argument("--negatives", type=float, default=0.4)
    ask.add_argument("--most", type=int, default=10**9, help="written questions at most")
    ask.add_argument("--most-evaluated", type=int, default=10**9)
    ask.add_argument("--notes", action="store_true", help="train on `bench.reader.notes`, too")
    ask.add_argument("--no-two-hop", action="store_true")
    ask.add_argument("--no-wiki", action="store_true")
    ask.add_argument("--workers", type=int, default=16)


def parse_arguments() -> argparse.Namespace:
    """Options of the command."""
    ask = argparse.ArgumentParser()
    add_data_options(ask)
    ask.add_argument("--soft", type=Path, nargs="*", default=[], help="windows a teacher labelled")
    ask.add_argument("--trust", type=float, default=0.75, help="share of a teacher's view")
    ask.add_argument(
        "--near", type=float, default=0.0, help="share of the start's own view where it is right"
    )
    ask.add_argument("--name", default="reader")
    ask.add_argument("--minutes", type=float, default=4.0, help="of training")
    ask.add_argument("--epochs", type=int, default=4)
    ask.add_argument("--tokens", type=int, default=16_384, help="cells of a batch")
    ask.add_argument("--lr", type=float, default=1.5e-4)
    ask.add_argument("--drop", type=float, default=0.1)
    ask.add_argument("--clozes", type=int, default=0, help="clozes to train on first")
    ask.add_argument("--no-together", action="store_true", help="no windows of several passages")
    ask.add_argument("--keep", action="store_true", help="copy nothing to $OUT")
    ask.add_argument("--every", type=int, default=200, help="steps between reports")
    return ask.parse_args()


if __name__ == "__main__":
    main()
