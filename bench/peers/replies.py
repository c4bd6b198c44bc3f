"""Scripted replies to each package's prompts, all from the same set of facts.

A prompt is recognised by a characteristic phrase; its passage or question is extracted, the names
and facts are looked up (or parsed), and formatted as that package expects.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clew.testing.stub_responses import NAME, Triple, find_facts

Messages = Sequence[Mapping[str, Any]]
Facts = tuple[list[str], list[Triple]]

ANSWER = "The passages join the two names by a recorded fact."
REPORT = {
    "title": "Names that are joined",
    "summary": "These names are joined by recorded facts.",
    "rating": 5.0,
    "rating_explanation": "Of middling weight.",
    "findings": [{"summary": "Joined", "explanation": "The passages join them to each other."}],
}


@dataclass(frozen=True)
class PeerReplies:
    """Replies to any package; `recorded` maps passages to facts found by a real model."""

    recorded: Mapping[str, Facts] = field(default_factory=dict, repr=False)

    def __call__(self, messages: Messages) -> str | None:
        """Return the reply, or None for an unknown prompt (Clew's own)."""
        said = [str(turn.get("content") or "") for turn in messages]
        first, last = (said[0], said[-1]) if said else ("", "")
        for mark, answer in _PROMPTS.items():
            if mark in last or mark in first:
                return answer(self, first, last)
        return None

    def find_facts(self, passage: str) -> Facts:
        """Return the names and triples of a passage."""
        return self.recorded.get(normalize_space(passage)) or find_facts(passage)


def normalize_space(text: str) -> str:
    """Collapse whitespace, so that passages can be matched."""
    return " ".join(text.split())


def text_between(text: str, begin: str, end: str) -> str:
    """Return the text between the last `begin` and the next `end`."""
    _, _, rest = text.rpartition(begin)
    return rest.partition(end)[0]


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _describe_name(name: str, triples: Sequence[Triple]) -> str:
    return next((" ".join(t) for t in triples if name in (t[0], t[2])), f"{name} is named.")


# -- lightrag-hku


def _lightrag_extract(replies: PeerReplies, first: str, last: str) -> str:
    names, triples = replies.find_facts(
        text_between(last, "---Input Text---\n```\n", "\n```\n\n---Output")
    )
    if "JSON" in last:
        return _to_json(
            {
                "entities": [
                    {"name": name, "type": "thing", "description": _describe_name(name, triples)}
                    for name in names
                ],
                "relationships": [
                    {"source": a, "target": b, "keywords": r, "description": f"{a} {r} {b}"}
                    for a, r, b in triples
                ],
            }
        )
    lines = [f"entity<|#|>{name}<|#|>thing<|#|>{_describe_name(name, triples)}" for name in names]
    lines += [f"relation<|#|>{a}<|#|>{b}<|#|>{r}<|#|>{a} {r} {b}" for a, r, b in triples]
    return "\n".join([*lines, "<|COMPLETE|>"])


def _lightrag_continue(replies: PeerReplies, first: str, last: str) -> str:
    empty = '{"entities": [], "relationships": []}'
    return empty if "JSON object" in last else "<|COMPLETE|>"


def _lightrag_keywords(replies: PeerReplies, first: str, last: str) -> str:
    question = text_between(last, "User Query: ", "\n\n---Output---") or last
    names = NAME.findall(question)
    return _to_json(
        {"high_level_keywords": [question.strip()[:80]], "low_level_keywords": names or ["name"]}
    )


# -- nano-graphrag (and the prompts it shares with MS GraphRAG)


def _nano_extract(replies: PeerReplies, first: str, last: str) -> str:
    names, triples = replies.find_facts(text_between(last, "\nText: ", "\n######################"))
    lines = [f'("entity"<|>{n.upper()}<|>THING<|>{_describe_name(n, triples)})' for n in names]
    lines += [
        f'("relationship"<|>{a.upper()}<|>{b.upper()}<|>{a} {r} {b}<|>7)' for a, r, b in triples
    ]
    return "\n##\n".join(lines) + "\n<|COMPLETE|>"


def _summarize_descriptions(replies: PeerReplies, first: str, last: str) -> str:
    return "The passages join it to several other names."


# -- hipporag


def _hipporag_entities(replies: PeerReplies, first: str, last: str) -> str:
    return _to_json({"named_entities": replies.find_facts(last)[0]})


def _hipporag_triples(replies: PeerReplies, first: str, last: str) -> str:
    _, triples = replies.find_facts(text_between(last, "Paragraph:\n```\n", "\n```") or last)
    return _to_json({"triples": [list(triple) for triple in triples]})


def _hipporag_filter(replies: PeerReplies, first: str, last: str) -> str:
    shown = text_between(last, "[[ ## fact_before_filter ## ]]\n", "\n\nRespond with")
    try:
        kept = json.loads(shown)["fact"][:4]
    except (ValueError, KeyError, TypeError):
        kept = []
    return f"[[ ## fact_after_filter ## ]]\n{_to_json({'fact': kept})}\n\n[[ ## completed ## ]]"


# -- fast-graphrag


def _fast_extract(replies: PeerReplies, first: str, last: str) -> str:
    if last.startswith(("MANY entities", "Retrospectively")):
        empty = '{"entities": [], "relationships": [], "other_relationships": []}'
        return empty if last.startswith("MANY") else '{"status": "done"}'
    names, triples = replies.find_facts(text_between(last, "**Document**:\n", "\n<<DOCUMENT_END>>"))
    return _to_json(
        {
            "entities": [
                {"name": n, "type": "thing", "desc": _describe_name(n, triples)} for n in names
            ],
            "relationships": [
                {"source": a, "target": b, "desc": f"{a} {r} {b}"} for a, r, b in triples
            ],
            "other_relationships": [],
        }
    )


def _fast_question(replies: PeerReplies, first: str, last: str) -> str:
    question = text_between(last, "-INPUT-\nQuery: ", "\nOutput:")
    named = [f"[THING] {name}" for name in NAME.findall(question)]
    return _to_json({"named": named, "generic": ["connection"]})


ReplyFunction = Callable[[PeerReplies, str, str], str]
_PROMPTS: dict[str, ReplyFunction] = {
    "Extract entities and relationships from the `---Input Text---`": _lightrag_extract,
    "Based on the last extraction task": _lightrag_continue,
    '"high_level_keywords"': _lightrag_keywords,
    "synthesize a list of descriptions": _summarize_descriptions,
    "<<DOCUMENT_START>>": _fast_extract,
    "extract all entities relevant to perform information retrieval": _fast_question,
    "grouped_facts": lambda *_: '{"grouped_facts": []}',
    "\nUpdated:": lambda *_: _to_json({"description": "It is joined to several other names."}),
    "-Real Data-": _nano_extract,
    "MANY entities were missed": lambda *_: "<|COMPLETE|>",
    "It appears some entities": lambda *_: "no",
    "rating_explanation": lambda *_: _to_json(REPORT),
    "Description List:": _summarize_descriptions,
    "extract named entities from the given paragraph": _hipporag_entities,
    "construct an RDF": _hipporag_triples,
    "fact_before_filter": _hipporag_filter,
    '"points"': lambda *_: _to_json({"points": [{"description": ANSWER, "score": 50}]}),
}
