"""Yes or no from a graph: whether a fact says what a question claims of its two names.

Yes where a relation that the query scorer finds asked leads from one name to the other in the
direction of the claim. No where it leads the other way alone, or where the graph has other values
of it for its head. Whatever else there is leaves the question open.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from clew.agents.core.messages import NO, YES
from clew.context import Context
from clew.graph.paths import EntityPathTable, follow_codes
from clew.graph.traverse import FactGraph
from clew.retrieve.asked_form import AskedForm
from clew.retrieve.claim_sides import Head, Sides, find_head, read_claim
from clew.retrieve.graph_cache import build_traversal
from clew.retrieve.paths.absent import StepsOfLike
from clew.retrieve.paths.ranked import path_codes
from clew.retrieve.paths.relation_paths import ASKED_MARK
from clew.retrieve.question import locate_names, parse_question
from clew.retrieve.relation_vectors import load_short_texts
from clew.text.names import name_key
from clew.text.word_forms import question_language
from clew.types import Found, Path

_LEAST_CHANCE = 0.5  # that a relation is what a question claims
_OTHER_MARK = "beside"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A yes or no with the paths that say so, or just these; empty where it is left open."""

    short: str = ""
    paths: tuple[Path, ...] = ()
    beside: tuple[Path, ...] = ()
    """What the things were compared with that are told: it is quoted as well."""
    compared: bool = False

    def __bool__(self) -> bool:
        return bool(self.paths)

    @property
    def hints(self) -> dict[str, float]:
        """Return what tells such answers from those that are the ends of a path."""
        return {"compared": 1.0} if self.compared else {"checked": 1.0} if self.short else {}

    def put_first(self, found: Found) -> Found:
        """Return what was found with the paths that decide first, and alone as what is asked."""
        said = {fact for path in self.paths for fact in path.facts}
        rest = [path for path in found.paths if said.isdisjoint(path.facts)]
        return replace(
            found, paths=(*self.paths, *(replace(path, by=_OTHER_MARK) for path in rest))
        )


@dataclass(frozen=True, slots=True)
class Steps:
    """A relation path from one of two names, and how probable it is that it is claimed."""

    first: bool
    """Whether it starts at the name that the question has first."""
    start: int
    codes: tuple[int, ...]
    path: Path

    @property
    def relations(self) -> tuple[int, ...]:
        """Return the relations that are gone along, in either direction."""
        along = tuple(code >> 1 for code in self.codes)
        return min(along, along[::-1])

    def is_united_with(self, other: "Steps") -> bool:
        """Whether both are what is asked for, in other relations."""
        asked = self.path.by == other.path.by == ASKED_MARK
        return asked and self.start == other.start and self.codes != other.codes

    @property
    def chance(self) -> float:
        """Return the probability; where nothing is scored, all are likely."""
        return self.path.asked if self.path.asked >= 0 else 1.0


async def check_claim(ctx: Context, form: AskedForm, found: Found) -> Verdict:
    """Decide a question of yes or no by the likeliest relation path that says anything of it."""
    shape = parse_question(ctx.question, locate_names(ctx.question, found.names))
    english = question_language(ctx.question) == "en"
    keys = sorted(form.by_name, key=name_key(ctx.question).find)
    named = [ctx.view.find_by_name_or_alias(key).tolist() for key in keys]
    check = ClaimCheck(
        ctx,
        build_traversal(ctx.view),
        read_claim(shape) if english else None,
        await load_short_texts(ctx),
        (frozenset(named[0]), frozenset(named[1])),
    )
    listed = check.list_steps(found.paths)
    for steps in listed:
        if steps.chance >= _LEAST_CHANCE or check.is_said(steps):
            verdict = await check.decide(steps)
            if verdict.short == NO:  # another path that says the same may lead there
                same = [one for one in listed if one.is_united_with(steps)]
                others = [await check.decide(one) for one in same]
                return next((one for one in others if one.short == YES), verdict)
            if verdict:
                return verdict
    return Verdict()


