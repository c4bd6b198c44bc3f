"""Writes the mean of trained scorers or readers; a scorer's is measured on what is held out.

    PYTHONPATH=src python3 -m bench.query_scorer.mean A.npz B.npz [--shares 0.5 0.5] \
        [--pairs PAIRS.gz …] --out MEAN.npz
"""

import argparse
import json
from pathlib import Path

try:
    import torch
except ImportError as missing:
    raise SystemExit("this needs torch; install the extra: pip install 'clew[train]'") from missing

from bench.query_scorer.train import Encoder, load_questions, measure, sample_questions
from bench.reader.model import ReaderModel, load_weights, save_weights


def main() -> None:
    """Write the mean of the weights, and measure it."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("files", type=Path, nargs="+")
    ask.add_argument("--shares", type=float, nargs="*", help="of each file; the same without")
    ask.add_argument("--out", type=Path, required=True)
    ask.add_argument("--pairs", type=Path, nargs="*", default=[])
    ask.add_argument("--measured", type=int, default=4000, help="questions held out")
    given = ask.parse_args()
    shares = given.shares or [1 / len(given.files)] * len(given.files)
    every = [load_weights(one) for one in given.files]
    weights = {
        name: sum(share * one[name] for share, (one, _) in zip(shares, every, strict=True))
        for name in every[0][0]
    }
    save_weights(given.out, weights, every[0][1])
    if given.pairs:
        device = "cuda" if torch.cuda.is_available() else "cpu"
        held = sample_questions(load_questions(given.pairs, held=True), given.measured)
        found = measure(ReaderModel(weights).to(device), Encoder(every[0][1]), held)
        print(json.dumps({"shares": shares, **found}), flush=True)


if __name__ == "__main__":
    main()
