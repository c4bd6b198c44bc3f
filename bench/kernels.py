"""The compiled loops against numpy: sign bits and cosines of many vectors.

`python -m bench.kernels [--rows N]`. Processor time in milliseconds, the least of several runs, on
random unit vectors. Set OPENBLAS_NUM_THREADS=1: numpy's waiting threads are counted, too.
"""

import argparse
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np

from bench.machine import print_result
from clew import kernels
from clew.index.cosines import score_rows
from clew.store.sign_bits import make_sign_bits

DIMENSIONS = 384
RUNS = 15
SELECTED = 2000  # rows that a search compares exactly


def least_ms(call: Callable[[], Any]) -> float:
    """The shortest of several runs."""
    times = []
    for _ in range(RUNS):
        began = process_time()
        call()
        times.append(process_time() - began)
    return round(1000 * min(times), 2)


def main() -> None:
    """Measure both ways and print them."""
    parser = argparse.ArgumentParser(prog="python -m bench.kernels", description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    given = parser.parse_args()
    numbers = np.random.default_rng(0)
    vectors = numbers.standard_normal((given.rows, DIMENSIONS), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    halves, bits = vectors.astype(np.float16), make_sign_bits(vectors)
    some, all_rows = numbers.permutation(given.rows)[:SELECTED], np.arange(given.rows)
    calls: dict[str, Callable[[], Any]] = {
        f"sign bits of {given.rows:,}": lambda: bits.distances(vectors[0]),
        f"{SELECTED:,} rows of 32 bits": lambda: score_rows(vectors, some, vectors[0]),
        f"{SELECTED:,} rows of 16 bits": lambda: score_rows(halves, some, vectors[0]),
        "all rows of 32 bits": lambda: score_rows(vectors, all_rows, vectors[0]),
        "all rows of 16 bits": lambda: score_rows(halves, all_rows, vectors[0]),
    }
    compiled, figures = kernels.COMPILED, {}
    if compiled is None:
        raise SystemExit("the kernels are not compiled: there was no C compiler at installation")
    for name, call in calls.items():
        found = {}
        for way, use in (("compiled", compiled), ("numpy", None)):
            kernels.COMPILED = use
            found[way] = least_ms(call)
        kernels.COMPILED, figures[name] = compiled, found
        print(f"{name:<24} {found['compiled']:>8} {found['numpy']:>8}", flush=True)
    print_result("kernels", figures, {"rows": given.rows, "dimensions": DIMENSIONS})


if __name__ == "__main__":
    main()
