"""Answer patterns for Chinese pages: 出生于, 导演是, 父亲为."""

import re
from collections.abc import Iterator, Sequence

from clew.agents.planning.chinese import (
    HAN,
    RELATION_PATTERN,
    RELATION_WORDS,
    AskedAttribute,
    parse_attribute_question,
)
from clew.sentences import sentence_spans
from clew.types import Passage

Span = tuple[int, int]
_DATE = r"(?:公元前?)?\d{1,4}年(?:\d{1,2}月(?:\d{1,2}[日号])?)?"
_STOP = "，。；、（(）),;！？!?“”《》：:\\s"
# After a verb a name runs to the next punctuation mark.
_TITLE_BEFORE_NAME = (
    "(?:["
    + HAN
    + "]{0,6}?(?:家|导演|演员|工程师|建筑师|教授|诗人|医生|商人|将军|歌手|编剧|画家|教师|律师))?"
)
_FULL_NAME = rf"(?:[{HAN}]{{2,4}}|[{HAN}]{{1,8}}(?:·[{HAN}]{{1,8}})+|[A-Z][A-Za-z.'’ -]+)"
_NAME = rf"(?P<v>{_FULL_NAME})(?=[{_STOP}和与及]|$)"
_PLACE = rf"(?P<v>[{HAN}·]{{2,14}}?)(?=[{_STOP}一并后和与]|的|去世|逝世|病逝|出生|$)"
_NO_NAME = re.compile("[一某谁其他她它这那位个名]|不详|未知|不明|何人")
_DIED = "(?:去世|逝世|病逝|辞世|过世|身亡|卒)"
_AT = rf"(?:{_DATE})?[，,]?(?:在|于)?"
_BRACKET = re.compile(r"[（(][^（()）]{4,80}[）)]")
_UNTIL = re.compile(r"[－—–~～至-]")
_ANSWER_PATTERNS: dict[str, Sequence[str]] = {
    "born": (rf"(?P<v>{_DATE})[，,]?(?:出|诞)?生", rf"(?:出|诞)?生(?:于|在)(?P<v>{_DATE})"),
    "died": (
        rf"(?P<v>{_DATE})(?:[，,]?[在于][{HAN}]{{2,10}}?|因[{HAN}]{{1,8}}?)?[，,]?{_DIED}",
        rf"(?:{_DIED}|逝|死)于(?P<v>{_DATE})",
    ),
    "born in": (rf"(?:出生|诞生|生)(?:于|在){_AT}{_PLACE}", rf"在{_PLACE}出生"),
    "died in": (rf"(?:{_DIED}|逝|死)(?:于|在){_AT}{_PLACE}", rf"[在于]{_PLACE}{_DIED}"),
    "out": (
        rf"(?P<v>{_DATE})[，,]?(?:正式|首次|在[{HAN}]{{2,8}}?)?(?:上映|发行|出版|成立|建成|创立|创办|建立|开业|发布|"
        r"首播|落成|开通|竣工|首演|开放|建造)",
        rf"(?:上映|发行|出版|成立|建成|创立|创办|建立|建|开业|发布|首播|落成|开通|竣工|首演|始建)于(?P<v>{_DATE})",
        rf"是(?:一[部本首座])?(?P<v>{_DATE})(?:上映|发行|出版)?的",
    ),
    "height": (r"(?:高度?|海拔)(?:约|为|是|达)*(?P<v>\d[\d,.]*\s*[米公里千厘]+)",),
    "length": (r"(?:全?长度?|总长)(?:约|为|是|达)*(?P<v>\d[\d,.]*\s*[米公里千厘]+)",),
    "area": (r"面积(?:约|为|是|达)*(?P<v>\d[\d,.]*\s*[万亿]?(?:平方公里|平方千米|平方米|公顷))",),
    "weight": (r"重量?(?:约|为|是|达)*(?P<v>\d[\d,.]*\s*[吨公斤千克]+)",),
    "depth": (r"深度?(?:约|为|是|达)*(?P<v>\d[\d,.]*\s*[米公里千]+)",),
    "population": (
        r"人口(?:约|为|是|有|达)*(?P<v>[\d一二三四五六七八九十百千万亿][\d,.]*[十百千万亿]*)",
    ),
}
_MAKER_VERBS = {
    "director": "执导|导演|拍摄",
    "author": "创作|撰写|所著|著|写",
    "composer": "作曲|谱曲|配乐",
    "performer": "演唱",
    "producer": "制片|监制|制作",
    "screenwriter": "编剧",
    "founder": "创立|创办|创建|建立",
    "designer": "设计",
    "inventor": "发明",
    "star": "主演",
}
_COUNTRIES = (
    "中国|中华民国|台湾|香港|日本|韩国|朝鲜|蒙古|越南|泰国|缅甸|印度尼西亚|印度|马来西亚|新加坡|菲律宾|巴基斯坦|孟加拉国|"
    "伊朗|伊拉克|以色列|土耳其|沙特阿拉伯|叙利亚|黎巴嫩|约旦|埃及|摩洛哥|突尼斯|阿尔及利亚|尼日利亚|肯尼亚|埃塞俄比亚|南非|加纳|"
    "美国|加拿大|墨西哥|古巴|巴西|阿根廷|智利|秘鲁|哥伦比亚|委内瑞拉|乌拉圭|英国|英格兰|苏格兰|爱尔兰|法国|德国|意大利|西班牙|"
    "葡萄牙|荷兰|比利时|瑞士|奥地利|波兰|捷克|斯洛伐克|匈牙利|罗马尼亚|保加利亚|希腊|塞尔维亚|克罗地亚|俄罗斯|俄国|苏联|乌克兰|"
    "白俄罗斯|立陶宛|拉脱维亚|爱沙尼亚|芬兰|瑞典|挪威|丹麦|冰岛|澳大利亚|新西兰"
)
_COUNTRY = re.compile(rf"(?:^|[，,、（(是位名的为]|来自|国籍)(?P<v>{_COUNTRIES})(?!语|文|队)")
_CONTINUES = re.compile("(?:他|她|它|其|该|此|这)")
_OPENS = "《“「『"
_CLOSES = "》”」』"


