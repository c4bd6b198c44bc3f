"""Trains the query scorer: the local encoder, and one number for a question beside a query.

    PYTHONPATH=src python3 -m bench.query_scorer.train --pairs PAIRS.gz … --start minilm.npz \
        --out NAME.npz --minutes 1.5

Each pair of a question and the words of a query, of a part of one, of a path of relations or of an
answer is right or wrong; `--pairs` come from `bench.query_scorer.pairs` and `spans`. Every seventh
table and graph and every eighth note is held out. On a GPU a minute does, on two cores an hour.
"""

import argparse
import gzip
import json
import random
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

try:
    import torch
except ImportError as missing:
    raise SystemExit("this needs torch; install the extra: pip install 'clew[train]'") from missing

from bench.reader.model import ReaderModel, load_weights, save_weights

MAX_TOKENS = 128
WARM_UP = 0.06
AHEAD = 4  # batches of each process
QUESTIONS = 32  # measured at a time
KINDS = ("part", "cond", "full", "path", "span", "state")
RIVALS = ("full", "path", "span")
"""Kinds of which one is asked for at most, perhaps said in several ways: they are compared with
each other, too."""
WRONG = {"part": 4, "cond": 5, "full": 9, "path": 9, "span": 5, "state": 5}
"""Wrong ones of each kind that a question is trained with at a time."""
UNSAID = -1
READ = 50_000  # texts at a time
CHUNKS = 2  # rows of similar length that are padded together
Tokens = tuple[Any, ...]
Encoded = tuple[list[Tokens], Any]
AVERAGED = 0.999  # share of the averaged weights that stays at each step
DECISION = 0.1  # weight of yes or no


def load_questions(files: list[Path], held: bool) -> list[dict[str, Any]]:
    """Read the questions that are trained on, or those held out."""
    found = []
    for file in files:
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            found += [one for one in map(json.loads, lines) if one["held"] == held]
    return found


def choose_items(one: dict[str, Any], rng: random.Random) -> list[tuple[str, str, int, int, bool]]:
    """Return the right items of a question and some wrong ones of each kind.

    Then whether each is right, what a statement says (1 for yes, 0 for no, UNSAID for everything
    else), and whether it is compared with others of the question.
    """
    wrong = defaultdict(list)
    found = []
    for text, right, kind, *says in one["items"]:
        if right:
            found.append((one["q"], text, 1, says[0] if says else UNSAID, kind in RIVALS))
        else:
            wrong[kind].append(text)
    for kind, texts in wrong.items():
        some = rng.sample(texts, min(len(texts), WRONG[kind]))
        found += [(one["q"], text, 0, UNSAID, kind in RIVALS) for text in some]
    return found


def read_logits(model: Any, encoded: Encoded, device: str) -> Any:
    """Return the two logits of each pair at its first token."""
    chunks, places = encoded
    with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
        firsts = [model(*(one.to(device) for one in tokens))[:, 0] for tokens in chunks]
    return torch.cat(firsts).float()[places.to(device)]


