"""What commands print with --json, as programs rely on it."""

from typing import Any

from clew.agents.answer import Answer, Results
from clew.cli.door import plain


def search_json(found: Results) -> dict[str, Any]:
    """The contract of `clew search --json`."""
    return {
        "question": found.question,
        "recipe": found.recipe,
        "seconds": round(found.seconds, 6),
        "usage": plain(found.usage),
        **plain(found.evidence),
    }


def answer_json(answer: Answer) -> dict[str, Any]:
    """The contract of `clew ask --json`."""
    return {
        "question": answer.question,
        "recipe": answer.recipe,
        "seconds": round(answer.seconds, 6),
        "usage": plain(answer.usage),
        "answer": answer.answer,
        "candidate": answer.candidate,
        "verdict": answer.verdict,
        "note": answer.note,
        "missing": answer.missing,
        "complete": answer.complete,
        "citations": plain(answer.citations),
        **plain(answer.evidence),
        "trace": plain(answer.trace),
    }
