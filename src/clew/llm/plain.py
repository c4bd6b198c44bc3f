"""Fast path of parsing: replies that match the model exactly, validated in one strict pass.

Answer models are lenient: validators before their fields repair what small models write. On an
exact answer they change nothing and take most of the time. The strict validator leaves them out,
requires every field, and rejects whatever would need repair.
"""

from collections.abc import Callable
from functools import cache
from operator import itemgetter
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import SchemaValidator

ModelT = TypeVar("ModelT", bound=BaseModel)
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_LENIENT_ATTRIBUTE = "patient_within"
_STRICT_TYPES = frozenset({"str", "float", "int", "bool", "list"})
_NESTED_SCHEMA_KEYS = (
    "schema",
    "items_schema",
    "definitions",
    "choices",
    "values_schema",
    "keys_schema",
)


def lenient(**within: Any) -> Callable[[FunctionT], FunctionT]:
    """Mark a validator that leaves values of the declared type (`within` bounds) unchanged."""

    def marked(function: FunctionT) -> FunctionT:
        setattr(function, _LENIENT_ATTRIBUTE, within)
        return function

    return marked


def parse_strict(text: str, out: type[ModelT]) -> ModelT | None:
    """The answer, if the text is exactly a valid one without repeated records; else None."""
    reader = _strict_validator(out)
    if reader is None:
        return None
    try:
        value: ModelT = reader.validate_json(text)
    except ValidationError:
        return None
    return None if _has_repeats(value) else value


@cache
def _strict_validator(out: type[BaseModel]) -> SchemaValidator | None:
    try:
        _record_lists(out)
        reader = _build_validator(_to_strict_core_schema(out.__pydantic_core_schema__, {}))
        reader.validate_json("{}")
    except LookupError:
        return None
    except ValidationError:
        return reader
    return None  # it accepts {}: the model has no fields, or the validator was prebuilt


def _build_validator(schema: Any) -> SchemaValidator:
    try:
        return SchemaValidator(schema, None, False)  # without the classes' prebuilt validators
    except TypeError:  # an older pydantic, which has no such option
        return SchemaValidator(schema)


def _to_strict_core_schema(schema: Any, within: dict[str, Any]) -> Any:
    """A core schema without lenient validators; LookupError for any other function."""
    if isinstance(schema, list):
        return [_to_strict_core_schema(part, {}) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kind = schema.get("type")
    if kind == "default":
        return _to_strict_core_schema(schema["schema"], within)
    if isinstance(kind, str) and kind.startswith("function-"):
        bounds = getattr(schema["function"]["function"], _LENIENT_ATTRIBUTE, None)
        if kind != "function-before" or bounds is None:
            raise LookupError(kind)
        return _to_strict_core_schema(schema["schema"], bounds)
    parts = {
        name: _to_strict_core_schema(part, {})
        for name, part in schema.items()
        if name in _NESTED_SCHEMA_KEYS
    }
    if "fields" in schema:  # keyed by name, and a field may be named "type"
        parts["fields"] = {
            name: _to_strict_core_schema(part, {}) for name, part in schema["fields"].items()
        }
    return schema | parts | ({"strict": True, **within} if kind in _STRICT_TYPES else {})


def _has_repeats(value: BaseModel) -> bool:
    """Whether records may be repeated, compared by their text fields only: cautious and fast."""
    for name, texts, nested in _record_lists(type(value)):
        records = getattr(value, name)
        if len(records) > len({texts(item.__dict__) for item in records}):
            return True
        if nested and any(map(_has_repeats, records)):
            return True
    return False


@cache
def _record_lists(out: type[BaseModel]) -> tuple[tuple[str, Callable[[Any], Any], bool], ...]:
    """A model's lists of records: field name, getter of the text fields, whether they nest."""
    lists = []
    for name, field in out.model_fields.items():
        inside = (
            _strip_annotated(*(get_args(field.annotation) or (None,)))
            if _is_list_field(field)
            else str
        )
        if isinstance(inside, type) and issubclass(inside, BaseModel):
            texts = [key for key, one in inside.model_fields.items() if one.annotation is str]
            if not texts:
                raise LookupError(name)
            lists.append((name, itemgetter(*texts), bool(_record_lists(inside))))
        elif inside not in (str, int, float) or not (
            _is_list_field(field) or _is_scalar_field(field)
        ):
            raise LookupError(name)
    return tuple(lists)


def _is_list_field(field: FieldInfo) -> bool:
    return get_origin(field.annotation) is list


def _is_scalar_field(field: FieldInfo) -> bool:
    return field.annotation in (str, int, float, bool) or get_origin(field.annotation) is Literal


def _strip_annotated(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind
