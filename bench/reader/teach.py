"""On the GPU machine: trains a large reader and lets it label windows for the small one.

    PYTHONPATH=src python3 -m bench.reader.teach --model DIR/hf --dir DIR/reader \
        --start DIR/reader/reader.npz --written DIR/written*.gz --out OUT --minutes 4

OUT/soft.npz holds the small reader's windows with a probability for every start and end; train
with `bench.reader.train --soft OUT/soft.npz`. OUT/teacher.json holds the large reader's scores on
the SQuAD articles held out.
"""

import argparse
import json
import math
import random
import time
from collections.abc import Iterator, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

try:
    import torch
except ImportError as missing:
    raise SystemExit("this needs torch; install the extra: pip install 'clew[train]'") from missing

from torch.nn.functional import cross_entropy

from bench.reader.batches import COLUMNS, EncodedSet, cut_batches, pack_windows
from bench.reader.examples import (
    Encoded,
    Example,
    Mixture,
    compose_epoch,
    label_windows,
    load_squad,
)
from bench.reader.model import load_weights, span_logits
from bench.reader.scoring import Scored, format_table, summarise
from bench.reader.teacher import Lesson, Teacher, make_lesson
from bench.reader.train import add_data_options, learning_rate, load_pool
from clew.reader.windows import WindowMaker

CHUNK = 256  # examples a worker encodes at a time
LONGEST = 24  # tokens of an answer
_made: dict[str, Any] = {}  # tokenizers of a worker process


def encode_lessons(
    examples: Sequence[Example], given: argparse.Namespace, tokenizer: bytes
) -> tuple[list[Lesson], list[Encoded]]:
    """Every window of every example, in the teacher's tokens and in the small reader's."""
    prepared = (tokenizer, str(given.model / "tokenizer.json"), given.window)
    parts = [examples[at : at + CHUNK] for at in range(0, len(examples), CHUNK)]
    if given.workers <= 1:
        _prepare(*prepared)
        done = [_encode_part(part) for part in parts]
    else:
        with get_context("fork").Pool(given.workers, _prepare, prepared) as pool:
            done = pool.map(_encode_part, parts, chunksize=1)
    both = [pair for part in done for pair in part]
    return [one for one, _ in both], [other for _, other in both]


def _prepare(small: bytes, large: str, window: int) -> None:
    _made["maker"] = WindowMaker(Tokenizer.from_buffer(small), window)
    _made["large"] = Tokenizer.from_file(large)


def _encode_part(examples: Sequence[Example]) -> list[tuple[Lesson, Encoded]]:
    pairs = []
    for example in examples:
        for window, labelled in label_windows(_made["maker"], example):
            answer = (labelled.start, labelled.end) if labelled.start else None
            pairs.append((make_lesson(_made["large"], example, window, answer), labelled))
    return pairs


