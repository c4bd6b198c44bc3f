"""Classify a name (person, location …) by the words around it, to label its placeholder."""

import re

# English words that indicate a kind; names in other languages and unclear ones are NAME.
_KIND_WORDS = {
    "PERSON": (
        "actor actress singer musician politician king queen emperor empress prince princess duke "
        "duchess count countess bishop pope poet writer author novelist painter director producer "
        "engineer scientist physicist chemist player footballer cricketer composer lawyer judge "
        "general admiral soldier philosopher historian journalist son daughter wife husband "
        "mother father brother sister man woman person character model dancer architect rapper "
        "guitarist drummer songwriter screenwriter filmmaker businessman businesswoman athlete"
    ),
    "LOCATION": (
        "city town village river lake mountain island country state county province district "
        "region municipality capital continent sea bay valley street park community commune "
        "parish suburb hamlet peninsula township settlement kingdom empire republic coast"
    ),
    "ORGANISATION": (
        "company corporation university college school band group team club party organisation "
        "organization agency association institute newspaper publisher label church museum "
        "regiment army studio network station foundation league union bank airline"
    ),
    "WORK": (
        "film movie album song novel book series play opera magazine game poem painting single "
        "episode sitcom documentary musical symphony comic manga"
    ),
}
KIND_BY_WORD = {word: kind for kind, told in _KIND_WORDS.items() for word in told.split()}
UNKNOWN_KIND = "NAME"
_PHRASE_END = re.compile(r",|\b(?:who|that|which|by|of|in|from|and|on|for|at|near|with)\b")
_IS_A = re.compile(r"\b(?:is|was|are|were)\s+(?:a|an|the|one of the)\s+([^.;:]{3,140})", re.I)
_LOCATION_PREPOSITION = re.compile(r"\b(?:in|at|near|from|of)\s+$")
_PERSON_TITLE = re.compile(
    r"\b(?:Mr|Mrs|Ms|Dr|Sir|Lady|King|Queen|Prince|Princess|President)\.?\s+$"
)


def classify_name(name: str, text: str, about: float) -> str:
    """Return PERSON, LOCATION, ORGANISATION or WORK, or NAME where the text does not say."""
    if about > 0.5:
        is_a = _IS_A.search(text)
        if is_a:
            phrase = _PHRASE_END.split(is_a[1].lower())[0]
            known = [
                KIND_BY_WORD[word] for word in re.findall(r"[a-z]+", phrase) if word in KIND_BY_WORD
            ]
            if known:
                return known[-1]  # the head noun comes last: a film director is a director
    at = text.find(name)
    if at > 0:
        before = text[max(0, at - 24) : at]
        if _PERSON_TITLE.search(before):
            return "PERSON"
        if _LOCATION_PREPOSITION.search(before) and before.rstrip().endswith((" in", " near")):
            return "LOCATION"
    return UNKNOWN_KIND
