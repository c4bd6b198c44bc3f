"""Cites the sentence that leads from a question to the one with its answer.

"How many people does the supplier of the crane employ?" is answered by "Lodestar employs 210
people", which rests on "The crane was supplied by Lodestar". Such a sentence says words of the
question that the answer's sentence lacks, and both name something that the question does not. It is
looked for when the confidence is known, which is fitted to what the reader has read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from clew.agents.citing.support import SupportSpan, make_citation, mentions_name
from clew.agents.core.types import Answer
from clew.agents.reading.choose import find_asked_noun
from clew.agents.reading.spans import asked_words
from clew.agents.reading.stems import cut_ending
from clew.agents.rules.question_analysis import find_subject_names
from clew.context import Context
from clew.text.names import strip_disambiguation, tokenize
from clew.text.sentences import sentence_spans
from clew.types import Citation, Passage

_MIN_LETTERS = 3  # of a word that is a name by itself
_MIN_SAID = 0.4  # share of the words lacking that it must say
_JOINING = frozenset(("and", "or"))


@dataclass(frozen=True, slots=True)
class Link:
    """What a sentence names that the question does not."""

    text: str
    opens: bool = False
    """Whether it is one word that begins the sentence, and may have its capital from that."""

    def find(self, sentence: str) -> int:
        """Return where another sentence names it, -1 if it does not."""
        return sentence.find(self.text, int(self.opens))


def cite_bridge(ctx: Context, answer: Answer) -> Answer:
    """Cite beside the one sentence that a span was read in the one that leads to it."""
    if answer.kind != "span" or len(answer.citations) != 1 or answer.verdict == "refused":
        return answer
    [cited] = answer.citations
    home = next((one for one in answer.evidence.chunks if one.id == cited.chunk), None)
    if home is None or answer.candidate not in cited.quote:
        return answer
    names = find_subject_names(ctx.view, ctx.question)
    search = BridgeSearch.create(ctx.question, names, answer.candidate, home, cited)
    found = search.find_best(answer.evidence.chunks)
    if found is None:
        return answer
    bridge, link = found
    text = f"{answer.answer}\n“{bridge.quote}” [2] (leads to {link})"
    return replace(answer, answer=text, citations=(cited, bridge))


@dataclass(frozen=True)
class BridgeSearch:
    """What a sentence must have to lead to the one that is cited."""

    cited: Citation
    lacking: frozenset[str]
    """The stems of the question's words that the cited sentence lacks."""
    unnamed: tuple[str, ...]
    """The names of the question that it lacks."""
    links: tuple[Link, ...]

    @classmethod
    def create(
        cls, question: str, names: Sequence[str], short: str, home: Passage, cited: Citation
    ) -> "BridgeSearch":
        """Compare a question with the sentence that is cited and the title of its page."""
        title = strip_disambiguation(home.title)
        told = f"{title} {cited.quote}"
        asked = {cut_ending(find_asked_noun(question))}
        lacking = frozenset(_find_stems(question) - _find_stems(told) - asked)
        unnamed = tuple(name for name in names if not mentions_name(name, told))
        links = tuple(_find_links(title, cited.quote, f"{question} {short}".casefold()))
        return cls(cited, lacking, unnamed, links)

    def find_best(self, passages: Sequence[Passage]) -> tuple[Citation, str] | None:
        """Return the sentence that says most of what is lacking, and what it leads to."""
        best: tuple[int, tuple[Citation, str]] | None = None
        for passage in passages if self.lacking else ():
            for start, end in sentence_spans(passage.text):
                link, said = self._compare(passage, passage.text[start:end])
                if link and (best is None or said > best[0]):
                    one = make_citation(passage, SupportSpan(start, end, 1.0))
                    same = (one.chunk, one.start) == (self.cited.chunk, self.cited.start)
                    best = best if same else (said, (one, link))
        return best[1] if best else None

    def _compare(self, passage: Passage, sentence: str) -> tuple[str, int]:
        """Return what a sentence leads to, if it does, and how much of what lacks it says."""
        around = f"{passage.title} {sentence}"
        link = next((one.text for one in self.links if one.find(sentence) >= 0), "")
        said = self.lacking & _find_stems(around)
        named = [name for name in self.unnamed if mentions_name(name, around)]
        enough = len(said) >= _MIN_SAID * len(self.lacking) and said & _find_stems(sentence)
        if not link or not enough or (self.unnamed and not named):
            return "", 0
        beside = any(_are_listed(sentence, link, name) for name in named)
        return ("", 0) if beside else (link, len(said))


def _are_listed(sentence: str, one: str, other: str) -> bool:
    """Whether two names stand in one list: neither leads to the other."""
    first, second = sorted((sentence.find(one), sentence.find(other)))
    begin = first + len(one if first == sentence.find(one) else other)
    between = sentence[begin:second]
    if first < 0 or not between.strip():
        return False
    return all(word in _JOINING or word[0].isupper() for word in between.replace(",", " ").split())


def _find_stems(text: str) -> set[str]:
    return set(map(cut_ending, asked_words(text)))


def _find_links(title: str, sentence: str, asked: str) -> Iterator[Link]:
    """Yield what a sentence names beside the question and the answer, its page first.

    Names are words with capitals, and what is called by two words of content in a row.
    """
    if title and title.casefold() not in asked:
        yield Link(title)
    t = tokenize(sentence)
    spans = list(zip(t.starts, t.ends, strict=True))
    content = [bool(asked_words(sentence[start:end])) for start, end in spans]
    pairs = [
        sentence[spans[at][0] : spans[at + 1][1]]
        for at in range(len(spans) - 1)
        if content[at] and content[at + 1]
    ]
    words = [
        Link(sentence[start:end], opens=not at)
        for at, (start, end) in enumerate(spans)
        if t.upper[at] and content[at] and end - start >= _MIN_LETTERS
    ]
    yield from (one for one in (*map(Link, pairs), *words) if one.text.casefold() not in asked)
