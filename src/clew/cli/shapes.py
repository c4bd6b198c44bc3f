"""JSON output of `clew search` and `clew ask`; programs rely on its keys."""

from typing import Any

from clew.agents.answer import Answer, Results
from clew.cli.door import to_json_value


def search_json(found: Results) -> dict[str, Any]:
    """Return the output of `clew search --json`."""
    return {**_common_fields(found), **to_json_value(found.evidence)}


def answer_json(answer: Answer) -> dict[str, Any]:
    """Return the output of `clew ask --json`."""
    return {
        **_common_fields(answer),
        "answer": answer.answer,
        "candidate": answer.candidate,
        "verdict": answer.verdict,
        "note": answer.note,
        "missing": answer.missing,
        "complete": answer.complete,
        "citations": to_json_value(answer.citations),
        **to_json_value(answer.evidence),
        "trace": to_json_value(answer.trace),
    }


def _common_fields(done: Results | Answer) -> dict[str, Any]:
    """Return the fields of both outputs: question, recipe, seconds and usage."""
    return {
        "question": done.question,
        "recipe": done.recipe,
        "seconds": round(done.seconds, 6),
        "usage": to_json_value(done.usage),
    }
