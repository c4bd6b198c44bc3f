"""Settings from `clew.toml` and environment variables; only this module reads them."""

import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticCustomError

from clew.errors import ConfigError, suggest
from clew.kb_address import DatabaseAddress, KbLocation, parse_location
from clew.machine_memory import LEAST_BOUND, bound_of_small_machine
from clew.types import Usage

Role = Literal["extract", "plan", "answer", "judge"]
ROLES: tuple[Role, ...] = get_args(Role)
Client = Literal["http", "sdk", "llama", "transformers"]
JsonMode = Literal["auto", "schema", "tool", "json", "text"]
OPENAI_URL = "https://api.openai.com/v1"


_BYTES = {"": 1, "M": 10**6, "G": 10**9, "T": 10**12}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([MGT])(?:i?B)?)?", re.IGNORECASE)


def _parse_memory(given: Any) -> Any:
    """Return the bytes that `2GB`, `800 MB`, `0.5TB` or a plain number of bytes means."""
    if given is None:
        return None
    found = _SIZE.fullmatch(str(given).strip())
    size = int(float(found[1]) * _BYTES[(found[2] or "").upper()]) if found else 0
    if size < LEAST_BOUND:
        why = 'must be a size such as "2GB" and at least "500MB"'
        raise PydanticCustomError("memory", "{why}", {"why": why})
    return size


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


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


class RoleSettings(_Section):
    """Overrides for one role; unset fields use the common settings."""

    model: str = ""
    base_url: str = ""
    api_key: SecretStr | None = None
    client: Client | None = None
    extra: dict[str, Any] | None = None
    shape_by: JsonMode | None = None
    window: int | None = Field(default=None, ge=1024)


class ModelSettings(_Section):
    """Chat model settings: one model for all roles, or one per role."""

    model: str = ""
    """The model's name at its endpoint; a GGUF file for `llama`, a folder for `transformers`."""
    base_url: str = OPENAI_URL
    api_key: SecretStr = SecretStr("")
    client: Client = "http"
    extra: dict[str, Any] = Field(default_factory=dict)
    """Extra fields sent unchanged with every request."""
    shape_by: JsonMode = "auto"
    """How JSON output is requested; `auto` detects what the endpoint supports."""
    window: int | None = Field(default=None, ge=1024)
    """Context window in tokens; None: as the endpoint reports it, else 8,192 are assumed."""
    extract: RoleSettings = RoleSettings()
    plan: RoleSettings = RoleSettings()
    answer: RoleSettings = RoleSettings()
    judge: RoleSettings = RoleSettings()

    concurrency: int = Field(default=16, ge=1)
    """Calls at once, at most; fewer where the endpoint makes them wait, if `adapt` is set."""
    adapt: bool = True
    """Whether the number of calls at once follows from how long they take."""
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
        # `judge = "gpt-4o"` is short for a role that only has another model.
        return {"model": value} if isinstance(value, str) else value


class EmbedSettings(_Section):
    """Which embedder makes the vectors."""

    model: str = "local"
    folder: Path | None = None
    base_url: str = ""
    api_key: str = ""
    query_prefix: str = ""
    passage_prefix: str = ""
    batch: int = Field(default=64, gt=0)
    concurrency: int = Field(default=8, gt=0)
    timeout: float = Field(default=60.0, gt=0)
    """Seconds for one call to the endpoint, from connecting to the last byte."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where the local embedder runs; auto: on a GPU if onnxruntime-gpu is installed."""
    kinds: tuple[Literal["chunk", "entity", "fact"], ...] = ("chunk", "fact")
    """What is embedded when documents are added; the rest when a recipe first reads it."""
    import_limit: int = Field(default=100_000, ge=0)
    """Imported graphs up to this many elements are embedded by default."""


class RerankSettings(_Section):
    """The cross-encoder for recipes that rerank."""

    model: str = ""
    base_url: str = ""
    api_key: str = ""
    folder: Path | None = None
    """A folder with a cross-encoder's ONNX weights and tokenizer.json."""


class SpanSettings(_Section):
    """The small reader that finds answers as spans of passages."""

    file: Path | None = None
    """Weights from `bench.reader.export`; unset, those of the package."""


class ReadSettings(_Section):
    """Limits on reading one file, and whether scanned pages are read by OCR."""

    seconds: float = Field(default=120.0, gt=0)
    """Of processor time, for formats with a parser (PDF, HTML, DOCX, …)."""
    pages: int = Field(default=5_000, ge=1)
    file_bytes: int = Field(default=200_000_000, ge=1_000)
    row_bytes: int = Field(default=16_000_000, ge=1_000)
    ocr: str = Field(default="auto", pattern=r"auto|never|[A-Za-z_]{3,20}(\+[A-Za-z_]{3,20})*")
    """Languages of scanned pages (`eng+deu`); auto: English if tesseract is installed."""


