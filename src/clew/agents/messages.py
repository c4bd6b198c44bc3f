"""The few fixed sentences in answers, in the language of the question where it is Chinese."""

import re

from clew.text.language import prompt_language

NOT_FOUND_MARK = "(not found in the documents)"
"""Stands behind a sentence whose source code could not locate."""
NO_DOCUMENTS = "there are no documents to answer from"
NOT_SAID = "the documents do not say"
UNSURE = "no answer is certain enough"
PERHAPS = "Perhaps:"
"""Stands before an answer that is named without much certainty."""
CLOSEST = "No passage clearly answers this. The closest passages:"
_CHINESE = {
    NOT_FOUND_MARK: "（文档中未找到）",
    NO_DOCUMENTS: "没有可供作答的文档",
    NOT_SAID: "文档没有说明",
    UNSURE: "没有足够确定的答案",
    PERHAPS: "可能是：",
    CLOSEST: "没有段落明确回答这个问题。最接近的段落：",
    "Refused:": "无法回答：",
}
OWN_MARKS = (NOT_FOUND_MARK, _CHINESE[NOT_FOUND_MARK])
"""The mark of what is not found, in every language."""
_OWN_WORDS = re.compile(rf"\s*(?:{'|'.join(map(re.escape, OWN_MARKS))})")
# A citation mark; a number joined to a word is a name.
_MARK = re.compile(r"(?<=\S)\s*\[\d+(?:\s*[,;–-]\s*\d+)*\](?![\w-])")


def localise(question: str, message: str) -> str:
    """Return one of the fixed messages in the language of the question; others as they are."""
    return _CHINESE.get(message, message) if prompt_language(question) == "zh" else message


def format_refusal(question: str, missing: str) -> str:
    """Say that a question is refused, and what was missing."""
    reason = localise(question, missing.strip().rstrip(".。"))
    chinese = prompt_language(question) == "zh"
    stop = "" if reason.endswith(("?", "!", "…", "？", "！")) else "。" if chinese else "."
    return f"{localise(question, 'Refused:')}{'' if chinese else ' '}{reason}{stop}"


def strip_marks(text: str) -> str:
    """Remove what Clew writes into an answer: citation marks and the mark of what is not found."""
    return _MARK.sub("", _OWN_WORDS.sub("", text)).strip()