class Encoder:
    """Turns pairs of texts into padded rows of token ids; texts are read once."""

    def __init__(self, tokenizer: bytes) -> None:
        """Take the encoder's tokenizer."""
        self.tokenizer = Tokenizer.from_buffer(tokenizer)
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.first, self.last, self.unknown = (
            self.tokenizer.token_to_id(one) for one in ("[CLS]", "[SEP]", "[MASK]")
        )
        self.known: dict[str, Any] = {}

    def read(self, texts: Iterable[str]) -> None:
        """Keep the tokens of texts."""
        new = [one for one in dict.fromkeys(texts) if one not in self.known]
        for start in range(0, len(new), READ):
            some = new[start : start + READ]
            for text, row in zip(
                some, self.tokenizer.encode_batch(some, add_special_tokens=False), strict=True
            ):
                self.known[text] = np.array(row.ids, np.uint16)

    def __call__(self, pairs: list[tuple[str, str]], unread: float = 0.0) -> Encoded:
        """Return ids, types and mask of rows of similar length, and where each pair's row is.

        Of the question's tokens a share may be left unread, as training does.
        """
        self.read(text for pair in pairs for text in pair)
        rows = [self._cut(self.known[one], self.known[other]) for one, other in pairs]
        order = sorted(range(len(rows)), key=lambda at: len(rows[at][0]) + len(rows[at][1]))
        size = -(-len(rows) // CHUNKS)
        some = [[rows[i] for i in order[at : at + size]] for at in range(0, len(rows), size)]
        places = torch.from_numpy(np.argsort(np.array(order)))
        return [self._pad(one, unread) for one in some], places

    def _cut(self, asked: Any, text: Any) -> tuple[Any, Any]:
        """Take tokens off the end of the longer of both, as the tokenizer does."""
        most = MAX_TOKENS - 3
        if len(asked) + len(text) > most:
            shorter = min(len(asked), len(text), most // 2)
            room = max(shorter, most - shorter)
            asked, text = (
                (asked[:room], text[:shorter])
                if len(asked) > len(text)
                else (asked[:shorter], text[:room])
            )
        return asked, text

    def _pad(self, rows: list[tuple[Any, Any]], unread: float) -> Tokens:
        width = max(len(asked) + len(text) for asked, text in rows) + 3
        ids, types = np.zeros((2, len(rows), width), np.int64)
        mask = np.zeros((len(rows), width), np.bool_)
        asked_here = np.zeros((len(rows), width), np.bool_)
        for at, (asked, text) in enumerate(rows):
            middle, end = len(asked) + 1, len(asked) + len(text) + 2
            ids[at, 0], ids[at, middle], ids[at, end] = self.first, self.last, self.last
            ids[at, 1:middle], ids[at, middle + 1 : end] = asked, text
            types[at, middle + 1 : end + 1] = 1
            mask[at, : end + 1], asked_here[at, 1:middle] = True, True
        if unread:
            ids[asked_here & (np.random.random(ids.shape) < unread)] = self.unknown
        return tuple(torch.from_numpy(one) for one in (ids, types, mask))


class Batches(torch.utils.data.IterableDataset[tuple[Encoded, Any]]):
    """Tokens and labels of some questions, without end; each process draws its own."""

    def __init__(self, questions: list[dict[str, Any]], encode: Encoder, given: Any) -> None:
        """Take the questions; `given` has the size of a batch and the seed."""
        self.questions, self.encode, self.given = questions, encode, given

    def __iter__(self) -> Iterator[tuple[Encoded, Any]]:
        """Yield batches in an order by chance."""
        worker = torch.utils.data.get_worker_info()
        number, workers = (worker.id, worker.num_workers) if worker else (0, 1)
        rng, size = random.Random(self.given.seed * 1000 + number), self.given.batch
        own = range(number, len(self.questions), workers)
        while True:
            order = rng.sample(own, len(own))
            for at in range(0, len(order), size):
                yield self._make([self.questions[i] for i in order[at : at + size]], rng)

    def _make(self, some: list[dict[str, Any]], rng: random.Random) -> tuple[Encoded, Any]:
        items = [
            (*item[:4], number if item[4] else UNSAID)
            for number, one in enumerate(some)
            for item in choose_items(one, rng)
        ]
        labels = torch.tensor([one[2:] for one in items])
        return self.encode([one[:2] for one in items], self.given.unread), labels


def measure_loss(logits: Any, labels: Any, targets: Any, rivalry: float) -> Any:
    """Cross-entropy of what is asked, of yes or no, and of the right one among its rivals."""
    entropy = torch.nn.functional.binary_cross_entropy_with_logits
    right, says, question = labels[:, 0], labels[:, 1], labels[:, 2]
    loss = entropy(logits[:, 0], targets)
    decided = says >= 0
    if bool(decided.any()):
        said = says[decided].float()
        share = said.mean().clamp(0.1, 0.9)  # yes and no weigh alike, however many there are
        weight = torch.where(said > 0, 0.5 / share, 0.5 / (1 - share))
        loss = loss + DECISION * entropy(logits[decided, 1], said, weight)
    return loss + rivalry * compare_rivals(logits[:, 0], right, question)


class Teachers:
    """Scorers trained before, whose mean view is a share of what is learnt."""

    def __init__(self, files: list[Path], share: float, device: str) -> None:
        """Open their weights."""
        self.share, self.device = share, device
        self.models = [ReaderModel(load_weights(one)[0]).to(device).eval() for one in files]

    def soften(self, encoded: Encoded, right: Any) -> Any:
        """Return what each pair is to score, between its label and the teachers' mean."""
        target = right.float()
        if not self.models:
            return target
        with torch.no_grad():
            views = [read_logits(one, encoded, self.device)[:, 0].sigmoid() for one in self.models]
        return (1 - self.share) * target + self.share * torch.stack(views).mean(0)


def compare_rivals(logits: Any, right: Any, question: Any) -> Any:
    """Cross-entropy of the right items of each question together, or of none, whose logit is 0."""
    among = question >= 0
    if not bool(among.any()):
        return logits.sum() * 0
    own, number, good = logits[among].clamp(-30, 30).exp(), question[among], right[among].float()
    zeros = torch.zeros(int(question.max()) + 1, device=own.device)
    asked = zeros.clone().index_fill_(0, number, 1.0) > 0
    every = (zeros + 1.0).index_add(0, number, own)
    rights = zeros.index_add(0, number, own * good)
    meant = torch.where(rights > 0, rights, torch.ones_like(rights))
    return (every.log() - meant.log())[asked].mean()


def train(model: Any, encode: Encoder, questions: list[dict[str, Any]], given: Any) -> None:
    """Train for so many minutes or epochs."""
    device = next(model.parameters()).device
    steps = max(1, int(given.epochs * len(questions) / given.batch))
    fused = device.type == "cuda"
    optimiser = torch.optim.AdamW(model.parameters(), lr=given.rate, weight_decay=0.01, fused=fused)
    averaged = make_average(model) if given.average else None
    teachers = Teachers(given.teachers, given.trust, device.type)
    start, done, loss_sum = time.time(), 0, 0.0
    encode.read(text for one in questions for text in (one["q"], *(i[0] for i in one["items"])))
    print(f"{len(encode.known)} texts read in {time.time() - start:.0f} s", flush=True)
    start = time.time()
    made = Batches(questions, encode, given)
    ahead = {"prefetch_factor": AHEAD} if given.workers else {}
    batches = iter(
        torch.utils.data.DataLoader(made, batch_size=None, num_workers=given.workers, **ahead)
    )
    while done < steps:
        spent = (time.time() - start) / (60 * given.minutes)
        share = max(done / steps, spent)
        if share >= 1:
            break
        rate = given.rate * min(share / WARM_UP, (1 - share) / (1 - WARM_UP)) + 1e-7
        for group in optimiser.param_groups:
            group["lr"] = rate
        encoded, labels = next(batches)
        logits, labels = read_logits(model, encoded, device.type), labels.to(device)
        targets = teachers.soften(encoded, labels[:, 0])
        loss = measure_loss(logits, labels, targets, given.rivalry)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        if averaged is not None:
            averaged.update_parameters(model)
        done, loss_sum = done + 1, loss_sum + float(loss.detach())
        if done % 100 == 0:
            print(
                f"{done}/{steps} loss {loss_sum / 100:.4f} {time.time() - start:.0f} s", flush=True
            )
            loss_sum = 0.0
    if averaged is not None:
        model.load_state_dict(averaged.module.state_dict())


def make_average(model: Any) -> Any:
    """Return weights that follow those of the model, a thousandth of the way at each step."""
    follow = torch.optim.swa_utils.get_ema_multi_avg_fn(AVERAGED)
    return torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=follow)


def measure(model: Any, encode: Encoder, questions: list[dict[str, Any]]) -> dict[str, float]:
    """Return how often the right query is the best of its kind, and how sure that is."""
    model.eval()
    found: dict[str, list[float]] = defaultdict(list)
    asked = [one for one in questions if one["items"]]
    with torch.inference_mode():
        for start in range(0, len(asked), QUESTIONS):
            some = asked[start : start + QUESTIONS]
            pairs = [(one["q"], item[0]) for one in some for item in one["items"]]
            logits = read_logits(model, encode(pairs), next(model.parameters()).device.type)
            chances = logits.sigmoid().cpu().numpy()
            ends = np.cumsum([len(one["items"]) for one in some])
            for one, own in zip(some, np.split(chances, ends[:-1]), strict=True):
                _count(found, one["items"], own)
    return {name: round(float(np.mean(values)), 4) for name, values in found.items() if values}


def _count(found: dict[str, list[float]], items: list[Any], chance: Any) -> None:
    """Count what is right and what is told for one question."""
    for kind in KINDS:
        at = [i for i, item in enumerate(items) if item[2] == kind]
        if not at:
            continue
        right = np.array([items[i][1] for i in at], np.bool_)
        own = chance[at, 0]
        says = [(items[i][3], chance[i, 1]) for i in at if len(items[i]) > 3]
        found["yes or no right"] += [float((own_yes >= 0.5) == bool(yes)) for yes, own_yes in says]
        if kind in ("part", "cond"):
            found[f"{kind} missed"] += (own[right] < 0.1).astype(float).tolist()
            found[f"{kind} told wrongly"] += (own[~right] >= 0.5).astype(float).tolist()
        elif right.any():
            first = bool(right[own.argmax()])
            found[f"{kind} first right"].append(first)
            found[f"{kind} told right"].append(first and own.max() >= 0.5)
            found[f"{kind} told wrong"].append(not first and own.max() >= 0.5)
        else:
            found[f"{kind} none told"].append(own.max() >= 0.5)


def main() -> None:
    """Train, measure on what was held out, and write the weights."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--pairs", type=Path, nargs="+", required=True)
    ask.add_argument("--start", type=Path, required=True)
    ask.add_argument("--out", type=Path, required=True)
    ask.add_argument("--minutes", type=float, default=5.0)
    ask.add_argument("--epochs", type=float, default=6.0)
    ask.add_argument("--batch", type=int, default=24, help="questions of a step")
    ask.add_argument("--rate", type=float, default=1e-4)
    ask.add_argument("--seed", type=int, default=0)
    ask.add_argument("--rivalry", type=float, default=0.15, help="weight of the best of rivals")
    ask.add_argument("--workers", type=int, default=8, help="processes that make batches")
    ask.add_argument("--measured", type=int, default=4000, help="questions held out")
    ask.add_argument("--unread", type=float, default=0.0, help="share of a question left unread")
    ask.add_argument("--average", action="store_true", help="write the mean of late weights")
    ask.add_argument("--teachers", type=Path, nargs="*", default=[], help="scorers trained before")
    ask.add_argument("--trust", type=float, default=0.5, help="share of the teachers' view")
    ask.add_argument("--all", action="store_true", help="train on what is held out, too")
    given = ask.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(given.seed)
    weights, tokenizer = load_weights(given.start)
    model = ReaderModel(weights).to(device)
    encode = Encoder(tokenizer)
    held = load_questions(given.pairs, held=True)
    questions = load_questions(given.pairs, held=False) + (held if given.all else [])
    print(f"{len(questions)} questions, {len(held)} held out, on {device}", flush=True)
    model.train()
    train(model, encode, questions, given)
    save_weights(given.out, model.numpy_weights(), tokenizer)
    print(json.dumps(measure(model, encode, sample_questions(held, given.measured))), flush=True)


def sample_questions(questions: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """Return the same sample of questions for every scorer that is measured."""
    return random.Random(0).sample(questions, min(most, len(questions)))


if __name__ == "__main__":
    main()
