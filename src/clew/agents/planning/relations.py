"""Relations that questions ask for by name, and the words by which a page mentions them."""

import re

ROLE_STEMS = {
    "director": "direct",
    "composer": "compos|music|scor",
    "performer": "perform|record|sung|song|single|album|track",
    "singer": "perform|record|sung|song|single|album|track",
    "author": "writ|author|novel|book|poem|play",
    "writer": "writ|author",
    "producer": "produc",
    "founder": "found|establish",
    "designer": "design",
    "engineer": "engineer|design|buil",
    "builder": "buil|construct",
    "sculptor": "sculpt|carv|statue",
    "photographer": "photograph",
    "illustrator": "illustrat",
    "discoverer": "discover",
    "developer": "develop",
    "architect": "design|buil",
    "creator": "creat",
    "inventor": "invent",
    "publisher": "publish",
    "painter": "paint",
    "artist": "paint|record|perform",
    "editor": "edit",
    "owner": "own",
    "screenwriter": "writ|screenplay",
}
KINSHIP_PATTERNS: dict[str, tuple[str, ...]] = {
    "father": (
        r"\b(?:son|daughter|child)\s+of\b",
        r"\bfather\b(?:\s+(?:was|is|of))?,?",
        r"\bborn\s+to\b",
    ),
    "mother": (
        r"\b(?:son|daughter|child)\s+of\b[^.;]*?\b(?:and|by)\b(?:\s+his\s+(?:first|second|third)?\s*wife,?)?",
        r"\bmother\b(?:\s+(?:was|is))?,?",
    ),
    "spouse": (
        r"\bmarried(?:\s+to)?\b",
        r"\b(?:wife|husband|consort|spouse|widow)\s+of\b",
        r"\b(?:wife|husband|consort|spouse)\b(?:\s+(?:was|is))?,?",
    ),
    "child": (
        r"\b(?:father|mother)\s+of\b",
        r"\b(?:son|daughter|child|children)\b(?:\s+(?:was|is|named|were))?,?",
    ),
}
RELATION_SYNONYMS = {"husband": "spouse", "wife": "spouse", "son": "child", "daughter": "child"}
_ASKS_WHO = re.compile(r"\bwho\s+(?:is|was|are|were)\s+the\s+(?P<rel>[a-z]+)\s+of\b", re.I)
_ASKS_WHOSE = re.compile(r"\bwho\s+(?:is|was)\s.*['’]s?\s+(?P<rel>[a-z]+)\s*\?*$", re.I)
_ASKS_WHO_DID = re.compile(r"\s*who\s+(?P<verb>[a-z]+)\s+(?:the\s+)?(?:[a-z]+\s+)?\W*", re.I)
_VERB_ROLES = {
    "directed": "director",
    "composed": "composer",
    "performed": "performer",
    "sang": "performer",
    "wrote": "author",
    "produced": "producer",
    "founded": "founder",
    "established": "founder",
    "designed": "designer",
    "built": "architect",
    "created": "creator",
    "invented": "inventor",
    "published": "publisher",
    "painted": "painter",
    "edited": "editor",
    "owns": "owner",
    "married": "spouse",
}
# "was a singer from Leeds", but not "a line from Leeds to York".
_COMES_FROM = (
    r"\b(?:is|was|were|comes?|came|hails?|hailed)\s+(?:an?\s+(?:[\w-]+\s+){1,4})?"
    r"from\b(?![^.;]*\bto\b)"
)
# Words one of which a sentence needs to be relevant, where no answer pattern matched.
_LIFE_EVENT_PATTERNS = (
    (r"\bborn\b|\bbirth", rf"\bborn\b|\bbirth|\bb\.|\bnative of\b|{_COMES_FROM}|\d{{4}}\s*[–—-]"),
    (
        r"\bdied?\b|\bdeath\b",
        r"\bdied\b|\bdeath\b|\bkilled\b|\bexecuted\b|\bd\.|[–—-]\s*[\w ]*\d{4}",
    ),
)
_KIN_WORDS = {
    "father": r"father|son|daughter|child|born to",
    "mother": r"mother|(?:son|daughter|child|born)\b[^.;]*\b(?:and|by)\b",
    "spouse": r"spouse|husband|wife|married|marriage|consort|widow|wed",
    "child": r"child|son|daughter|father|mother",
    "sibling": r"sibling|brother|sister",
    "brother": r"brother|sister|sibling",
    "sister": r"brother|sister|sibling",
}


def find_asked_relation(question: str) -> str:
    """Return the relation asked for by "who is the R of" or "who R'd", in canonical form, or ""."""
    found = _ASKS_WHO.search(question)
    if found is not None:
        rel = found["rel"].lower()
        return RELATION_SYNONYMS.get(rel, rel)
    if (its := _ASKS_WHOSE.search(question)) is not None:
        return RELATION_SYNONYMS.get(its["rel"].lower(), its["rel"].lower())
    did = _ASKS_WHO_DID.match(question)
    return _VERB_ROLES.get(did["verb"].lower(), "") if did else ""


def asks_for_kin(question: str) -> bool:
    """Whether a question asks for a relative."""
    return find_asked_relation(question) in _KIN_WORDS


def mentions_relation(question: str, sentence: str) -> bool:
    """Whether a sentence mentions the asked relation; True where no known relation is asked."""
    rel = find_asked_relation(question)
    if rel in _KIN_WORDS:
        return re.search(rf"\b(?:{_KIN_WORDS[rel]})", sentence, re.I) is not None
    if rel in ROLE_STEMS:
        return re.search(rf"\b(?:{ROLE_STEMS[rel]}|{rel}|by\b)", sentence, re.I) is not None
    for asked, said in _LIFE_EVENT_PATTERNS:
        if re.search(asked, question, re.I):
            return re.search(said, sentence, re.I) is not None
    return True