@dataclass(frozen=True)
class ClaimCheck:
    """Follows relation paths from the names of a claim."""

    ctx: Context
    ways: FactGraph
    claim: Sides | None
    labels: Sequence[str]
    named: tuple[frozenset[int], frozenset[int]]
    """The entities of the name that the question has first, and of the other one."""

    def list_steps(self, paths: Sequence[Path]) -> list[Steps]:
        """Return the relation paths from either name, the likeliest first."""
        found: dict[tuple[int, tuple[int, ...]], Steps] = {}
        for path, row in zip(paths, path_codes(self.ways, tuple(paths)).tolist(), strict=True):
            start, codes = path.entities[0], tuple(code for code in row if code >= 0)
            for at, named in enumerate(self.named):
                if start in named and (start, codes) not in found:
                    found[start, codes] = Steps(not at, start, codes, path)
        return sorted(_join_alike(found.values()), key=lambda one: -one.chance)

    def is_said(self, steps: Steps) -> bool:
        """Whether the claim has the word of a relation: the scorer knows only paths that exist."""
        label = self.labels[steps.codes[0] >> 1]
        return len(steps.codes) == 1 and self.claim is not None and self.claim.says(label)

    async def decide(self, steps: Steps) -> Verdict:
        """Return what a relation path says of the claim."""
        routes = self._follow(steps.start, steps.codes)
        meant = self._keep(routes, self.named[steps.first])
        if len(steps.codes) > 1:
            return self._conclude(YES, steps, meant) or self._conclude(NO, steps, routes)
        [code] = steps.codes
        head = await self._find_head(steps, code)
        if not head:
            return Verdict()
        turned = self._keep(self._follow(steps.start, (code ^ 1,)), self.named[steps.first])
        is_head = steps.first == (code % 2 == 0)
        right = head == "either" or (head == "first") == is_head
        yes = meant if right else turned
        if head == "either" and not len(yes):
            yes = turned
        no = meant if not right else routes if self._is_closed(steps, code) else None
        return self._conclude(YES, steps, yes) or self._conclude(NO, steps, no)

    async def _find_head(self, steps: Steps, code: int) -> Head:
        """Return which name must be the head of the fact; a fact as it is where only one can be."""
        label = self.labels[code >> 1]
        head: Head = await find_head(self.ctx, self.claim, label) if self.claim else ""
        if head:
            return head
        like = StepsOfLike(self.ctx, self.ways)
        turned = code ^ 1 in like.find_likely(steps.start)
        turned |= any(code in like.find_likely(other) for other in self.named[steps.first])
        own: Head = "first" if steps.first == (code % 2 == 0) else "second"
        return "" if turned else own

    def _is_closed(self, steps: Steps, code: int) -> bool:
        """Whether a thing has other values of a relation, of which the one claimed could be one."""
        like = StepsOfLike(self.ctx, self.ways)
        others = self.named[steps.first]
        return code % 2 == 0 and any(code ^ 1 in like.find_likely(other) for other in others)

    def _follow(self, start: int, codes: tuple[int, ...]) -> EntityPathTable:
        return follow_codes(self.ways, start, np.array(codes, np.int64))

    def _keep(self, routes: EntityPathTable, ends: frozenset[int]) -> EntityPathTable:
        return routes.select(np.flatnonzero(np.isin(routes.entities[:, -1], sorted(ends))))

    def _conclude(self, short: str, steps: Steps, routes: EntityPathTable | None) -> Verdict:
        """Return an answer with the routes that say it; none without any."""
        if routes is None or not len(routes):
            return Verdict()
        rows = zip(routes.entities.tolist(), routes.facts.tolist(), strict=True)
        paths = [
            replace(steps.path, entities=tuple(entities), facts=tuple(facts), by=ASKED_MARK)
            for entities, facts in rows
        ]
        return Verdict(short, tuple({path.entities[-1]: path for path in paths}.values()))


def _join_alike(some: Collection[Steps]) -> list[Steps]:
    """Give each relation path the likeliest reading, and the share, of all along its relations.

    The same claim may be read from its other name; and which direction of a relation is claimed is
    for its sides to tell.
    """
    read: dict[tuple[int, ...], float] = defaultdict(lambda: -1.0)
    share: dict[tuple[int, ...], float] = defaultdict(float)
    for one in some:
        read[one.relations] = max(read[one.relations], one.path.asked)
        share[one.relations] = min(1.0, share[one.relations] + one.path.score)
    return [
        replace(one, path=replace(one.path, asked=read[key], score=share[key]))
        for one in some
        for key in (one.relations,)
    ]
