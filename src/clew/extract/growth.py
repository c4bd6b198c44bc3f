"""How a schema grows: models propose types, code decides, and every step can be taken back.

All functions are pure, and what they decide depends on the set of proposals, not on their order.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import fsum
from typing import Any

from clew.errors import ConfigError
from clew.extract.schema_file import (
    KINDS,
    LONGEST_TYPE,
    TABLES,
    Schema,
    SchemaType,
    TypeKind,
    type_key,
)
from clew.store.merge import first, most_said

MIN_CONFIDENCE = 0.9  # Youtu-GraphRAG, eq. 3: mu
MIN_SUPPORT = 3
NEAR = 0.85
MOST_WORDS = 5

Similar = Callable[[str, str], float]
Key = tuple[TypeKind, str]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A type that one chunk speaks for, and how sure the model is."""

    kind: TypeKind
    name: str
    confidence: float
    chunk: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Admitted:
    """A type that entered the schema, and what spoke for it."""

    type: SchemaType
    confidence: float
    support: int


@dataclass(frozen=True, slots=True)
class Refused:
    """A type that did not, and why."""

    type: SchemaType
    confidence: float
    support: int
    reason: str


@dataclass(frozen=True, slots=True)
class Growth:
    """What a round of growing comes to."""

    schema: Schema
    admitted: tuple[Admitted, ...] = ()
    refused: tuple[Refused, ...] = ()


@dataclass(frozen=True)
class Rule:
    """When a proposed type is let in."""

    min_confidence: float = MIN_CONFIDENCE
    min_support: int = MIN_SUPPORT
    near: float = NEAR
    """The cosine from which two names count as one type."""


RULE = Rule()


def grow(
    schema: Schema,
    proposals: Iterable[Proposal],
    rule: Rule = RULE,
    similar: Similar | None = None,
    barred: Iterable[SchemaType] = (),
) -> Growth:
    """Let in what is sure enough, seen often enough and no double; `barred` never comes in."""
    kept_out = {(one.kind, type_key(one.name)) for one in barred}
    grown, admitted, refused = schema, [], []
    for case in _cases(proposals):
        if grown.named(case.type.kind, case.type.name):
            continue  # not new at all
        reason = _against(case, rule, kept_out) or _double(case, grown, rule, similar)
        if reason:
            refused.append(Refused(case.type, case.confidence, case.support, reason))
        else:
            admitted.append(case)
            grown = grown.having([case.type])
    return Growth(grown, tuple(admitted), tuple(refused))


def _cases(proposals: Iterable[Proposal]) -> list[Admitted]:
    """One case per type, the best supported first, so that of two near doubles it comes in."""
    by_key: dict[Key, list[Proposal]] = defaultdict(list)
    for one in proposals:
        if one.kind in KINDS and type_key(one.name):
            by_key[one.kind, type_key(one.name)].append(one)
    cases = [_case(key, said) for key, said in by_key.items()]
    return sorted(cases, key=lambda c: (-c.support, -c.confidence, c.type.kind, c.type.name))


def _case(key: Key, said: Sequence[Proposal]) -> Admitted:
    # A chunk speaks once, at its surest; the mean keeps one loud chunk from deciding for all.
    sure: dict[str, float] = {}
    for one in said:
        sure[one.chunk] = max(sure.get(one.chunk, 0.0), one.confidence)
    name = first(most_said(" ".join(one.name.split()) for one in said))
    told = first(most_said(one.description for one in said))
    return Admitted(
        SchemaType(key[0], name, told), round(fsum(sure.values()) / len(sure), 6), len(sure)
    )


def _against(case: Admitted, rule: Rule, barred: set[Key]) -> str:
    """Why the case itself does not suffice, if so."""
    name = case.type.name
    if (case.type.kind, type_key(name)) in barred:
        return "it was taken back before"
    if len(name) > LONGEST_TYPE or len(name.split()) > MOST_WORDS:
        return "it is no short name"
    if case.confidence < rule.min_confidence:
        return f"confidence {case.confidence:.2f} is below {rule.min_confidence:g}"
    if case.support < rule.min_support:
        return f"seen in {case.support} of the {rule.min_support} chunks it takes"
    return ""


