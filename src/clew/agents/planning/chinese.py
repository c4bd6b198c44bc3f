"""Rules for Chinese questions: the asked attribute, chains of 的, and comparisons of two things.

A name in 《》 or quotes is masked, so that a 的 inside it splits nothing.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from clew.agents.planning.plan import How, Join, Plan, asked_of_each

HAN = "\u3400-\u4dbf\u4e00-\u9fff"
_IS_CHINESE = re.compile(f"[{HAN}]")
_NOT_CHINESE = re.compile("[\u3041-\u30ff\uac00-\ud7ff]")  # kana and Hangul
_QUOTED = re.compile("《[^《》]+》|“[^“”]+”|「[^「」]+」|『[^『』]+』")
_MASK = 0xE000
_END = re.compile(r"[？?。！!\s]+$|^(?:请问|那么)[，,]?")

# Relations, by the words that name them.
RELATIONS = {
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
PERSON = "|".join(RELATIONS.values())
_WHERE = "(?:哪里|哪儿|何处|何地|什么地方|哪个?(?:国家|城市|省份?|市|县|地方|地区|城镇?))"
_WHEN = "(?:何时|何年|什么时候|什么时间|哪一?年|哪一?天|几时|几几年)"
_DIE = "(?:去世|逝世|病逝|死亡|过世|身亡|死)"
_OUT = "上映|发行|出版|成立|建成|创立|创办|建立|开业|发布|首播|落成|开通|竣工|首演|开放"
_SUBJECT = "(?P<x>.+?)"
_SIZES = {"高": "height", "长": "length", "大": "area", "重": "weight", "深": "depth"}
_ASKS: Sequence[tuple[str, str]] = (
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
    ("out", rf"{_SUBJECT}是?在?{_WHEN}(?:{_OUT})的?"),
    ("out", rf"{_SUBJECT}的(?:{_OUT})(?:日期|时间|年份)是?(?:{_WHEN}|什么)?"),
    ("country", rf"{_SUBJECT}的国籍是(?:什么|哪里|哪国|哪个国家)"),
    ("country", rf"{_SUBJECT}(?:是|来自|位于|在|属于)(?:哪国|哪个国家)的?人?"),
    ("{size}", rf"{_SUBJECT}有?多(?P<size>[高长大重深])"),
    ("population", rf"{_SUBJECT}的人口(?:是|有)?多少"),
)
_OF = re.compile(rf"{_SUBJECT}的(?P<rel>{PERSON})(?:是|叫|为)(?:谁或什么|谁|什么人?|什么名字|哪.*)")
_WHO_IS = re.compile(rf"谁是{_SUBJECT}的(?P<rel>{PERSON})")
_DID = {
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
    for rel, verbs in _DID.items()
)
_ANY = re.compile(rf"(?P<x>.+?)(?:是|在|有|叫)?(?:谁|什么|{_WHERE}|{_WHEN}|多少|几).*")
_STEP = re.compile(rf"(?P<x>.+)的(?P<rel>{PERSON})")


@dataclass(frozen=True, slots=True)
class Asked:
    """One attribute asked of one subject."""

    subject: str
    what: str
    """A relation, "born", "died", "born in", "died in", "out", "country", a size; or ""."""


def is_chinese(question: str) -> bool:
    """Whether a question is in Chinese; Japanese shares its characters."""
    return bool(_IS_CHINESE.search(question)) and not _NOT_CHINESE.search(question)


def asked_of(question: str) -> Asked | None:
    """Parse the subject and attribute of a Chinese question; None where no pattern matches."""
    masked, known = _masked(question)
    found = _asked(masked)
    return Asked(_unmasked(found.subject, known), found.what) if found else None


def subject_of(question: str) -> str:
    """Return the innermost subject of a Chinese question, or ""."""
    masked, known = _masked(question)
    found = _asked(masked) or ((any_ := _ANY.fullmatch(masked)) and Asked(any_["x"], ""))
    if not found:
        return ""
    subject = found.subject
    while (step := _STEP.fullmatch(subject)) is not None:
        subject = step["x"]
    return _unmasked(subject.split("的")[0], known)


def _asked(masked: str) -> Asked | None:
    for what, shape in _ASKS:
        if (found := re.fullmatch(shape, masked)) is not None:
            size = _SIZES.get(found.groupdict().get("size") or "", "")
            return Asked(found["x"], what.format(size=size))
    if (of := _OF.fullmatch(masked) or _WHO_IS.fullmatch(masked)) is not None:
        return Asked(of["x"], _relation(of["rel"]))
    for rel, does in _WHO_DID:
        if (did := does.fullmatch(masked)) is not None:
            return Asked(did["x"], rel)
    return None


def _relation(word: str) -> str:
    return next(rel for rel, words in RELATIONS.items() if re.fullmatch(words, word))


def _masked(question: str) -> tuple[str, list[str]]:
    known: list[str] = []

    def mask(found: re.Match[str]) -> str:
        known.append(found[0])
        return chr(_MASK + len(known) - 1)

    return _QUOTED.sub(mask, _END.sub("", _END.sub("", question.strip()))), known


def _unmasked(text: str, known: Sequence[str]) -> str:
    return re.sub("[\ue000-\ue0ff]", lambda found: _held(found[0], known), text)


def _held(mask: str, known: Sequence[str]) -> str:
    at = ord(mask) - _MASK
    return known[at] if at < len(known) else mask  # the text itself may hold such a character


# -- plans

_AND = "(?:和|与|跟|还是|、|以及)"
_PAIR = rf"(?P<a>.+?){_AND}(?P<b>.+?)"
_AMONG = "(?:这?两[人者个部位座本家]|二者|之间|当中|中|里)?[，,]?"
_WHICH = "(?:谁|哪一?[个部位家座本条首所][^的更先后早晚最较]{0,4}?)"
_COMPARED = re.compile(
    rf"{_PAIR}{_AMONG}{_WHICH}(?:的(?P<rel>{PERSON}))?(?P<how>更早|更晚|最早|最晚|较早|较晚|先|后)"
    rf"(?P<verb>出生|去世|逝世|{_OUT})的?"
)
_AGE = re.compile(
    rf"{_PAIR}{_AMONG}{_WHICH}(?:的(?P<rel>{PERSON}))?(?:的?(?:年龄|年纪|岁数))?(?:更|比较|较|最)?"
    rf"(?P<how>年长|老|大|年轻|小|长寿|活得(?:更|最)?[久长]|寿命(?:更|最)?长|高|长|重|深)"
)
_SAME = re.compile(
    rf"{_PAIR}(?:的(?P<rel>{PERSON}))?(?P<born>的?出生地|出生)?(?:是否|是不是)?都?(?:来自|属于|位于|是|在|有|的)*"
    rf"(?:同一个?|相同的?)(?P<what>国家|国籍|国|城市|地方)?的?人?吗?"
)
_LONG = 120  # characters; the patterns do not cover longer questions
_YOUNGER = ("年轻", "小")


def chinese_plan(question: str) -> Plan:
    """Plan a Chinese question; keep it whole when no pattern matches."""
    masked, known = _masked(question)
    plan = _comparison(masked) or _chain(masked) if len(masked) <= _LONG else None
    if plan is None:
        return Plan((question,))
    join = plan.join
    if join is not None:
        options = tuple(_unmasked(option, known) for option in join.options)
        join = Join(join.how, join.places, options, join.what)
    return Plan(tuple(_unmasked(text, known) for text in plan.questions), join)


def _comparison(masked: str) -> Plan | None:
    if (found := _COMPARED.fullmatch(masked)) is not None:
        how: How = "later" if found["how"] in ("更晚", "后", "较晚", "最晚") else "earlier"
        return _each(found, how, [f"{{x}}何时{found['verb']}？"])
    if (found := _AGE.fullmatch(masked)) is not None:
        return _of_age_or_size(found)
    if (found := _SAME.fullmatch(masked)) is not None:
        here = found["born"] or found["what"] in ("城市", "地方")
        return _each(found, "same", ["{x}出生在哪里？" if here else "{x}的国籍是什么？"])
    return None


def _of_age_or_size(found: re.Match[str]) -> Plan:
    word = found["how"]
    if word[0] in "活寿" or word == "长寿":
        return _each(found, "longer life", ["{x}何时出生？", "{x}何时去世？"])
    if word in ("高", "长", "重", "深"):
        return _each(found, "larger", [f"{{x}}有多{word}？"])
    person = "谁" in found[0][found.end("b") :] or found["rel"] or "年" in found[0]
    if word in ("大", "小") and not person:
        return _each(found, "larger" if word == "大" else "smaller", ["{x}有多大？"])
    return _each(found, "later" if word in _YOUNGER else "earlier", ["{x}何时出生？"])


def _each(found: re.Match[str], how: How, templates: Sequence[str]) -> Plan:
    """Ask the templates of each of the two options, or of their relatives or makers."""
    options = (found["a"], found["b"])
    rel = found["rel"]
    first = [f"{option}的{rel}是谁？" for option in options] if rel else []
    return asked_of_each(how, options, first, templates)


_LAST = re.compile(
    r"(?P<parts>[^，。？?]+的[^，。？?]+?)(?P<asks>是谁|是什么|是哪.*|在哪.*|有多.*|何时.*|什么时候.*)"
)


def _chain(masked: str) -> Plan | None:
    """Ask one question per relation of the subject, the innermost first."""
    asked = _asked(masked)
    if asked is not None and _STEP.fullmatch(asked.subject):
        before, _, behind = masked.partition(asked.subject)
        rels: list[str] = []
        subject = asked.subject
        while (step := _STEP.fullmatch(subject)) is not None:
            subject, rels = step["x"], [step["rel"], *rels]
        questions = _of_each(subject, rels)
        return Plan((*questions, f"{before}#{len(rels)}{behind}？"))
    found = _LAST.fullmatch(masked)
    parts = found["parts"].split("的") if found else []
    if found is None or len(parts) < 3:
        return None
    questions = _of_each(parts[0], parts[1:-1])
    return Plan((*questions, f"#{len(questions)}的{parts[-1]}{found['asks']}？"))


def _of_each(subject: str, rels: Sequence[str]) -> list[str]:
    questions = []
    for number, rel in enumerate(rels, start=1):
        questions.append(f"{subject}的{rel}是谁或什么？")
        subject = f"#{number}"
    return questions