class AnswerSettings(_Section):
    """When an answer is given in `reject` mode."""

    confidence: float = Field(default=0.5, ge=0, le=1)
    """The least confidence of an answer; below it the question is refused."""
    hints: bool = False
    """Show the model what the span reader guesses, marked as such."""
    verify: bool = False
    """Ask the model whether the quotes entail its answer: one more call, and a surer confidence."""


class ChunkSettings(_Section):
    """How documents are split into chunks."""

    by: Literal["sentences", "tokens", "headings"] = "sentences"
    size: int = Field(default=400, gt=0)
    overlap: int = Field(default=0, ge=0)

    @field_validator("overlap")
    @classmethod
    def _check_overlap(cls, overlap: int, info: ValidationInfo) -> int:
        size = info.data.get("size", overlap * 2)
        if overlap > size // 2:
            message = f"must be at most half of chunk.size, which is {size}"
            raise PydanticCustomError("overlap", "{why}", {"why": message})
        return overlap


class ExtractSettings(_Section):
    """Limits on extraction of entities and facts by a model, and processes of that by rules."""

    gleaning: Literal["trial", "base"] = "trial"
    """Whether a judge model is asked before each further round (trial), or after it (base)."""
    rounds: int = Field(default=0, ge=0, le=10)
    """Maximum number of further rounds per chunk to find what was missed."""
    max_tokens: int = Field(default=4096, ge=64)
    """Token limit of the answer for one chunk; complete items of a cut-off answer are kept."""
    fallback: Literal["none", "offline"] = "none"
    """What extracts from a chunk that the model failed on, until it is retried."""
    processes: int = Field(default=0, ge=0, le=256)
    """Processes of a large build without a model, this one among them; 0: as many as help."""


class IndexSettings(_Section):
    """How vectors are compared."""

    exact: bool = False
    """Compare all vectors instead of the candidates of an index, also where there are many."""
    lists: int = Field(default=0, ge=0)
    """Inverted lists that a query reads (extra ann); 0: as many as were enough when measured."""


class StoreSettings(_Section):
    """A knowledge base in a database: where its files are, and its workers."""

    files: str = ""
    """A folder that all machines see, or an address of fsspec; empty: in the database."""
    lease: float = Field(default=30.0, gt=0)
    """Seconds after which the jobs of a silent worker are given to another."""


class TreeSettings(_Section):
    """Whether the knowledge tree is updated when documents are added or removed."""

    grow: Literal["auto", "never"] = "auto"
    """auto: an existing tree is kept up to date; never: only `clew tree --grow` changes it."""


class ServeSettings(_Section):
    """The HTTP server: where it listens, and what it lets in."""

    host: str = "127.0.0.1"
    """A public address needs at least one key."""
    port: int = Field(default=8321, ge=0, le=65535)
    workers: int = Field(default=1, ge=1, le=64)
    hosts: tuple[str, ...] = ()
    """Names under which the server is reached, besides loopback ones and `host`."""
    origins: tuple[str, ...] = ()
    """Web pages of other origins that may call it, such as `https://chat.example.org`."""
    root_path: str = ""
    """Path under which a reverse proxy serves it."""
    open_workspaces: int = Field(default=8, ge=2)
    """Knowledge bases open at once; one restricted by labels counts as two."""
    label_views: int = Field(default=16, ge=1)
    """Copies of knowledge bases without hidden documents that are kept on disk."""
    queue: int = Field(default=64, ge=1)
    """Requests in work or waiting in one process; more are answered 429."""
    streams: int = Field(default=256, ge=1)
    body_bytes: int = Field(default=1_000_000, ge=1000)
    upload_bytes: int = Field(default=200_000_000, ge=1000)
    body_seconds: float = Field(default=60.0, gt=0)
    """Seconds within which a request's body must arrive."""
    header_seconds: float = Field(default=15.0, gt=0)
    """Seconds within which a request's headers must arrive."""
    stall_seconds: float = Field(default=60.0, gt=0)
    """Seconds after which a caller that does not read its answer is cut off."""
    requests_per_minute: float = Field(default=6000.0, gt=0)
    """Of one key, where the key has no limit of its own."""
    model_calls: int = Field(default=16, ge=1)
    """Model calls at once, over all workspaces of one process."""
    jobs: int = Field(default=1, ge=1)
    """Builds and evaluations that run at once."""
    rest: bool = True
    """Serve the REST API, the chat APIs and the page; without them only agents are served."""
    mcp: bool = True
    """Serve the Model Context Protocol at `/mcp`, if the extra `mcp` is installed."""
    mcp_add: bool = False
    """Let agents add documents by that protocol."""
    shutdown_seconds: float = Field(default=20.0, ge=0)
    """How long running requests may go on when the server is stopped."""
    reload_seconds: float = Field(default=3600.0, ge=0)
    """How long streams may go on in workers that a reload has replaced."""


