"""Broad entity classes, mapped from the free-text types that extractors return."""

from functools import lru_cache

from clew.text.unicode import hash64, normalize_name, to_signed

ENTITY_CLASSES = (
    "",
    "person",
    "place",
    "organisation",
    "work",
    "event",
    "substance",
    "living thing",
)
_CLASS_WORDS = {
    "person": "person people human man woman character actor actress politician writer author poet "
    "singer musician artist painter scientist athlete player director king queen ruler per "
    "人物 人 角色",
    "place": "place location city country town village river mountain lake island region state "
    "province county district planet star gpe loc geography building facility fac airport station "
    "地点 城市 国家 地方 行星",
    "organisation": "organisation organization company corporation business institution university "
    "school club team band party agency government army ministry church norp org 组织 机构 公司",
    "work": "work film movie book novel song album play painting series show magazine newspaper "
    "game poem opera work_of_art product software 作品 电影 书籍 歌曲",
    "event": "event war battle election festival tournament match accident disaster ceremony 事件",
    "substance": "substance chemical element compound metal drug material mineral gas 物质 元素",
    "living thing": "animal plant species organism bird fish disease virus bacterium gene protein "
    "动物 植物 物种 疾病",
}
_CLASS_BY_WORD = {
    word: ENTITY_CLASSES.index(name)
    for name, words in _CLASS_WORDS.items()
    for word in words.split()
}


@lru_cache(maxsize=4096)
def classify_type(kind: str) -> int:
    """Index of a type's broad class, decided by its last known word; 0 if none is known."""
    for word in reversed(normalize_name(kind).replace("_", " ").replace("/", " ").split()):
        if word in _CLASS_BY_WORD:
            return _CLASS_BY_WORD[word]
        if word.endswith("s") and word[:-1] in _CLASS_BY_WORD:
            return _CLASS_BY_WORD[word[:-1]]
    return 0


# Relations with which a document states that two names mean the same entity.
_ALIAS_RELATIONS = (
    "also known as|known as|alias|alias of|same as|is the same as|abbreviation|"
    "abbreviation of|abbreviated as|acronym|acronym for|acronym of|stands for|short for|"
    "formerly known as|previously known as|better known as|also called|又名|别名|简称|也称"
).split("|")


def alias_relation_codes() -> frozenset[int]:
    """Codes of the alias relations, as stored in the relation column."""
    return frozenset(to_signed(hash64(normalize_name(text))) for text in _ALIAS_RELATIONS)
