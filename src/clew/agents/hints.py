"""What code can read: the span reader's guesses, offered to a model as marked hints."""

from dataclasses import replace

import numpy as np

from clew.context import Context
from clew.types import Evidence, Finding

_MOST = 3
_MIN_CHANCE = 0.1
_READ = 8  # passages


async def add_hints(ctx: Context, evidence: Evidence) -> Evidence:
    """Add what the span reader finds in the best passages; nothing where it cannot read."""
    passages = evidence.chunks[:_READ]
    if ctx.reader is None or not passages or not ctx.reader.reads(ctx.question):
        return evidence
    titles = [one.title for one in passages]
    spans = ctx.reader.read(ctx.question, [one.text for one in passages], titles=titles, most=_MOST)
    findings = [
        Finding(
            f"a span reader's guess, right with a chance of {chance:.0%}: “{span.text}”, read in "
            f"“{passages[span.passage].title or passages[span.passage].doc}”",
            "reader",
            (passages[span.passage],),
            chance,
        )
        for span in spans
        if (chance := float(1 / (1 + np.exp(-span.score)))) >= _MIN_CHANCE
    ]
    return replace(evidence, findings=(*evidence.findings, *findings))
