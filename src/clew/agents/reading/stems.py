"""What the forms of a word share, irregular verbs and synonyms among them."""

from functools import lru_cache

from clew.agents.citing.entailment import SYNONYM_OF_STEM
from clew.text.irregular_verbs import BASE_OF_FORM

_MIN_STEM = 3  # letters that are left when an ending is cut
_ENDINGS = ("ing", "ers", "er", "ors", "or", "ied", "ies", "ed", "es", "s", "e", "y")


@lru_cache(maxsize=8192)  # the words of a question's passages, again and again
def cut_ending(word: str) -> str:
    """Return what the forms of a word share: "owned" and "owns"."""
    if group := SYNONYM_OF_STEM.get(word[:5]):
        return group
    word = BASE_OF_FORM.get(word, word)
    for ending in _ENDINGS:
        stem = word.removesuffix(ending)
        if stem != word and len(stem) >= _MIN_STEM and not (ending == "s" and len(word) <= 4):
            return stem[:6]
    return word[:6]