def find_chinese_answer(question: str, passages: Sequence[Passage]) -> tuple[Passage, Span] | None:
    """Find the span of the answer in the sentences about the question's subject."""
    asked = parse_attribute_question(question)
    if asked is None or not (name := asked.subject.strip(f"{_OPENS}{_CLOSES} ")):
        return None
    for passage in sorted(passages, key=lambda p: p.title != name):
        for start, end in find_sentences_about(name, passage):
            for first, last in _find_answer_spans(asked, name, passage.text[start:end]):
                return passage, (start + first, start + last)
    return None


def find_sentences_about(name: str, passage: Passage) -> Iterator[Span]:
    """Yield the sentences about a name: those that begin with it or continue with a pronoun."""
    whole, on = passage.title.strip(f"{_OPENS}{_CLOSES} ") == name, False
    for start, end in sentence_spans(passage.text):
        sentence = passage.text[start:end].lstrip(f"{_OPENS}# ")
        begins = sentence.startswith(name) and _name_ends_here(sentence, name)
        on = begins or (on and _CONTINUES.match(sentence) is not None)
        if on or whole:
            yield start, end


def _name_ends_here(sentence: str, name: str) -> bool:
    """Whether the name is complete in the sentence: 王小 is not in 王小波是."""
    behind = sentence[len(name) : len(name) + 1]
    return (
        not re.match(f"[{HAN}·]", behind)
        or behind in "是为在于的出生由有和与曾，来位原系又也因死卒逝"
    )


def _find_answer_spans(asked: AskedAttribute, name: str, sentence: str) -> Iterator[Span]:
    if asked.attribute not in RELATION_WORDS and _is_about_relative(name, sentence):
        return
    if asked.attribute in ("born", "died") and (
        lived := _find_life_date(name, sentence, asked.attribute)
    ):
        yield lived
    if asked.attribute == "country":
        yield from (found.span("v") for found in _COUNTRY.finditer(sentence))
    for turn in (*_ANSWER_PATTERNS.get(asked.attribute, ()), *_relation_patterns(asked.attribute)):
        for found in re.finditer(turn, sentence):
            person = asked.attribute in RELATION_WORDS
            if not (person and (_NO_NAME.match(found["v"]) or found["v"] == name)):
                yield found.span("v")


def _is_about_relative(name: str, sentence: str) -> bool:
    """Whether a sentence is about a relative or maker: X的父亲1920年出生于济南."""
    owner = rf"[{_OPENS}]?(?:{re.escape(name)}|他|她|它|其)[{_CLOSES}]?的?"
    return re.match(rf"{owner}(?:{RELATION_PATTERN})", sentence) is not None


def _find_life_date(name: str, sentence: str, end: str) -> Span | None:
    """Find the date in brackets right after the name."""
    at = sentence.find(name) + len(name)
    bracket = _BRACKET.match(sentence, at + (sentence[at : at + 1] in tuple(_CLOSES)))
    until = _UNTIL.search(sentence, *bracket.span()) if bracket else None
    if bracket is None or until is None:
        return None
    side = (bracket.start(), until.start()) if end == "born" else (until.end(), bracket.end())
    found = re.compile(_DATE).search(sentence, *side)
    return found.span() if found else None


def _relation_patterns(rel: str) -> list[str]:
    """Return the patterns for a relation: "导演是X", "由X执导"."""
    words = RELATION_WORDS.get(rel)
    if words is None:
        return []
    turns = [rf"(?:{words})(?:是|为|叫|系|：|:)\s*{_TITLE_BEFORE_NAME}{_NAME}"]
    if verbs := _MAKER_VERBS.get(rel):
        turns.append(rf"由{_TITLE_BEFORE_NAME}(?P<v>{_FULL_NAME}?)(?:担任|负责)?(?:{verbs})")
        turns.append(rf"[，,]{_TITLE_BEFORE_NAME}(?P<v>{_FULL_NAME}?)(?:{verbs})(?=[{_STOP}的]|$)")
    return turns
