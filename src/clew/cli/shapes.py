"""JSON output of `clew search` and `clew ask`; programs rely on its keys."""

from typing import Any

from clew.agents.answer import Answer, Results
from clew.cli.door import plain


def search_json(found: Results) -> dict[str, Any]:
    """Return the output of `clew search --json`."""
    return {**_asked(found), **plain(found.evidence)}


def answer_json(answer: Answer) -> dict[str, Any]:
    """Return the output of `clew ask --json`."""
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
    """Return the fields of both outputs: question, recipe, seconds and usage."""
    return {
        "question": done.question,
        "recipe": done.recipe,
        "seconds": round(done.seconds, 6),
        "usage": plain(done.usage),
    }
