"""Base classes of request bodies, and the check of questions; types are never converted."""

from pydantic import BaseModel, ConfigDict


def has_words(text: str) -> bool:
    """Whether a text has a character to read."""
    return any(char.isprintable() and not char.isspace() for char in text)


def check_words(question: str) -> str:
    """Return a question that has a character to read."""
    if not has_words(question):
        raise ValueError("the question is empty")
    return question


class StrictBody(BaseModel):
    """A body of the REST API: an unknown field is an error, as it may be a misspelt one."""

    model_config = ConfigDict(extra="forbid", strict=True)


class LenientBody(BaseModel):
    """A body of another's API, whose callers send fields that have no meaning here."""

    model_config = ConfigDict(extra="ignore", strict=True)
