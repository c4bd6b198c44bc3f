"""Source material for community summaries: keywords, and lines with citations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from clew.graph.community_tree import FIRST_CHUNK_TREE, CommunityForest
from clew.graph.csr import Csr, Floats, Ints, build_csr
from clew.store.protocol import Snapshot
from clew.text.sentences import sentence_spans
from clew.text.unicode import split_words
from clew.tree.summaries import QUOTED, ChunkSpan, CommunitySummary, SummaryPoint
from clew.types import Chunk, Kind

if TYPE_CHECKING:
    from clew.index.view import View

_SHARED_FACT_BONUS = 0.5  # added weight for each further member a fact links
_REPEAT_PENALTY = 0.3  # subtracted for each further fact of the same member
MAX_LINES = 24  # lines per community at most
MAX_KEYWORDS = 8
_MAX_QUOTES = 5  # sentences of a quoted summary
_MIN_FACT_CHARS = 25  # characters; shorter facts are likely headings
_MAX_PASSAGE_CHARS = 1200  # characters of one passage in the prompt
_NAME_KEYWORDS = 3  # keywords that form the name of a quoted summary
_COSINE_DIGITS = 5  # beyond them, the last bits depend on where a vector lies


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of the prompt, and the summary point used for it without a model."""

    prompt_text: str
    point: SummaryPoint
    passage: tuple[int, Chunk] | None = None
    """Key and chunk, where the line is a whole passage."""

    def find_citation(self, sentence: str) -> tuple[ChunkSpan, ...]:
        """Return the spans that support a sentence: in a passage, the best-matching sentence."""
        if self.passage is None:
            return self.point.places
        key, chunk = self.passage
        wanted = set(split_words(sentence))
        start, end = max(
            sentence_spans(chunk.text) or [(0, len(chunk.text))],
            key=lambda span: len(wanted.intersection(split_words(chunk.text[span[0] : span[1]]))),
        )
        return (ChunkSpan(key, chunk.start + start, chunk.start + end),)


@dataclass(frozen=True, slots=True)
class SummaryMaterial:
    """Keywords, lines and fact keys of one community."""

    keywords: tuple[str, ...]
    lines: tuple[SourceLine, ...]
    seen: tuple[int, ...] = ()

    def to_quoted_summary(self) -> CommunitySummary:
        """Make a summary without a model: keywords as the name, the first lines as the text."""
        name = ", ".join(self.keywords[:_NAME_KEYWORDS])
        points = [line.point for line in self.lines]
        points = [point for point in points if len(point.text) >= _MIN_FACT_CHARS] or points
        return CommunitySummary(name, tuple(points[:_MAX_QUOTES]), self.keywords, QUOTED, self.seen)


