"""Chat model settings: endpoint, roles, limits and prices."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from clew.types import Usage

Role = Literal["extract", "plan", "answer", "judge"]
ROLES: tuple[Role, ...] = get_args(Role)
Client = Literal["http", "sdk", "llama", "transformers"]
JsonMode = Literal["auto", "schema", "tool", "json", "text"]
OPENAI_URL = "https://api.openai.com/v1"


@dataclass(frozen=True, slots=True)
class Price:
    """Money per million tokens."""

    prompt: float = 0.0
    completion: float = 0.0

    def cost(self, usage: Usage) -> float:
        """Cost of the given usage."""
        return (
            usage.prompt_tokens * self.prompt + usage.completion_tokens * self.completion
        ) / 1_000_000


class RoleSettings(BaseModel):
    """What one role does differently; what is left out is as for all."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = ""
    base_url: str = ""
    api_key: SecretStr | None = None
    client: Client | None = None
    extra: dict[str, Any] | None = None
    shape_by: JsonMode | None = None


class ModelSettings(BaseModel):
    """The chat models: one for all roles, or one each."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = ""
    """The model's name at its endpoint; a GGUF file for `llama`, a folder for `transformers`."""
    base_url: str = OPENAI_URL
    api_key: SecretStr = SecretStr("")
    client: Client = "http"
    extra: dict[str, Any] = Field(default_factory=dict)
    """Extra fields sent unchanged with every request."""
    shape_by: JsonMode = "auto"
    """How JSON output is requested; `auto` detects what the endpoint supports."""
    extract: RoleSettings = RoleSettings()
    plan: RoleSettings = RoleSettings()
    answer: RoleSettings = RoleSettings()
    judge: RoleSettings = RoleSettings()

    concurrency: int = Field(default=16, ge=1)
    requests_per_minute: float | None = Field(default=None, gt=0)
    tokens_per_minute: float | None = Field(default=None, gt=0)
    timeout: float = Field(default=300.0, gt=0)
    """Seconds for one attempt, from connecting to the end of the response."""
    connect_timeout: float = Field(default=10.0, gt=0)
    tries: int = Field(default=6, ge=1)
    retry_for: float = Field(default=300.0, ge=0)
    """Seconds after which no new attempt is started."""
    ca_file: str = ""
    """PEM file of a private certificate authority that signed the endpoint's certificate."""
    prices: dict[str, Price] = Field(default_factory=dict)
    """Money per million tokens by model: `{"gpt-4o-mini": {"prompt": 0.15, "completion": 0.6}}`."""

    @field_validator("extract", "plan", "answer", "judge", mode="before")
    @classmethod
    def _expand_model_name(cls, value: Any) -> Any:
        """Accept `judge = "gpt-4o"` as short for a role with only another model."""
        return {"model": value} if isinstance(value, str) else value