def iterate(
    lessons: Sequence[Lesson], tokens: int, rng: random.Random, device: str
) -> Iterator[Any]:
    """All lessons once, in random batches: numbers, ids, mask, allowed, starts and ends."""
    lengths = np.array([len(one.ids) for one in lessons], np.int32)
    for chosen in cut_batches(lengths, tokens, rng):
        width = -(-int(lengths[chosen].max()) // 8) * 8
        ids = np.zeros((len(chosen), width), np.int64)
        starts, ends = np.full(ids.shape, -1, np.int64), np.full(ids.shape, -1, np.int64)
        for row, number in enumerate(chosen):
            one = lessons[number]
            ids[row, : len(one.ids)] = one.ids
            starts[row, : len(one.ids)], ends[row, : len(one.ids)] = one.starts, one.ends
        mask = np.arange(width)[None] < lengths[chosen][:, None]
        yield chosen, *(torch.from_numpy(one).to(device) for one in (ids, mask, starts, ends))


def train_teacher(
    model: Any, lessons: Sequence[Lesson], given: argparse.Namespace, device: str
) -> dict[str, float]:
    """One pass over the lessons, or as much as the time allows."""
    optimizer = torch.optim.AdamW(
        [
            {"params": list(model.held.parameters()), "peak": given.lr},
            {"params": list(model.span.parameters()), "peak": 50 * given.lr},
        ],
        betas=(0.9, 0.98),
        weight_decay=0.0,
        fused=device == "cuda",
    )
    total, seen, steps, skipped = sum(len(one.ids) for one in lessons), 0, 0, 0
    began, loss_sum = time.perf_counter(), 0.0
    model.train()
    for chosen, ids, mask, starts, _ in iterate(lessons, given.tokens, random.Random(0), device):
        spent = (time.perf_counter() - began) / (60 * given.minutes)
        if spent >= 1:
            break
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(max(seen / total, spent), group["peak"])
        with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
            logits = span_logits(model(ids, mask), starts >= 0)
        wanted = torch.tensor([[lessons[n].start, lessons[n].end] for n in chosen], device=device)
        loss = cross_entropy(logits[..., 0], wanted[:, 0]) + cross_entropy(
            logits[..., 1], wanted[:, 1]
        )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        seen, steps = seen + int(mask.sum()), steps + 1
        if not torch.isfinite(norm):  # a fused kernel overflowed; the weights must not see it
            skipped += 1
            continue
        optimizer.step()
        loss_sum += float(loss.detach())
        if steps % 25 == 0:
            seconds = time.perf_counter() - began
            line = {"step": steps, "loss": round(loss_sum / 25, 3), "seconds": round(seconds)}
            print(json.dumps({**line, "tokens_per_s": round(seen / seconds)}), flush=True)
            loss_sum = 0.0
    return {"steps": steps, "skipped": skipped, "tokens": seen, "of": total}


def label(
    model: Any,
    lessons: Sequence[Lesson],
    windows: EncodedSet,
    given: argparse.Namespace,
    device: str,
) -> NDArray[np.float16]:
    """Probabilities of starts and ends for every token of the small reader's windows."""
    offsets = np.concatenate([[0], np.cumsum(windows.lengths, dtype=np.int64)])
    out = np.zeros((int(offsets[-1]), 2), np.float16)
    model.eval()
    done, began = 0, time.perf_counter()
    with torch.inference_mode():
        for chosen, ids, mask, starts, ends in iterate(
            lessons, 4 * given.tokens, random.Random(1), device
        ):
            with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
                logits = span_logits(model(ids, mask), starts >= 0)
            chances = (logits / given.temperature).softmax(1)
            width = int(windows.lengths[chosen].max())
            told = torch.zeros(len(chosen), width, 2, device=device)
            told[..., 0].scatter_add_(1, starts.clamp(min=0), chances[..., 0] * (starts >= 0))
            told[..., 1].scatter_add_(1, ends.clamp(min=0), chances[..., 1] * (ends >= 0))
            rows = told.half().cpu().numpy()
            for row, number in enumerate(chosen):
                first, last = offsets[number], offsets[number + 1]
                out[first:last] = rows[row, : last - first]
            done += len(chosen)
            if time.perf_counter() - began > 60 * given.label_minutes:
                break
    print(json.dumps({"labelled": done, "of": len(lessons)}), flush=True)
    return out


def evaluate(
    model: Any, given: argparse.Namespace, tokenizer: bytes, device: str
) -> dict[str, float]:
    """Scores of the teacher on the SQuAD articles held out."""
    held = load_squad(given.dir / "squad2", held=True)[: given.most_evaluated]
    _prepare(tokenizer, str(given.model / "tokenizer.json"), given.window)
    best = [Scored("", -1e9, one.golds) for one in held]
    lessons, whose = [], []
    for number, example in enumerate(held):
        plain = Example(example.question, example.passages, None, "human")
        for window, _ in label_windows(_made["maker"], plain):
            lessons.append(make_lesson(_made["large"], example, window, None))
            whose.append((number, window))
    model.eval()
    with torch.inference_mode():
        for chosen, ids, mask, starts, _ in iterate(
            lessons, given.tokens, random.Random(0), device
        ):
            with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
                logits = span_logits(model(ids, mask), starts >= 0).cpu().numpy()
            for row, number in enumerate(chosen):
                at, window = whose[number]
                found = _best_span(logits[row], lessons[number], window, held[at])
                if found.score > best[at].score:
                    best[at] = found
    return summarise(best)


def _best_span(logits: Any, lesson: Lesson, window: Any, example: Example) -> Scored:
    best, place = -math.inf, (0, 0)
    allowed = [at for at, one in enumerate(lesson.starts) if one > 0]
    for first in sorted(allowed, key=lambda at: -logits[at, 0])[:20]:
        for last in range(first, min(first + LONGEST, len(lesson.ids))):
            if lesson.ends[last] > 0 and logits[first, 0] + logits[last, 1] > best:
                best, place = float(logits[first, 0] + logits[last, 1]), (first, last)
    begin, end = lesson.starts[place[0]], lesson.ends[place[1]]
    text = example.passages[0].text[window.starts[begin] : window.ends[end]] if begin > 0 else ""
    return Scored(text, best - float(logits[0, 0] + logits[0, 1]), example.golds)


def main() -> None:
    """Train the teacher, measure it, and label windows."""
    ask = argparse.ArgumentParser()
    add_data_options(ask)
    ask.add_argument("--model", type=Path, required=True)
    ask.add_argument("--minutes", type=float, default=4.0, help="of training the teacher")
    ask.add_argument("--label-minutes", type=float, default=6.0)
    ask.add_argument("--labelled", type=int, default=120_000, help="windows at most")
    ask.add_argument("--tokens", type=int, default=8192, help="cells of a batch")
    ask.add_argument("--lr", type=float, default=1e-5)
    ask.add_argument("--temperature", type=float, default=1.0, help="of the labels")
    given = ask.parse_args()
    torch.manual_seed(given.seed)
    _, tokenizer = load_weights(given.start or given.dir / "minilm.npz")
    pool = load_pool(given)
    mixture = Mixture(human=given.human, negatives=given.negatives, written=given.share)
    examples = compose_epoch(pool, mixture, random.Random(given.seed))
    while len(examples) < given.labelled:
        examples += compose_epoch(pool, mixture, random.Random(given.seed + len(examples)))
    lessons, windows = encode_lessons(examples[: given.labelled], given, tokenizer)
    print(json.dumps({"windows": len(lessons), "tokens": sum(len(x.ids) for x in lessons)}))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model: Any = Teacher(given.model).to(device)
    facts = train_teacher(model, lessons, given, device)
    scores = evaluate(model, given, tokenizer, device)
    print(format_table({"teacher": scores}), flush=True)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "teacher.json").write_text(json.dumps({"facts": facts, "squad2": scores}))
    packed = pack_windows(windows)
    soft = label(model, lessons, packed, given, device)
    columns = {name: getattr(packed, name) for name in COLUMNS}
    np.savez(given.out / "soft.npz", soft=soft, **columns)


if __name__ == "__main__":
    main()
