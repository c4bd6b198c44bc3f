"""What commands print with --json, as programs rely on it."""

from typing import Any

from clew.agents.answer import Answer, Results
from clew.cli.door import plain


def search_json(found: Results) -> dict[str, Any]:
    """The contract of `clew search --json`."""
    return {**_asked(found), **plain(found.evidence)}


def answer_json(answer: Answer) -> dict[str, Any]:
    """The contract of `clew ask --json`."""
    return {
        **_asked(answer),
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


def _asked(done: Results | Answer) -> dict[str, Any]:
    """What was asked, how it was answered, and what it took."""
    return {
        "question": done.question,
        "recipe": done.recipe,
        "seconds": round(done.seconds, 6),
        "usage": plain(done.usage),
    }
