"""Base classes of request bodies."""

from pydantic import BaseModel, ConfigDict


class StrictBody(BaseModel):
    """A body of the REST API: an unknown field is an error, as it may be a misspelt one."""

    model_config = ConfigDict(extra="forbid")


class LenientBody(BaseModel):
    """A body of another's API, whose callers send fields that have no meaning here."""

    model_config = ConfigDict(extra="ignore")
