"""The numbered evidence that a model reads, and the passages of documents behind each line.

A layout decides which kinds are shown, in which order and within which token budgets. What goes on
in a second line is indented, so that no document can imitate another item or a heading.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any

from clew.config import Role
from clew.context import Context, TraceStep
from clew.layout import EvidenceKind, Layout, Section
from clew.llm.fit_prompt import cut_line, shorten_text
from clew.llm.openai_api import estimate_tokens
from clew.types import Evidence, NamedEntity, Passage, Report, Route, Statement

HEADINGS: dict[EvidenceKind, str] = {
    "findings": "Results",
    "entities": "Entities",
    "facts": "Relations",
    "paths": "Paths",
    "communities": "Topics",
    "passages": "Passages",
}
_INSTRUCTION_TOKENS = 1500  # of a prompt without its inputs, with its examples, tools and shape
REPLY_TOKENS = 1500
"""Left of the window for what the model writes; both are a quarter of a small window."""
_NO_LIMIT = 1_000_000_000
_NUMBER_TOKENS = 2  # of the number before a line
_HEADING_TOKENS = 4
_ITEM_TOKENS = 300  # one entity, fact or report; a passage may be as long as it is
_FITTING_ITEMS = 10  # long entities, facts or reports that fit into a section together
_SHORT_ITEM_TOKENS = 60  # to which any of them may be cut
_MIN_TOKENS = 24  # a section with less room is not worth showing
_MAX_PARTICIPANTS = 6
_ARROW = " → "
_WORD = re.compile(r"\w+")
_FINDINGS = Section("findings")  # what tools computed is always shown
# Attributes that only tell nodes apart; the import keeps a node's key as its `id`.
_IDENTIFIERS = frozenset("id key uid uuid guid identifier node_id nodeid iri uri".split())

EVERYTHING = Layout(
    tuple(Section(kind) for kind in ("passages", "entities", "paths", "facts", "communities"))
)
"""All kinds of evidence, as tools return them."""


@dataclass(frozen=True)
class EvidenceLine:
    """One numbered line: its text, its kind, and the passages that state it."""

    text: str
    kind: EvidenceKind
    sources: tuple[Passage, ...]
    facts: tuple[str, ...] = ()
    """The texts of the facts that it states."""
    place: float = 0.0
    """Its place among those of its kind, from 0 for the best to 1."""


@dataclass(frozen=True)
class EvidencePage:
    """Numbered lines as shown to a model."""

    items: tuple[EvidenceLine, ...] = ()
    left_out: tuple[tuple[EvidenceKind, int], ...] = ()
    """How many items of each kind were not shown, for lack of room."""
    shortened: int = 0
    """How many lines were cut."""

    @property
    def lines(self) -> tuple[str, ...]:
        """The texts of the lines."""
        return tuple(item.text for item in self.items)

    @cached_property
    def passages(self) -> tuple[Passage, ...]:
        """Every passage behind a line, once."""
        return tuple(dict.fromkeys(p for item in self.items for p in item.sources))

    @property
    def has_graph(self) -> bool:
        """Whether it shows anything but passages."""
        return any(item.kind != "passages" for item in self.items)

    def sources(self, numbers: Iterable[int]) -> list[Passage]:
        """Return the passages behind the lines with these numbers, each once."""
        lines = [self.items[n - 1] for n in numbers if 1 <= n <= len(self.items)]
        return list(dict.fromkeys(p for item in lines for p in item.sources))

    def is_computed(self, number: int) -> bool:
        """Whether a line is a tool's result that no passage states."""
        known = 1 <= number <= len(self.items)
        return known and self.items[number - 1].kind == "findings"

    def numbers_of(self, other: "EvidencePage") -> str:
        """Return the numbers that the lines of another page have here, as [2][5]."""
        known = {item.text: number for number, item in enumerate(self.items, start=1)}
        return "".join(f"[{known[one.text]}]" for one in other.items if one.text in known)

    def without_said(self, page: "EvidencePage") -> "EvidencePage":
        """Leave out the facts that a passage here or on another page says word for word."""
        said = [one.text for one in (*page.items, *self.items) if one.kind == "passages"]
        kept = (
            one
            for one in self.items
            if one.kind != "facts" or not any(one.facts[0] in text for text in said)
        )
        return replace(self, items=tuple(kept))

    def merge(self, other: "EvidencePage") -> "EvidencePage":
        """Add the lines of another page that this one has not; numbers stay as they are.

        A line of both has the better of its places.
        """
        places = {item.text: item.place for item in other.items}
        held = (
            replace(item, place=min(item.place, places.pop(item.text, item.place)))
            for item in self.items
        )
        return replace(self, items=(*held, *(item for item in other.items if item.text in places)))

    def describe(self) -> str:
        """Say what is shown and what was left out, for the trace."""
        counts = {kind: 0 for kind in HEADINGS}
        for item in self.items:
            counts[item.kind] += 1
        shown = [f"{count} {kind}" for kind, count in counts.items() if count]
        cut = [f"{count} {kind}" for kind, count in self.left_out if count]
        text = f"{', '.join(shown) or 'nothing'}, about {estimate_tokens(str(self))} tokens"
        text += f"; {self.shortened} lines cut" if self.shortened else ""
        return f"{text}; left out: {', '.join(cut)}" if cut else text

    def fit(self, tokens: int) -> str:
        """Format within so many tokens: of each kind the last lines are left out, not renumbered.

        One line is always left, and cut.
        """
        best_first = sorted(range(len(self.items)), key=lambda at: self.items[at].place)
        used = accumulate(_line_tokens(self.items[at].text) for at in best_first)
        room = tokens - (_HEADING_TOKENS * len(HEADINGS) if self.has_graph else 0)
        fitting = sum(size <= room for size in used)
        return shorten_text(self._format(best_first[: max(1, fitting)]), tokens)

    def __str__(self) -> str:
        """Format for a prompt, with a heading before each kind if there is more than text."""
        return self._format(range(len(self.items)))

    def _format(self, shown: Collection[int]) -> str:
        """Format some of the lines, each with its number."""
        rows: list[str] = []
        kind = None
        wanted = set(shown)
        for number, item in enumerate(self.items, start=1):
            if number - 1 not in wanted:
                continue
            if self.has_graph and item.kind != kind:
                kind = item.kind
                rows.append(f"{HEADINGS[kind]}:")
            rows.append(f"[{number}] {item.text}")
        return "\n".join(rows)


