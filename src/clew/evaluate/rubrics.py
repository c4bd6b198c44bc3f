"""Criteria of the judged scores: what each asks, in the languages of the prompts."""

from clew.text.language import prompt_language

# GraphSearch, appendix: three criteria of the answer and three of its evidence.
A_SCORE = ("correctness", "coherence", "comprehensiveness")
E_SCORE = ("relevance", "knowledgeability", "factuality")
# Graph-R1, Figure 12: seven dimensions of a generated answer.
G_E = (
    "comprehensiveness",
    "knowledgeability",
    "correctness",
    "relevance",
    "diversity",
    "coherence",
    "factuality",
)
CRITERIA: dict[str, tuple[str, ...]] = {"a-score": A_SCORE, "e-score": E_SCORE, "g-e": G_E}
"""Judged metric → its criteria; each is asked for by a call of its own."""
PAIRWISE = ("comprehensiveness", "diversity", "empowerment", "overall")
"""The four criteria of LightRAG's comparison on UltraDomain."""

_RUBRICS: dict[str, dict[str, str]] = {
    "en": {
        "correctness": "what it concludes agrees with the reference, and the way there is free of "
        "mistakes. An answer that declines to answer gets 0.",
        "coherence": "its statements follow from one another without gaps and contradictions.",
        "comprehensiveness": "every part of the question is dealt with. An answer that declines "
        "to answer gets 0.",
        "knowledgeability": "it shows knowledge of the subject, not commonplaces. An answer that "
        "declines to answer gets 0.",
        "relevance": "it stays with the question and helps whoever asked it.",
        "diversity": "it looks at the matter from more than one side where there is more than one.",
        "factuality": "what it states as fact is true and can be checked.",
        "evidence.relevance": "it speaks of what the evidence and the question are about.",
        "evidence.knowledgeability": "it makes use of what the evidence contains.",
        "evidence.factuality": "the evidence bears out what it claims.",
    },
    "zh": {
        "correctness": "结论与参考答案一致，推理过程没有错误。拒绝回答者为 0。",
        "coherence": "各句前后相承，没有跳跃和矛盾。",
        "comprehensiveness": "问题所问的每一部分都答到了。拒绝回答者为 0。",
        "knowledgeability": "体现出对该主题的了解，而非泛泛之谈。拒绝回答者为 0。",
        "relevance": "紧扣问题，对提问者有用。",
        "diversity": "事情有多个侧面时，不只看一面。",
        "factuality": "作为事实陈述的内容真实且可以查证。",
        "evidence.relevance": "所谈正是证据与问题所涉及的内容。",
        "evidence.knowledgeability": "用上了证据中的内容。",
        "evidence.factuality": "证据支持它所作的断言。",
    },
}


def get_rubric(metric: str, criterion: str, question: str) -> str:
    """Return what a criterion asks, in the language of the question."""
    key = f"evidence.{criterion}" if metric == "e-score" else criterion
    return _RUBRICS[prompt_language(question)][key]
