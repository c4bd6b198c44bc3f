"""Benchmarks, one module each: `python -m bench.NAME`; the last line is one JSON object."""

import clew  # noqa: F401  (before NumPy: it sets how idle threads wait)