async def show_evidence(
    ctx: Context,
    evidence: Evidence,
    layout: Layout | None = None,
    *,
    beside: str = "",
    role: Role = "answer",
) -> EvidencePage:
    """Build the page of the recipe's layout, or of another, that fits the window of a role's model.

    `beside` is what else the prompt holds. What was left out is said in the trace.
    """
    layout = (ctx.layout if layout is None else layout).select(ctx.modality)
    window = await ctx.room(role)
    taken = estimate_tokens(ctx.question) + estimate_tokens(beside)
    for each in (_INSTRUCTION_TOKENS, REPLY_TOKENS):
        taken += min(each, window // 4)
    page = build_page(evidence, layout.fit(window - taken))
    ctx.trace.append(TraceStep("show evidence", ", ".join(layout.kinds), page.describe(), 0.0))
    return page


def build_page(evidence: Evidence, layout: Layout) -> EvidencePage:
    """Build a page of what fits: each section within its budget, all within the total.

    Results of tools come first, whatever the layout.
    """
    left = _NO_LIMIT if layout.total is None else layout.total
    items: list[EvidenceLine] = []
    left_out: list[tuple[EvidenceKind, int]] = []
    shortened = 0
    on_paths: set[str] = set()
    for section in (_FINDINGS, *layout.sections):
        budget = left if section.tokens is None else min(section.tokens, left)
        found = _drop_repeated(_format_items(evidence, section), on_paths)
        offered = found if section.kind == "passages" else found[: section.most]
        chosen, used = _fill(offered, section, budget)
        chosen = [replace(one, place=at / len(chosen)) for at, one in enumerate(chosen)]
        items += reversed(chosen) if section.best_last else chosen
        left_out.append((section.kind, len(found) - len(chosen)))
        whole = {item.text for item in offered}
        shortened += sum(item.text not in whole for item in chosen)
        left -= used
        if section.kind == "paths":
            on_paths = {fact for item in chosen for fact in item.facts}
    return EvidencePage(tuple(items), tuple(left_out), shortened)


def _drop_repeated(found: Sequence[EvidenceLine], on_paths: set[str]) -> list[EvidenceLine]:
    """Drop the facts that a path above shows."""
    return [
        one
        for one in found
        if one.kind != "facts" or not one.facts or not set(one.facts) <= on_paths
    ]


def _fill(
    offered: Sequence[EvidenceLine], section: Section, budget: int
) -> tuple[list[EvidenceLine], int]:
    """Take the items that fit, best first; the first is cut rather than left out.

    An item that is too long is skipped: it hides none of those behind it.
    """
    chosen: list[EvidenceLine] = []
    used = 0
    if budget < _MIN_TOKENS:
        return chosen, used
    most = min(budget, _max_item_tokens(section, budget, len(offered)))
    for item in offered:
        # Passages are shown whole, but for the first.
        text = item.text if section.kind == "passages" and chosen else _shorten(item.text, most)
        size = _line_tokens(text)
        if used + size <= budget:
            chosen.append(replace(item, text=text))
            used += size
    return chosen, used


def _max_item_tokens(section: Section, budget: int, offered: int) -> int:
    """Return how long one item may be: a share of its section, so that several fit."""
    if section.kind == "passages":
        return budget
    if section.kind in ("paths", "findings"):
        return max(_ITEM_TOKENS, budget // 2)
    share = budget // min(max(offered, 1), _FITTING_ITEMS)
    return min(_ITEM_TOKENS, max(share, _SHORT_ITEM_TOKENS))


def _line_tokens(text: str) -> int:
    return estimate_tokens(text) + _NUMBER_TOKENS


def _shorten(text: str, tokens: int) -> str:
    """Cut a text to a number of tokens; a path keeps both its ends."""
    if _line_tokens(text) <= tokens:
        return text
    room = tokens - _NUMBER_TOKENS
    return _shorten_path(text.split(_ARROW), room) or cut_line(text, room)


def _shorten_path(hops: Sequence[str], tokens: int) -> str:
    """Keep as many hops of both ends as fit; "" if that is not a path, or too long even so."""
    for kept in range(min((len(hops) - 1) // 2, tokens), 0, -1):
        cut = f"… {len(hops) - 2 * kept} more …"
        text = _ARROW.join((*hops[:kept], cut, *hops[-kept:]))
        if estimate_tokens(text) <= tokens:
            return text
    return ""


def _format_items(evidence: Evidence, section: Section) -> list[EvidenceLine]:
    """Format all items of a kind, best first and each text once."""
    items, format_item, find_sources = _OFFERED[section.kind](evidence)
    lines: dict[str, EvidenceLine] = {}
    for item in items:
        text = _indent(format_item(item))
        if not text or not (section.bare or _tells_something(item)):
            continue
        if section.scores:
            text = f"{text} (score {item.score:.2f})"
        known = lines.get(text)
        sources = (*(known.sources if known else ()), *find_sources(item))
        facts = _facts_of(item)
        lines[text] = EvidenceLine(text, section.kind, tuple(dict.fromkeys(sources)), facts)
    return list(lines.values())


def _indent(text: str) -> str:
    """Indent all lines but the first, so that none can pass for another item or a heading."""
    return "\n    ".join(filter(None, map(str.rstrip, text.splitlines())))


def _tells_something(item: object) -> bool:
    """Whether an item is more than a name: long lists of names distract small models."""
    if not isinstance(item, NamedEntity):
        return True
    return bool(_telling_attributes(item)) or _adds_words(
        item.description, f"{item.name} {item.type}"
    )


def _telling_attributes(entity: NamedEntity) -> list[tuple[str, str]]:
    """Return the attributes that say more than which node of an imported graph it is."""
    return [
        (name, value)
        for name, value in entity.attributes
        if name.strip("_ ").casefold() not in _IDENTIFIERS and _adds_words(value, entity.name)
    ]


def _adds_words(text: str, said: str) -> bool:
    """Whether a text has a word that is not said already; models often repeat a name or triple."""
    return not set(_WORD.findall(text.casefold())) <= set(_WORD.findall(said.casefold()))


def _facts_of(item: object) -> tuple[str, ...]:
    if isinstance(item, Statement):
        return (item.text,)
    return item.facts if isinstance(item, Route) else ()


def format_passage(passage: Passage) -> str:
    """Format a passage with its title."""
    return f"{passage.title}: {passage.text}" if passage.title else passage.text


def format_entity(entity: NamedEntity) -> str:
    """Format an entity with its type, description and attributes."""
    kind = f" ({entity.type})" if entity.type else ""
    attributes = "; ".join(f"{name}: {value}" for name, value in _telling_attributes(entity))
    told = _adds_words(entity.description, f"{entity.name}{kind}")
    more = "; ".join(filter(None, (entity.description if told else "", attributes)))
    return f"{entity.name}{kind}: {more}" if more else f"{entity.name}{kind}"


def format_fact(fact: Statement) -> str:
    """Format a relation as a triple, or an n-ary fact as its text with the unnamed participants."""
    if fact.relation and len(fact.entities) == 2:
        text = f"{fact.entities[0]} | {fact.relation} | {fact.entities[1]}"
    else:
        text = fact.text
        if fact.title and fact.title not in text:
            text = f"{fact.title}: {text}"
        unnamed = [name for name in fact.entities if name not in text][:_MAX_PARTICIPANTS]
        text += f" (with {', '.join(unnamed)})" if unnamed else ""
    new = [keyword for keyword in fact.keywords if _adds_words(keyword, text)]
    keywords = f" [{', '.join(new)}]" if new else ""
    told = _adds_words(fact.description, text)
    return f"{text}{keywords}: {fact.description}" if told else f"{text}{keywords}"


def format_path(path: Route) -> str:
    """Format a path: entity, relation, entity, and so on to its end."""
    names = [*path.entities[:1]]
    for at, entity in enumerate(path.entities[1:]):
        step = path.steps[at] if at < len(path.steps) else None
        fact = path.facts[at] if at < len(path.facts) else ""
        backwards = step is not None and step.entities[:1] == (entity,)
        names += [_format_hop(step, fact, backwards), entity]
    return _ARROW.join(filter(None, names))


def _format_hop(step: Statement | None, fact: str, backwards: bool) -> str:
    if step is None or not step.relation:
        return f"[{fact}]"
    relation = f"inverse of {step.relation}" if backwards else step.relation
    told = _adds_words(step.description, " ".join((step.relation, *step.entities)))
    return f"[{relation}: {step.description}]" if told else f"[{relation}]"


def format_report(report: Report) -> str:
    """Format a community by its name, summary and keywords."""
    about = f" [{', '.join(report.keywords)}]" if report.keywords else ""
    return f"{report.name}{about}: {report.summary}"


def passage_of(fact: Statement) -> tuple[Passage, ...]:
    """Return the span that states a fact as a passage; none if no document states it."""
    if not fact.quote:
        return ()
    place = (fact.chunk, fact.doc, fact.title, fact.score, fact.quote, fact.start, fact.end)
    return (Passage(*place),)


def report_sources(report: Report) -> tuple[Passage, ...]:
    """Return the spans that a report cites as passages."""
    return tuple(
        Passage(c.chunk, c.doc, "", report.score, c.quote, c.start, c.end) for c in report.citations
    )


def _path_sources(path: Route) -> tuple[Passage, ...]:
    return tuple(p for step in path.steps for p in passage_of(step))


_Offer = tuple[Sequence[Any], Callable[[Any], str], Callable[[Any], tuple[Passage, ...]]]
_OFFERED: dict[EvidenceKind, Callable[[Evidence], _Offer]] = {
    "entities": lambda e: (e.entities, format_entity, lambda entity: entity.sources),
    "facts": lambda e: (e.facts, format_fact, passage_of),
    "paths": lambda e: (e.paths, format_path, _path_sources),
    "communities": lambda e: (e.communities, format_report, report_sources),
    "passages": lambda e: (e.chunks, format_passage, lambda passage: (passage,)),
    "findings": lambda e: (e.findings, lambda finding: finding.text, lambda f: f.sources),
}
