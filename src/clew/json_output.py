"""Results as JSON values, the same for the command line and the server."""

import math
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from clew.agents.base import Answer, Results
from clew.context import AnswerDelta, Event, StepEnded, StepStarted
from clew.llm.limits import ModelWait
from clew.types import Route


def to_json_value(value: Any) -> Any:
    """Convert a value to JSON types; NaN and infinity become null."""
    if is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: to_json_value(getattr(value, field.name))
            for field in fields(value)
            if field.metadata.get("json", True)
        }
    if isinstance(value, dict):
        return {str(key): to_json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_value(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value


def search_json(found: Results) -> dict[str, Any]:
    """Return the output of `clew search --json`."""
    return {**_common_fields(found), "note": found.note, **to_json_value(found.evidence)}


def answer_json(answer: Answer) -> dict[str, Any]:
    """Return the output of `clew ask --json`."""
    return {
        **_common_fields(answer),
        "answer": answer.answer,
        "candidate": answer.candidate,
        "verdict": answer.verdict,
        "confidence": answer.confidence,
        "signals": to_json_value(dict(answer.signals)),
        "note": answer.note,
        "missing": answer.missing,
        "complete": answer.complete,
        "model_error": answer.model_error,
        "citations": to_json_value(answer.citations),
        **to_json_value(answer.evidence),
        "trace": to_json_value(answer.trace),
        **({"prompts": to_json_value(answer.prompts)} if answer.prompts else {}),
    }


def event_json(event: Event) -> tuple[str, dict[str, Any]]:
    """Return the name and the data of a streamed event."""
    match event:
        case StepStarted():
            return "step-started", to_json_value(event)
        case StepEnded(step=step, depth=depth, walked=walked):
            shown = {"step": step.step, "input": step.input, "output": step.output}
            spent = {"seconds": round(step.seconds, 6), "usage": to_json_value(step.usage)}
            paths = {"walked": [_walked_json(route) for route in walked]} if walked else {}
            return "step", {**shown, **spent, "docs": list(step.docs), **paths, "depth": depth}
        case AnswerDelta(text=text, restart=restart):
            return "token", {"text": text, **({"restart": True} if restart else {})}
        case ModelWait():
            return "model", to_json_value(event)


def _walked_json(route: Route) -> dict[str, Any]:
    """Return a path in short: its entities, and its facts with the spans that state them."""
    told = ("text", "doc", "start", "end", "quote")
    facts = [{name: getattr(fact, name) for name in told} for fact in route.steps]
    return {"entities": list(route.entities), "facts": facts}


def _common_fields(done: Results | Answer) -> dict[str, Any]:
    """Return the fields of both outputs: question, recipe, seconds and usage."""
    return {
        "question": done.question,
        "recipe": done.recipe,
        "seconds": round(done.seconds, 6),
        "usage": to_json_value(done.usage),
    }
