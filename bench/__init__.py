"""Benchmarks, one module each: `python -m bench.NAME`; the last line is one JSON object."""