@dataclass(frozen=True)
class SummarySource:
    """Collects material; facts are selected once per forest and cached in the view."""

    view: View
    snapshot: Snapshot
    forest: CommunityForest

    async def collect(
        self, communities: Ints, summaries: Mapping[int, CommunitySummary]
    ) -> dict[int, SummaryMaterial]:
        """Return material by community; `summaries` holds those of communities below."""
        over_chunks = self.forest.tree[communities] >= FIRST_CHUNK_TREE
        found = await self._collect_entities(communities[~over_chunks])
        inner = self.forest.below.degrees()[communities] > 0
        found |= await self._collect_passages(communities[over_chunks & ~inner])
        for community in communities[over_chunks & inner].tolist():
            found[community] = self._collect_children(community, summaries)
        return found

    # -- communities of entities

    async def _collect_entities(self, communities: Ints) -> dict[int, SummaryMaterial]:
        if not len(communities):
            return {}
        facts = {at: self._select_facts(at) for at in communities.tolist()}
        names = {at: self.keyword_positions(at) for at in communities.tolist()}
        fact_keys, entity_keys = self.view.keys("fact"), self.view.keys("entity")
        fact_at = await self.snapshot.facts(_distinct_keys(fact_keys, facts.values()))
        entity_at = await self.snapshot.entities(_distinct_keys(entity_keys, names.values()))
        found = {}
        for community in communities.tolist():
            keywords = [entity_at[int(entity_keys[at])].name for at in names[community]]
            keys = [int(fact_keys[at]) for at in facts[community]]
            lines = [SourceLine(fact_at[k].text, SummaryPoint(fact_at[k].text, (k,))) for k in keys]
            found[community] = SummaryMaterial(
                tuple(dict.fromkeys(keywords)), tuple(lines), tuple(keys)
            )
        return found

    def _select_facts(self, community: int) -> list[int]:
        if "tree_spoken" not in self.view.memo:
            self.view.memo["tree_spoken"] = select_facts(self.view, self.forest, MAX_LINES)
        selected: Csr = self.view.memo["tree_spoken"]
        facts = selected.row(community)
        order = _order_down(selected.row_weights(community), self.view.codes("fact")[facts])
        found: list[int] = facts[order].tolist()
        return found

    def keyword_positions(self, community: int) -> list[int]:
        """Return the centre, then the strongest members or the centres of the children."""
        below = self.forest.below.row(community)
        if len(below):
            near = self.forest.centre[below[self._largest_first(below)]].tolist()
        else:
            members = self.forest.entities.row(community)
            weights = self.forest.entities.row_weights(community).round(_COSINE_DIGITS)
            order = _order_down(weights, self.view.codes("entity")[members])
            near = members[order[:MAX_KEYWORDS]].tolist()
        centre = int(self.forest.centre[community])
        found = dict.fromkeys([centre, *near] if centre >= 0 else near)
        return list(found)[:MAX_KEYWORDS]

    def _largest_first(self, communities: NDArray[np.integer]) -> Ints:
        """Return the order of communities by size; equals by the content of their members."""
        codes = [self._code_of(at) for at in communities.tolist()]
        return _order_down(self.sizes[communities], np.array(codes, np.int64))

    def _code_of(self, community: int) -> int:
        """A number that depends on the members alone."""
        if self.forest.tree[community] >= FIRST_CHUNK_TREE:
            codes = self.view.codes("chunk")[self.forest.passages(community)[0]]
        else:
            codes = self.view.codes("entity")[self.forest.members(community)[0]]
        return int(np.bitwise_xor.reduce(codes, initial=0))

    @property
    def sizes(self) -> Ints:
        """Number of members of each community."""
        if "tree_sizes" not in self.view.memo:
            self.view.memo["tree_sizes"] = self.forest.sizes()
        found: Ints = self.view.memo["tree_sizes"]
        return found

    # -- communities of passages

    async def _collect_passages(self, communities: Ints) -> dict[int, SummaryMaterial]:
        found = {}
        keys = self.view.keys("chunk")
        for community in communities.tolist():
            members, _ = self.forest.passages(community)
            members = self._order_by_centrality(members)
            chunks = await self.snapshot.chunks([int(keys[at]) for at in members])
            lines = [
                self._make_line(int(at), int(keys[at]), chunks[int(keys[at])], members)
                for at in members.tolist()
            ]
            titles = dict.fromkeys(chunks[int(keys[at])].title for at in members.tolist())
            names = tuple(title for title in titles if title) or (lines[0].point.text[:60],)
            found[community] = SummaryMaterial(names[:MAX_KEYWORDS], tuple(lines[:MAX_LINES]))
        return found

    def _order_by_centrality(self, members: Ints) -> Ints:
        if not self._has_vectors("chunk"):
            return members
        vectors = self.view.vectors("chunk", members)
        near = (vectors @ vectors.mean(axis=0)).round(_COSINE_DIGITS)
        found: Ints = members[_order_down(near, self.view.codes("chunk")[members])]
        return found

    def _has_vectors(self, kind: Kind) -> bool:
        matrix = self.view.matrices.get(kind)
        return matrix is not None and matrix.size > 0

    def _make_line(self, at: int, key: int, chunk: Chunk, members: Ints) -> SourceLine:
        """Make a line of a passage, with its sentence nearest to the mean of all members."""
        links = self.view.links("chunk_fact")
        facts, begins = links.row(at).astype(np.int64), links.row_weights(at)
        begin = 0
        if len(facts):
            pick = int(begins.argmin())
            if self._has_vectors("fact") and self._has_vectors("chunk"):
                mean = self.view.vectors("chunk", members).mean(axis=0)
                near = (self.view.vectors("fact", facts) @ mean).round(_COSINE_DIGITS)
                pick = int(_order_down(near, self.view.codes("fact")[facts])[0])
            begin = int(begins[pick])
        start, end = _find_sentence(chunk.text, begin)
        place = ChunkSpan(key, chunk.start + start, chunk.start + end)
        title = f"{chunk.title}: " if chunk.title else ""
        shown = title + " ".join(chunk.text.split())[:_MAX_PASSAGE_CHARS]
        return SourceLine(shown, SummaryPoint(chunk.text[start:end], (), (place,)), (key, chunk))

    def _collect_children(
        self, community: int, summaries: Mapping[int, CommunitySummary]
    ) -> SummaryMaterial:
        below = self.forest.below.row(community)
        below = below[self._largest_first(below)]
        parts = [summaries[at] for at in below.tolist() if at in summaries]
        keywords = dict.fromkeys(part.keywords[0] for part in parts if part.keywords)
        lines = tuple(
            SourceLine(f"{part.name}: {part.summary}"[:_MAX_PASSAGE_CHARS], part.points[0])
            for part in parts[:MAX_LINES]
            if part.points
        )
        return SummaryMaterial(tuple(keywords)[:MAX_KEYWORDS], lines)