def _double(case: Admitted, schema: Schema, rule: Rule, similar: Similar | None) -> str:
    """Which known type of its kind it is too like, if any."""
    if similar is None:
        return ""
    like = [(similar(case.type.name, one.name), one.name) for one in schema.of(case.type.kind)]
    close, name = max(like, default=(0.0, ""))
    return f"it is too like {name!r} ({close:.2f})" if close >= rule.near else ""


# -- history


@dataclass(frozen=True, slots=True)
class Step:
    """One recorded change: by growth or by a person's edit."""

    number: int
    cause: str
    added: tuple[SchemaType, ...] = ()
    removed: tuple[SchemaType, ...] = ()
    why: tuple[str, ...] = ()
    """For each type added by growth, what spoke for it."""
    reverted: bool = False


@dataclass(frozen=True)
class History:
    """A seed schema and every change since; `schema` is what they come to."""

    seed: Schema
    steps: tuple[Step, ...] = field(default=())

    @property
    def schema(self) -> Schema:
        """The schema in force: the seed with every step that stands."""
        schema = self.seed
        for step in self.steps:
            if not step.reverted:
                schema = schema.lacking(step.removed).having(step.added)
        return schema

    def barred(self) -> tuple[SchemaType, ...]:
        """What a person threw out, by taking a step back or by an edit: growth leaves it out."""
        out = [one for step in self.steps if step.reverted for one in step.added]
        out += [one for step in self.steps if not step.reverted for one in step.removed]
        return tuple(one for one in out if not self.schema.named(one.kind, one.name))

    def as_json(self) -> dict[str, Any]:
        """Plain values for keeping."""
        return {"seed": self.seed.as_json(), "steps": [asdict(step) for step in self.steps]}


def grown(
    history: History,
    proposals: Iterable[Proposal],
    rule: Rule = RULE,
    similar: Similar | None = None,
) -> tuple[History, Growth]:
    """Grow the schema in force and record the step, if anything came in."""
    growth = grow(history.schema, proposals, rule, similar, history.barred())
    if not growth.admitted:
        return history, growth
    why = tuple(f"{one.support} chunks, confidence {one.confidence:.2f}" for one in growth.admitted)
    return _with(history, "growth", [one.type for one in growth.admitted], (), why), growth


def edited(history: History, schema: Schema) -> History:
    """Record a person's edit: the schema in force becomes `schema`."""
    now = history.schema
    changed = [one for one in schema.types if one not in now.types]
    gone = [one for one in now.types if one not in schema.types]
    return _with(history, "edit", changed, gone) if changed or gone else history


def revert(history: History, step: int) -> History:
    """Take one step back; later ones stand, and the record of it stays."""
    if not any(one.number == step for one in history.steps):
        known = ", ".join(str(one.number) for one in history.steps) or "none"
        raise ConfigError(f"the schema has no step {step}: the steps are {known}.")
    return History(
        history.seed,
        tuple(replace(one, reverted=True) if one.number == step else one for one in history.steps),
    )


def history_from(value: Mapping[str, Any]) -> History:
    """Read what `as_json` wrote."""
    seed = Schema(
        tuple(
            SchemaType(kind, name, told)
            for kind, table in TABLES.items()
            for name, told in value["seed"][table].items()
        )
    )
    return History(seed, tuple(_step(one) for one in value["steps"]))


def _step(value: Mapping[str, Any]) -> Step:
    return Step(
        value["number"],
        value["cause"],
        tuple(SchemaType(**one) for one in value["added"]),
        tuple(SchemaType(**one) for one in value["removed"]),
        tuple(value["why"]),
        value["reverted"],
    )


def _with(
    history: History,
    cause: str,
    added: Sequence[SchemaType],
    removed: Sequence[SchemaType],
    why: tuple[str, ...] = (),
) -> History:
    number = 1 + max((step.number for step in history.steps), default=0)
    step = Step(number, cause, tuple(added), tuple(removed), why)
    return History(history.seed, (*history.steps, step))
