"""Names in scripts without capitals, told by what stands before and behind them.

佐藤健一 begins with a family name, 蓝海科技有限公司 ends as companies do, طنجة stands behind "the
city of". The affixes of each language are a table, `clew/text/name_affixes.toml`.
"""

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from importlib.resources import files

from clew.text.code_names import CodeName
from clew.text.name_spans import NAME, PARTICLES
from clew.text.word_forms import function_words

_HAN, _NAME_SIGN = "[\u3005\u4e00-\u9fff]", "[\u3005\u30a1-\u30fa\u30fc\u4e00-\u9fff]"
_ARABIC = "[\u0621-\u0652]"
_SIGNS = {"ja": re.compile("[\u3041-\u309f]"), "zh": re.compile(_HAN), "ar": re.compile(_ARABIC)}


@cache
def _read_table() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads((files("clew.text") / "name_affixes.toml").read_text(encoding="utf-8"))


def _any_of(language: str, name: str) -> str:
    """Return a pattern of the affixes of one kind, the longest first."""
    words = sorted(_read_table()[language][name].split(), key=len, reverse=True)
    return f"(?:{'|'.join(map(re.escape, words))})"


@cache
def _compile(language: str) -> tuple[re.Pattern[str], ...]:
    """Return patterns whose first group is a name."""
    part = {name: _any_of(language, name) for name in _read_table().get(language, {})}
    if language == "zh":
        return _compile_chinese(part)
    if language == "ja":
        alone = rf"(?<!{_NAME_SIGN})"
        ends = rf"(?!{_NAME_SIGN})"
        company = rf"{_NAME_SIGN}{{2,12}}{part['companies']}"
        return (
            re.compile(rf"{alone}({company}|{part['company_before']}{_NAME_SIGN}{{2,10}}){ends}"),
            re.compile(rf"{alone}({_HAN}{{2,4}}{part['places']}){ends}"),
            re.compile(rf"{alone}({_NAME_SIGN}{{2,5}}?){part['persons']}{ends}"),
            re.compile(rf"{alone}({part['families']}{_HAN}{{1,2}}){ends}"),
        )
    return _compile_arabic(part) if language == "ar" else ()


def _compile_chinese(part: Mapping[str, str]) -> tuple[re.Pattern[str], ...]:
    particles = f"[{''.join(sorted(PARTICLES))}]"
    behind = "|".join(f"(?<={word})" for word in part["before"][3:-1].split("|"))
    opens, ends = rf"(?:(?<!{_HAN})|(?<={particles}))", rf"(?!{_HAN})"
    family = rf"(?!{part['no_names']}){part['families']}"
    place = rf"{_HAN}{{2,3}}{part['places']}"
    company = rf"(?:(?!{particles}){_HAN}){{2,12}}?{part['companies']}"
    return (
        re.compile(rf"(?:{opens}|{behind})({family}{_HAN}{{1,2}}){part['persons']}"),
        re.compile(rf"(?:{behind})({family}{_HAN}{{1,2}}){ends}"),
        re.compile(rf"(?:{behind}|(?<=由))({family}{_HAN}{{2}})(?={part['does']})"),
        re.compile(rf"{part['place_before']}({place}(?:{place})?){ends}"),
        re.compile(rf"{opens}(?:{part['company_before']})*({company})"),
    )


def _compile_arabic(part: Mapping[str, str]) -> tuple[re.Pattern[str], ...]:
    begins = rf"(?<!{_ARABIC})(?:{part['joined']})?"
    second = rf"(?: {part['second']}{_ARABIC}+)?"
    word = rf"(?!{part['no_names']}(?!{_ARABIC})){_ARABIC}{{3,}}"
    title = f"(?:{part['persons']}|ل{part['persons'].replace('ال', 'ل')})"
    return (
        re.compile(rf"{begins}{title} ({word}{second})(?!{_ARABIC})"),
        re.compile(rf"{begins}{part['places']} ({word})(?!{_ARABIC})"),
        re.compile(rf"{begins}({part['companies']} {word})(?!{_ARABIC})"),
    )


def find_affixed_names(text: str, recurring: Collection[str]) -> Iterator[CodeName]:
    """Yield the names that affixes tell, and those among what recurs that begin as persons do."""
    language = _find_language(text)
    words = function_words(language)
    for pattern in _compile(language):
        for found in pattern.finditer(text):
            if found[1] not in words:
                yield CodeName(found.start(1), found.end(1), found[1], NAME)
    for name in _recurring_persons(language, recurring):
        for found in re.finditer(re.escape(name), text):
            yield CodeName(found.start(), found.end(), name, NAME)


def _find_language(text: str) -> str:
    """Return the language by its script, also where it is the lesser part of a text."""
    if text.isascii():
        return ""
    return next((one for one, sign in _SIGNS.items() if sign.search(text)), "")


def _recurring_persons(language: str, recurring: Collection[str]) -> Iterator[str]:
    if language == "zh":
        person = re.compile(rf"{_any_of('zh', 'families')}{_HAN}{{2}}")
        yield from filter(person.fullmatch, (term.replace(" ", "") for term in recurring))