def _order_down(values: Floats | Ints, codes: Ints) -> Ints:
    """Return the order of falling values; equals by their codes, which every build has."""
    return np.lexsort((codes, -values))


def _distinct_keys(keys: Ints, many: Iterable[list[int]]) -> list[int]:
    positions = dict.fromkeys(at for some in many for at in some)
    return [int(keys[at]) for at in positions]


def _find_sentence(text: str, begin: int) -> tuple[int, int]:
    """Return the span of the sentence at an offset; the first sentence if none contains it."""
    spans = sentence_spans(text) or [(0, len(text))]
    return next(((start, end) for start, end in spans if start <= begin < end), spans[0])


def select_facts(view: View, forest: CommunityForest, most: int) -> Csr:
    """Return community → at most `most` weighted facts; parents take turns among children."""
    links = view.links("entity_fact")
    community = forest.entities.row_numbers()
    entity = forest.entities.columns.astype(np.int64)
    fit = forest.entities.weights.round(_COSINE_DIGITS)
    which, edge = links.edges_of(entity)
    fact = links.columns[edge].astype(np.int64)
    owner, fact, weight = _weigh_facts(view, community[which], fact, (entity[which], fit[which]))
    codes = view.codes("fact")
    found = _keep_best(len(forest), owner, fact, weight, most, codes)
    return _add_upper_levels(forest, found, most, codes)


def _weigh_facts(
    view: View, community: Ints, fact: Ints, member: tuple[Ints, Floats]
) -> tuple[Ints, Ints, Floats]:
    """Weigh each (community, fact) by the members it links and the score of the best one."""
    node, score = member
    width = max(view.count("fact"), 1)
    key = community * width + fact
    order = np.lexsort((view.codes("entity")[node], -score, key))
    keys, first, linked = np.unique(key[order], return_index=True, return_counts=True)
    community, fact, best = keys // width, keys % width, order[first]
    top = np.full(int(community.max(initial=0)) + 1, 1e-9, np.float32)
    np.maximum.at(top, community, score[best])
    weight = score[best] / top[community] + _SHARED_FACT_BONUS * np.minimum(linked - 1, 2)
    # Facts of one member by weight: the first counts fully, each further one less.
    rank = _rank_within_groups(
        community * np.int64(len(node) and int(node.max()) + 1) + node[best],
        -weight,
        view.codes("fact")[fact],
    )
    return community, fact, (weight - _REPEAT_PENALTY * rank).astype(np.float32)


def _rank_within_groups(group: Ints, cost: Floats, codes: Ints) -> Ints:
    order = np.lexsort((codes, cost, group))
    sorted_group = group[order]
    begin = np.flatnonzero(np.diff(sorted_group, prepend=sorted_group[:1] - 1))
    place = np.arange(len(group)) - np.repeat(begin, np.diff(np.append(begin, len(group))))
    found = np.empty(len(group), np.int64)
    found[order] = place
    return found


def _keep_best(rows: int, row: Ints, column: Ints, weight: Floats, most: int, codes: Ints) -> Csr:
    keep = _rank_within_groups(row, -weight, codes[column]) < most
    return build_csr(rows, row[keep], column[keep], weight[keep])


def _add_upper_levels(forest: CommunityForest, found: Csr, most: int, codes: Ints) -> Csr:
    """Add facts of upper levels: every child's first before any second, large children first."""
    sizes = forest.sizes()
    row = found.row_numbers()
    column, weight = found.columns.astype(np.int64), found.weights
    for level in range(int(forest.level.max(initial=0)), 0, -1):
        lower = forest.level[row] == level
        up = forest.parent[row[lower]]
        ties = codes[column[lower]]
        rank = _rank_within_groups(row[lower], -weight[lower], ties).astype(np.float32)
        share = sizes[row[lower]] / np.maximum(sizes[up], 1)
        added = _keep_best(
            len(forest), up, column[lower], (share - rank).astype(np.float32), 2 * most, codes
        )
        added = _drop_duplicates(added, most, codes)
        row = np.concatenate([row, added.row_numbers()])
        column = np.concatenate([column, added.columns.astype(np.int64)])
        weight = np.concatenate([weight, added.weights])
    return build_csr(len(forest), row, column, weight)


def _drop_duplicates(links: Csr, most: int, codes: Ints) -> Csr:
    """Keep a fact of several children once, with its highest weight."""
    row = links.row_numbers()
    order = np.lexsort((-links.weights, links.columns, row))
    pair = np.stack([row[order], links.columns[order]])
    new = np.ones(len(order), np.bool_)
    new[1:] = (pair[:, 1:] != pair[:, :-1]).any(axis=0)
    kept = order[new]
    return _keep_best(
        *(len(links), row[kept], links.columns[kept].astype(np.int64)),
        *(links.weights[kept], most, codes),
    )
