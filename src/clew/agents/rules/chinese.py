"""Rules for Chinese: questions (attributes, chains of 的, comparisons) and answer patterns.

A name in 《》 or quotes is masked, so that a 的 inside it splits nothing. Answer patterns match the
wordings of pages: 出生于, 导演是, 父亲为.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clew.agents.core.plan import Join, JoinKind, Plan, plan_for_each
from clew.text.language import HAN
from clew.text.sentences import sentence_spans
from clew.types import Passage

_QUOTED_NAME = re.compile("《[^《》]+》|“[^“”]+”|「[^「」]+」|『[^『』]+』")
_FIRST_MASK = 0xE000
_TRIMMED_ENDS = re.compile(r"[？?。！!\s]+$|^(?:请问|那么)[，,]?")
# Relations, by the words that name them.
RELATION_WORDS = {
    "director": "导演|執導者|导演者",
    "author": "作者|作家|著者|撰写者",
    "composer": "作曲者?|作曲家|配乐",
    "performer": "演唱者|歌手|原唱|主唱",
    "producer": "制片人|制作人|监制",
    "screenwriter": "编剧",
    "founder": "创始人|创立者|创办者|创办人|创建者|建立者",
    "designer": "设计者|设计师|建筑师",
    "inventor": "发明者|发明人",
    "star": "主演|主角",
    "father": "父亲|爸爸",
    "mother": "母亲|妈妈",
    "spouse": "丈夫|妻子|配偶|太太|夫人",
    "son": "儿子|长子|独子",
    "daughter": "女儿|长女|独女",
    "brother": "哥哥|弟弟|兄弟",
    "sister": "姐姐|妹妹|姐妹",
    "teacher": "老师|导师",
    "president": "总统|主席|校长|会长|总裁|市长|省长|总理|首相|国王|皇帝",
}
RELATION_PATTERN = "|".join(RELATION_WORDS.values())
_WHERE = "(?:哪里|哪儿|何处|何地|什么地方|哪个?(?:国家|城市|省份?|市|县|地方|地区|城镇?))"
_WHEN = "(?:何时|何年|什么时候|什么时间|哪一?年|哪一?天|几时|几几年)"
_DIE = "(?:去世|逝世|病逝|死亡|过世|身亡|死)"
_RELEASE_VERBS = "上映|发行|出版|成立|建成|创立|创办|建立|开业|发布|首播|落成|开通|竣工|首演|开放"
_SUBJECT = "(?P<x>.+?)"
_SIZE_WORDS = {"高": "height", "长": "length", "大": "area", "重": "weight", "深": "depth"}
_QUESTION_PATTERNS: Sequence[tuple[str, str]] = (
    ("born in", rf"{_SUBJECT}(?:是|的)?(?:出生|诞生|生)?(?:于|在){_WHERE}(?:出生|诞生)(?:的)?"),
    ("born in", rf"{_SUBJECT}是?(?:出生|诞生|生)(?:于|在){_WHERE}的?"),
    ("born in", rf"{_SUBJECT}的(?:出生地点?|籍贯|故乡|家乡)(?:是|在|位于)?(?:{_WHERE}|什么)"),
    ("born", rf"{_SUBJECT}是?在?{_WHEN}(?:出生|诞生)的?"),
    ("born", rf"{_SUBJECT}是?(?:出生|诞生|生)(?:于|在){_WHEN}的?"),
    ("born", rf"{_SUBJECT}的(?:出生日期|生日|出生年份|出生时间)是?(?:{_WHEN}|什么)?"),
    ("died", rf"{_SUBJECT}是?在?{_WHEN}{_DIE}的?"),
    ("died", rf"{_SUBJECT}是?(?:{_DIE}|卒|逝)于{_WHEN}的?"),
    ("died", rf"{_SUBJECT}的(?:逝世日期|去世日期|死亡日期|忌日|去世时间)是?(?:{_WHEN}|什么)?"),
    ("died in", rf"{_SUBJECT}是?(?:在|于){_WHERE}{_DIE}的?"),
    ("died in", rf"{_SUBJECT}是?(?:{_DIE}|卒|逝)(?:于|在){_WHERE}的?"),
    ("died in", rf"{_SUBJECT}的(?:逝世地点?|去世地点?|死亡地点)是?(?:{_WHERE}|什么)"),
    ("out", rf"{_SUBJECT}是?在?{_WHEN}(?:{_RELEASE_VERBS})的?"),
    ("out", rf"{_SUBJECT}的(?:{_RELEASE_VERBS})(?:日期|时间|年份)是?(?:{_WHEN}|什么)?"),
    ("country", rf"{_SUBJECT}的国籍是(?:什么|哪里|哪国|哪个国家)"),
    ("country", rf"{_SUBJECT}(?:是|来自|位于|在|属于)(?:哪国|哪个国家)的?人?"),
    ("{size}", rf"{_SUBJECT}有?多(?P<size>[高长大重深])"),
    ("population", rf"{_SUBJECT}的人口(?:是|有)?多少"),
)
_ASKS_RELATION_OF = re.compile(
    rf"{_SUBJECT}的(?P<rel>{RELATION_PATTERN})(?:是|叫|为)(?:谁或什么|谁|什么人?|什么名字|哪.*)"
)
_WHO_IS = re.compile(rf"谁是{_SUBJECT}的(?P<rel>{RELATION_PATTERN})")
_RELATION_VERBS = {
    "director": "执导|导演|拍摄",
    "author": "写|创作|著|撰写",
    "composer": "作曲|谱写",
    "performer": "演唱|唱",
    "founder": "创立|创办|创建|建立|成立",
    "designer": "设计",
    "inventor": "发明",
}
_WHO_DID = tuple(
    (
        rel,
        re.compile(
            rf"(?:是谁|谁|哪位.{{0,3}}?)(?:{verbs})(?:了|的)?(?:电影|影片|小说|歌曲)?{_SUBJECT}的?"
        ),
    )
    for rel, verbs in _RELATION_VERBS.items()
)
_ANY_QUESTION = re.compile(rf"(?P<x>.+?)(?:是|在|有|叫)?(?:谁|什么|{_WHERE}|{_WHEN}|多少|几).*")
_RELATION_STEP = re.compile(rf"(?P<x>.+)的(?P<rel>{RELATION_PATTERN})")


@dataclass(frozen=True, slots=True)
class AskedAttribute:
    """One attribute asked of one subject."""

    subject: str
    attribute: str
    """A relation, "born", "died", "born in", "died in", "out", "country", a size; or ""."""


def parse_attribute_question(question: str) -> AskedAttribute | None:
    """Parse the subject and attribute of a Chinese question; None where no pattern matches."""
    masked, known = _mask_names(question)
    found = _parse_masked_question(masked)
    return AskedAttribute(_unmask_names(found.subject, known), found.attribute) if found else None


def find_subject(question: str) -> str:
    """Return the innermost subject of a Chinese question, or ""."""
    masked, known = _mask_names(question)
    found = _parse_masked_question(masked) or (
        (any_ := _ANY_QUESTION.fullmatch(masked)) and AskedAttribute(any_["x"], "")
    )
    if not found:
        return ""
    subject = found.subject
    while (step := _RELATION_STEP.fullmatch(subject)) is not None:
        subject = step["x"]
    return _unmask_names(subject.split("的")[0], known)


def _parse_masked_question(masked: str) -> AskedAttribute | None:
    for what, shape in _QUESTION_PATTERNS:
        if (found := re.fullmatch(shape, masked)) is not None:
            size = _SIZE_WORDS.get(found.groupdict().get("size") or "", "")
            return AskedAttribute(found["x"], what.format(size=size))
    if (of := _ASKS_RELATION_OF.fullmatch(masked) or _WHO_IS.fullmatch(masked)) is not None:
        return AskedAttribute(of["x"], _relation_name(of["rel"]))
    for rel, does in _WHO_DID:
        if (did := does.fullmatch(masked)) is not None:
            return AskedAttribute(did["x"], rel)
    return None


def _relation_name(word: str) -> str:
    return next(rel for rel, words in RELATION_WORDS.items() if re.fullmatch(words, word))


def _mask_names(question: str) -> tuple[str, list[str]]:
    known: list[str] = []

    def mask(found: re.Match[str]) -> str:
        known.append(found[0])
        return chr(_FIRST_MASK + len(known) - 1)

    return _QUOTED_NAME.sub(
        mask, _TRIMMED_ENDS.sub("", _TRIMMED_ENDS.sub("", question.strip()))
    ), known


def _unmask_names(text: str, known: Sequence[str]) -> str:
    return re.sub("[\ue000-\ue0ff]", lambda found: _unmask_char(found[0], known), text)


def _unmask_char(mask: str, known: Sequence[str]) -> str:
    at = ord(mask) - _FIRST_MASK
    return known[at] if at < len(known) else mask  # the text itself may hold such a character


_CONJUNCTION = "(?:和|与|跟|还是|、|以及)"
_PAIR = rf"(?P<a>.+?){_CONJUNCTION}(?P<b>.+?)"
_AMONG = "(?:这?两[人者个部位座本家]|二者|之间|当中|中|里)?[，,]?"
_WHICH = "(?:谁|哪一?[个部位家座本条首所][^的更先后早晚最较]{0,4}?)"
_COMPARISON = re.compile(
    rf"{_PAIR}{_AMONG}{_WHICH}(?:的(?P<rel>{RELATION_PATTERN}))?(?P<how>更早|更晚|最早|最晚|较早|较晚|先|后)"
    rf"(?P<verb>出生|去世|逝世|{_RELEASE_VERBS})的?"
)
_AGE_OR_SIZE = re.compile(
    rf"{_PAIR}{_AMONG}{_WHICH}(?:的(?P<rel>{RELATION_PATTERN}))?(?:的?(?:年龄|年纪|岁数))?(?:更|比较|较|最)?"
    rf"(?P<how>年长|老|大|年轻|小|长寿|活得(?:更|最)?[久长]|寿命(?:更|最)?长|高|长|重|深)"
)
_SAME_QUESTION = re.compile(
    rf"{_PAIR}(?:的(?P<rel>{RELATION_PATTERN}))?(?P<born>的?出生地|出生)?(?:是否|是不是)?都?(?:来自|属于|位于|是|在|有|的)*"
    rf"(?:同一个?|相同的?)(?P<what>国家|国籍|国|城市|地方)?的?人?吗?"
)
_MAX_QUESTION_CHARS = 120  # characters; the patterns do not cover longer questions
_YOUNGER = ("年轻", "小")


def plan_chinese(question: str) -> Plan:
    """Plan a Chinese question; keep it whole when no pattern matches."""
    masked, known = _mask_names(question)
    plan = (
        _plan_comparison(masked) or _plan_chain(masked)
        if len(masked) <= _MAX_QUESTION_CHARS
        else None
    )
    if plan is None:
        return Plan((question,))
    join = plan.join
    if join is not None:
        options = tuple(_unmask_names(option, known) for option in join.options)
        join = Join(join.how, join.question_numbers, options, join.what)
    return Plan(tuple(_unmask_names(text, known) for text in plan.questions), join)


def _plan_comparison(masked: str) -> Plan | None:
    if (found := _COMPARISON.fullmatch(masked)) is not None:
        how: JoinKind = "later" if found["how"] in ("更晚", "后", "较晚", "最晚") else "earlier"
        return _plan_for_pair(found, how, [f"{{x}}何时{found['verb']}？"])
    if (found := _AGE_OR_SIZE.fullmatch(masked)) is not None:
        return _plan_age_or_size(found)
    if (found := _SAME_QUESTION.fullmatch(masked)) is not None:
        here = found["born"] or found["what"] in ("城市", "地方")
        return _plan_for_pair(found, "same", ["{x}出生在哪里？" if here else "{x}的国籍是什么？"])
    return None


def _plan_age_or_size(found: re.Match[str]) -> Plan:
    word = found["how"]
    if word[0] in "活寿" or word == "长寿":
        return _plan_for_pair(found, "longer life", ["{x}何时出生？", "{x}何时去世？"])
    if word in ("高", "长", "重", "深"):
        return _plan_for_pair(found, "larger", [f"{{x}}有多{word}？"])
    person = "谁" in found[0][found.end("b") :] or found["rel"] or "年" in found[0]
    if word in ("大", "小") and not person:
        return _plan_for_pair(found, "larger" if word == "大" else "smaller", ["{x}有多大？"])
    return _plan_for_pair(found, "later" if word in _YOUNGER else "earlier", ["{x}何时出生？"])


def _plan_for_pair(found: re.Match[str], how: JoinKind, templates: Sequence[str]) -> Plan:
    """Ask the templates of each of the two options, or of their relatives or makers."""
    options = (found["a"], found["b"])
    rel = found["rel"]
    first = [f"{option}的{rel}是谁？" for option in options] if rel else []
    return plan_for_each(how, options, first, templates)


_CHAIN_QUESTION = re.compile(
    r"(?P<parts>[^，。？?]+的[^，。？?]+?)(?P<asks>是谁|是什么|是哪.*|在哪.*|有多.*|何时.*|什么时候.*)"
)


def _plan_chain(masked: str) -> Plan | None:
    """Ask one question per relation of the subject, the innermost first."""
    asked = _parse_masked_question(masked)
    if asked is not None and _RELATION_STEP.fullmatch(asked.subject):
        before, _, behind = masked.partition(asked.subject)
        rels: list[str] = []
        subject = asked.subject
        while (step := _RELATION_STEP.fullmatch(subject)) is not None:
            subject, rels = step["x"], [step["rel"], *rels]
        questions = _relation_questions(subject, rels)
        return Plan((*questions, f"{before}#{len(rels)}{behind}？"))
    found = _CHAIN_QUESTION.fullmatch(masked)
    parts = found["parts"].split("的") if found else []
    if found is None or len(parts) < 3:
        return None
    questions = _relation_questions(parts[0], parts[1:-1])
    return Plan((*questions, f"#{len(questions)}的{parts[-1]}{found['asks']}？"))


def _relation_questions(subject: str, rels: Sequence[str]) -> list[str]:
    questions = []
    for number, rel in enumerate(rels, start=1):
        questions.append(f"{subject}的{rel}是谁或什么？")
        subject = f"#{number}"
    return questions


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