class Settings(_Section):
    """All user settings; inner functions are passed only the values they need."""

    kb: Annotated[KbLocation, BeforeValidator(parse_location)] = Path("kb")
    recipe: str = "clew"
    extractor: str = "auto"
    schema_file: Path | None = None
    cache: Annotated[Path, AfterValidator(Path.expanduser)] = Field(
        default=Path("~/.cache/clew"), validate_default=True
    )
    wait: float = Field(default=10.0, ge=0)
    memory: Annotated[int | None, BeforeValidator(_parse_memory)] = Field(
        default_factory=bound_of_small_machine
    )
    """Bytes that texts in work and caches of a build or import may take, such as `2GB`."""
    store: StoreSettings = StoreSettings()
    embed: EmbedSettings = EmbedSettings()
    rerank: RerankSettings = RerankSettings()
    spans: SpanSettings = Field(
        default=SpanSettings(), validation_alias=AliasChoices("spans", "reader")
    )
    """`reader` is its earlier name, too near to `read`."""
    read: ReadSettings = ReadSettings()
    answer: AnswerSettings = AnswerSettings()
    chunk: ChunkSettings = ChunkSettings()
    extract: ExtractSettings = ExtractSettings()
    index: IndexSettings = IndexSettings()
    tree: TreeSettings = TreeSettings()
    models: ModelSettings = ModelSettings()
    serve: ServeSettings = ServeSettings()
    recipes: dict[str, Any] = Field(default_factory=dict)
    """The user's own recipes, as plain data; `clew.recipes.configure` builds them."""
    _file: str = PrivateAttr("clew.toml")

    @property
    def file(self) -> str:
        """The settings file, for messages."""
        return self._file

    @property
    def folder(self) -> Path:
        """The knowledge base's folder; of one in a database that of this machine's copies."""
        if isinstance(self.kb, DatabaseAddress):
            return self.kb.work_folder(self.cache)
        return self.kb

    @property
    def own_recipe(self) -> bool:
        """Whether the user has set the recipe, so that no default is chosen."""
        return "recipe" in self.model_fields_set


_ENVIRONMENT_VARIABLES = {
    "CLEW_KB": ("", "kb"),
    "CLEW_RECIPE": ("", "recipe"),
    "CLEW_EXTRACTOR": ("", "extractor"),
    "CLEW_CACHE": ("", "cache"),
    "CLEW_MODEL": ("models", "model"),
    "OPENAI_API_KEY": ("models", "api_key"),
    "OPENAI_BASE_URL": ("models", "base_url"),
}


def load_settings(file: Path | None = None) -> Settings:
    """Read `clew.toml` (or `file`) and the environment."""
    path = file or Path("clew.toml")
    values: dict[str, Any] = {}
    if path.is_file():
        try:
            # Some editors write a byte order mark.
            values = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path} is not valid TOML: {error}") from error
        except RecursionError:
            raise ConfigError(f"{path} is not valid TOML: it is nested too deeply") from None
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise ConfigError(f"cannot read {path}: {why}") from error
    elif file is not None:
        raise ConfigError(f"no settings file {file}; `clew init` writes one")
    for variable, (part, name) in _ENVIRONMENT_VARIABLES.items():
        if value := os.environ.get(variable):
            where = values.setdefault(part, {}) if part else values
            if isinstance(where, dict):
                where[name] = value
    try:
        settings = Settings.model_validate(values)
        settings._file = str(path)
        return settings
    except ValidationError as error:
        raise ConfigError(f"{path}: {_describe(error)}") from error


def _describe(error: ValidationError) -> str:
    """Describe the first invalid setting; for an unknown key say which one may be meant."""
    first = error.errors()[0]
    *above, key = first["loc"] or ("",)
    where = ".".join(map(str, first["loc"]))
    if first["type"] != "extra_forbidden":
        said = first["msg"].removeprefix("Value error, ")
        return f"{where}: {said[:1].lower()}{said[1:]}"
    known: Any = Settings
    for part in above:
        known = known.model_fields[part].annotation if part in known.model_fields else None
        if not isinstance(known, type) or not issubclass(known, BaseModel):
            return f"{where}: there is no such setting"
    names = list(known.model_fields)
    return f"{where}: there is no such setting{suggest(str(key), names)}"
