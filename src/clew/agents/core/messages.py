"""Fixed messages in answers, translated into the language of the question.

All messages are in English in the code; for a Chinese question a message listed here is
translated. Text from a model or a document stays as it is.
"""

import re
from functools import cache
from string import Template

from clew.context import Context
from clew.text.language import prompt_language

CANDIDATE_LABEL = "Best-supported candidate:"
"""Label of the candidate in an answer without a model; it claims nothing."""
UNSUPPORTED_MARK = "(not supported by the evidence)"
YES, NO = "Yes", "No"
YES_NO = ("yes", "no", "是", "否", "ja", "nein")
OWN_KNOWLEDGE_MARK = "(from the model's own knowledge, not from the documents)"
CLOSEST_HEAD = "The closest passages are:"
"""The line before quotes that do not answer what was asked."""
NO_MODEL = "no language model is configured"
NOT_UNDERSTOOD = (
    "the question is not understood; it can be asked in English, Chinese, German, French, "
    "Spanish, Russian, Arabic or Japanese"
)
"""Why a question that says nothing, or in a language without a table, is not answered."""
_MOST_REPEATED = 300  # characters of a question that an answer repeats
# By language; both sides of a line have the same `$name` variables.
TRANSLATIONS: dict[str, dict[str, str]] = {
    "zh": {
        UNSUPPORTED_MARK: "（证据未能支持）",
        OWN_KNOWLEDGE_MARK: "（出自模型自身的知识，并非来自文档）",
        CLOSEST_HEAD: "最接近的段落是：",
        "Refused: $missing.": "无法回答：$missing。",
        "Refused: $missing": "无法回答：$missing",
        "the documents do not mention $names": "文档没有提到$names",
        "the passages found do not mention $names": "找到的段落没有提到$names",
        "the documents do not mention $names (relevance $score is below $mark)": (
            "文档没有提到$names（相关度 $score 低于 $mark）"
        ),
        "no passage is about this (relevance $score is below $mark)": (
            "没有段落与此相关（相关度 $score 低于 $mark）"
        ),
        "“$short” has a confidence of $value, below $least": (
            "“$short”的置信度为 $value，低于 $least"
        ),
        "the nearest passage has a confidence of $value, below $least": (
            "最接近的段落的置信度为 $value，低于 $least"
        ),
        NOT_UNDERSTOOD: (
            "无法理解这个问题；可以用英语、汉语、德语、法语、西班牙语、俄语、阿拉伯语或日语提问"
        ),
        "no passage says whether this is so": "没有段落说明是否如此",
        "no passage says what is compared": "没有段落说明所比较的内容",
        "no passage answers: $question": "没有段落回答：$question",
        "no relevant passage was found": "没有找到与问题相关的段落",
        "the question does not say whom or what “$pronoun” means": (
            "问题没有说明“$pronoun”指的是谁或什么"
        ),
        "no passage was found": "没有找到任何段落",
        "no passage supports the computed answer: $short": "没有段落支持计算得出的答案：$short",
        "the passages do not contain the answer": "这些段落中没有答案",
        "the reports do not contain the answer": "这些报告中没有答案",
        "no sentence of the answer is supported by the documents": "回答中没有一句能得到文档的支持",
        "no report is relevant to the question": "没有报告与问题相关",
        "no sentence of the answer is supported by the passages": (
            "回答中没有一句能得到段落的支持"
        ),
        "the model gave no usable answer": "模型没有给出可用的回答",
        "the model does not know the answer": "模型不知道答案",
        NO_MODEL: "没有配置语言模型",
        "no model is set for 'answer'": "没有为 'answer' 配置模型",
        "this recipe reads no documents": "该方案不读取任何文档",
        "there are no documents to answer from": "没有可供作答的文档",
        "this is small talk, not a question about the documents": "这是闲聊，不是关于文档的问题",
        "every retrieval failed: $reason": "所有检索都失败了：$reason",
        "nothing was found before the run ended: $reason": "运行结束之前没有找到任何内容：$reason",
    }
}


_UNKNOWN_ANSWER = re.compile(
    r"(?:(?:it is |this is )?(?:unknown|not (?:known|mentioned|specified|provided|stated|"
    r"given|available|found|said)|n/?a|none|null|no answer|no information|cannot be determined)\b"
    # Before a capital it is a title: "Unknown Pleasures", "Null Island".
    r"(?!\s+(?-i:[A-ZÀ-Þ])).*"
    r"|未知|不知道|无|没有提到.*|未提及.*)?[.。]?",
    re.IGNORECASE | re.DOTALL,
)


def localise(question: str, message: str) -> str:
    """Translate a fixed message into the language of the question; English where none is listed."""
    language = prompt_language(question)
    for pattern, template in _translation_patterns(language):
        found = pattern.fullmatch(message)
        if found is not None:
            return Template(template).substitute(found.groupdict())
    return message


def explain_no_model(ctx: Context) -> str:
    """Say that no model can write the answer: none is configured, or only one for planning."""
    return "no model is set for 'answer'" if ctx.has("plan") else NO_MODEL


def explain_not_written(ctx: Context, instead: str) -> str:
    """Say what an answer is that no model wrote, and why where none could."""
    return instead if ctx.has("answer") else f"{explain_no_model(ctx)}: {instead}"


def all_translations(english: str) -> list[str]:
    """Return a message in every language."""
    return [english, *(known[english] for known in TRANSLATIONS.values() if english in known)]


def shorten_question(question: str) -> str:
    """Return a question as it is repeated in an answer: of a very long one the beginning."""
    return question if len(question) <= _MOST_REPEATED else f"{question[:_MOST_REPEATED]}…"


def strip_marks(text: str) -> str:
    """Remove what we write into an answer: citation marks, warnings and labels."""
    return _CITATION.sub("", _OWN_WORDS.sub("", text)).strip()


def is_unknown(answer: str) -> bool:
    """Whether an answer only says that there is none."""
    return _UNKNOWN_ANSWER.fullmatch(answer.strip()) is not None


# A citation mark as models and packages write it; a number joined to a word is a name.
_CITATION = re.compile(r"(?<=\S)\s*\[\d+(?:\s*[,;–-]\s*\d+)*\](?![\w-])")
OWN_MARKS = [*all_translations(UNSUPPORTED_MARK), *all_translations(OWN_KNOWLEDGE_MARK)]
_CLOSEST = "|".join(map(re.escape, all_translations(CLOSEST_HEAD)))
_OWN_WORDS = re.compile(
    rf"\s*(?:{'|'.join(map(re.escape, OWN_MARKS))})"
    rf"|^{re.escape(CANDIDATE_LABEL)}[ \t]*|\A[^\n]*\n?(?:{_CLOSEST})\n",
    re.MULTILINE,
)


@cache
def _translation_patterns(language: str) -> list[tuple[re.Pattern[str], str]]:
    """Return the patterns, longest first: a short message may be the beginning of another."""
    known = sorted(TRANSLATIONS.get(language, {}).items(), key=lambda pair: -len(pair[0]))
    return [(_template_pattern(english), other) for english, other in known]


def _template_pattern(english: str) -> re.Pattern[str]:
    pieces = re.split(r"\$(\w+)", english)
    parts = [f"(?P<{piece}>.+)" if at % 2 else re.escape(piece) for at, piece in enumerate(pieces)]
    return re.compile("".join(parts), re.DOTALL)
