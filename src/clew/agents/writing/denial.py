"""Negation detection in several languages."""

import re

# English, and others that write it as a word of its own. A capital within a sentence belongs to a
# name ("Never Say Never", the composer Nie Er); "No. 5" is a number, "non-fiction" a kind.
_NEGATION_WORDS = (
    r"not|never|no(?!\.\s*\d)|nor|neither|without|cannot|nobody|nothing|none|hardly|scarcely|barely"
    r"|(?:fail|failed|fails|failing) to|denied|denies|deny|\w+n['’]t"
    r"|nicht|nichts|kein(?:e[mnrs]?)?|nie|niemals|niemand|niet|geen|nooit|inte|ingen|aldrig|ikke"
    r"|nunca|jamás|ning[uú]n[oa]?|nadie|não|nem|ninguém|non(?!-)|nessun[oa]?|nikdy|değil"
    r"|не|ни|нет|никогда|никто|немає|لا|لم|لن|ليس|ليست|לא"
)
_SENTENCE_START = r"(?:(?<=[.!?] )|^[\"“'‘]?)"
_CAPITALISED_NEGATIONS = (
    r"Not|Never|No|Neither|Nobody|Nothing|None|Without|Hardly|Nicht|Kein(?:e[mnrs]?)?|Nie|Niemand"
    r"|Nunca|Nadie|Ning[uú]n[oa]?|Não|Ninguém|Niet|Geen|Nessun[oa]?|Non|Не|Ни|Нет|Никто|Никогда"
)
_FRENCH_NEGATION = (
    r"\b(?:[Nn]e\s|[Nn]['’])[^.,;]{1,40}?\b(?:pas|jamais|plus|rien|personne|aucune?)\b"
)
# Scripts without spaces, less the words in which the sign means something else: 非洲 is Africa.
_CJK_NEGATIONS = (
    r"非(?![洲常])|不(?![丹仅僅但久])|[无無](?![锡錫线線])|未(?![来來])|[没沒]|नहीं"
    r"|(?<![少危])ない(?!し)|なかっ|ません|않|못[하했한]|없[는다었으이]|아니"
)
_NEGATION = re.compile(
    rf"\b(?:{_NEGATION_WORDS})\b|\b(?:NOT|NEVER)\b|{_SENTENCE_START}(?:{_CAPITALISED_NEGATIONS})\b(?!\s+[A-Z]|\.\s*\d)"
    rf"|{_FRENCH_NEGATION}|{_CJK_NEGATIONS}"
)


def is_negated(text: str) -> bool:
    """Whether a text contains a negation."""
    return _NEGATION.search(text) is not None


def has_same_polarity(sentence: str, text: str) -> bool:
    """Whether both texts are negated, or neither is."""
    return is_negated(sentence) == is_negated(text)
