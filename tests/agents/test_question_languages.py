"""Questions in German, French, Spanish, Russian, Arabic and Japanese: words, kinds, two hops."""

from pathlib import Path

import pytest

from clew.agents.answering.by_words import Sentence, name_answer
from clew.agents.rules.table import table_for
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.testing.hashed_kb import open_hashed
from clew.text.word_forms import asked_terms, compare_words, mentions_form, question_language
from clew.types import Passage

PAGES = {
    "Schleuse Tornau": "Die Schleuse Tornau wurde 1911 von dem Baumeister Veit Hollmann entworfen. "
    "Die Kammer ist 82 Meter lang.",
    "Veit Hollmann": "Veit Hollmann war ein Baumeister. Er wurde in Zwickau geboren.",
    "Moulin de Brévan": "Le moulin de Brévan a été construit en 1742 par le meunier Yves Corlay. "
    "La roue est remplacée tous les dix ans.",
    "Yves Corlay": "Yves Corlay était un meunier breton. Il est né à Vannes.",
    "Torre de Almazor": "La torre de Almazor fue diseñada por la arquitecta Inés Robledo. "
    "Se inauguró el 3 de mayo de 1931.",
    "Inés Robledo": "Inés Robledo fue una arquitecta española. Nació en Segovia.",
    "Старый мост": "Старый мост построен в 1903 году инженером Петром Лобовым. Длина моста 410 "
    "метров.",
    "Пётр Лобов": "Пётр Лобов — русский инженер. Он родился в Казани.",
    "برج الواحة": "صمم المهندس نادر حمدان برج الواحة عام 1968. يبلغ ارتفاع البرج 95 مترا.",
    "نادر حمدان": "نادر حمدان مهندس سوري. ولد في مدينة حلب.",
    "白浜灯台": "白浜灯台は1931年に森田春男によって建設された。灯塔の高さは27メートルである。",
    "森田春男": "森田春男は日本の技師である。彼は長崎で生まれた。",
}
NAMED = [
    ("Wann wurde die Schleuse Tornau entworfen?", "1911"),
    ("Wo wurde der Baumeister der Schleuse Tornau geboren?", "Zwickau"),
    ("Qui a construit le moulin de Brévan ?", "Yves Corlay"),
    ("Où est né le meunier du moulin de Brévan ?", "Vannes"),
    ("¿Cuándo se inauguró la torre de Almazor?", "3 de mayo de 1931"),
    ("¿Dónde nació la arquitecta de la torre de Almazor?", "Segovia"),
    ("Какова длина Старого моста?", "410 метров"),
    ("Где родился инженер Старого моста?", "Казани"),
    ("كم يبلغ ارتفاع برج الواحة؟", "95 مترا"),
    ("白浜灯台の高さは？", "27メートル"),
]
QUOTED = [
    ("من صمم برج الواحة؟", "نادر حمدان"),
    ("أين ولد مهندس برج الواحة؟", "حلب"),
    ("白浜灯台を建設した人はどこで生まれましたか？", "長崎"),
    ("Qui remplace la roue du moulin ?", "tous les dix ans"),
]


@pytest.fixture
async def base(tmp_path: Path) -> KnowledgeBase:
    pages = [tmp_path / f"{number}.md" for number in range(len(PAGES))]
    for page, (title, text) in zip(pages, PAGES.items(), strict=True):
        page.write_text(f"# {title}\n\n{text}\n", encoding="utf-8")
    base = await open_hashed(Settings(kb=tmp_path / "kb"), True)
    await base.add(pages)
    return base


async def test_the_answer_is_of_the_asked_kind_or_a_whole_sentence(base: KnowledgeBase) -> None:
    for question, named in NAMED:
        assert (await base.ask(question)).candidate == named, question
    for question, quoted in QUOTED:
        answer = await base.ask(question)
        assert answer.candidate == "", question
        assert any(quoted in cited.quote for cited in answer.citations), question


async def test_a_question_in_another_language_is_understood(base: KnowledgeBase) -> None:
    for question, _ in NAMED:
        assert (await base.ask(question, mode="reject")).verdict == "answered", question
    refused = await base.ask("Wann wurde Veit Hollmann verhaftet?", mode="reject")
    assert refused.verdict == "refused"
    unknown = await base.ask("Wer ist der Bürgermeister von Oberhausen?", mode="reject")
    assert unknown.verdict == "refused"


async def test_words_inside_other_words_do_not_speak_for_a_quote(tmp_path: Path) -> None:
    pages = {
        "hof": "# Hof Erlach\n\nBesitzerin ist Frau Ottilie Marquardt, Pächter sind Jan und "
        "Ida Wolff. Die Pacht beträgt 800 Euro. Die Scheune hat 120 m² Fläche.\n",
        "pumpe": "# Pumpe\n\nDie Pumpe wird immer von Hand gestartet und am Ort geprüft.\n",
        "ポンプ": "# 取扱説明\n\nフィルターは月に一度交換します。ホースは倉庫にあります。\n",
    }
    for name, text in pages.items():
        (tmp_path / f"{name}.md").write_text(text, encoding="utf-8")
    base = await open_hashed(Settings(kb=tmp_path / "kb"), True)
    await base.add([tmp_path / f"{name}.md" for name in pages])
    for unsaid in (
        "Wie heißt der Hund von Frau Marquardt?",
        "Wie viele Zimmer hat die Scheune?",
        "Wem gehört die Pumpe?",
        "Wie alt ist Ida Wolff?",
    ):
        assert (await base.ask(unsaid)).confidence < 0.5, unsaid
    for said in (
        "Wie hoch ist die Pacht?",
        "Wer ist die Besitzerin?",
        "フィルターはいつ交換しますか？",
    ):
        assert (await base.ask(said)).confidence > 0.5, said


@pytest.mark.parametrize("question", ["¿Cuántos días fermenta?", "¿Cuánto tiempo fermenta?"])
def test_a_number_in_words_beside_one_in_digits(question: str) -> None:
    text = "El mosto fermenta durante dieciocho días a 24 grados."
    sentence = Sentence(Passage("c", "d", "Mosto", 1.0, text, 0, len(text)), 0, len(text))
    assert name_answer(sentence, "number", question) == "dieciocho días"
    assert name_answer(sentence, "number", "¿Cuántos grados tiene el mosto?") == "24 grados"


async def test_a_quote_without_a_place_says_not_where(tmp_path: Path) -> None:
    pages = {
        "ja": "# 青葉図書館\n\n青葉図書館は午前九時から午後八時まで開いています。\n",
        "zh": "# 海蓝手册\n\n缓存大小由参数 cache_pages 设定，默认值为 512 页。\n",
        "other": "# 青石桥\n\n青石桥位于江宁县，由工程师周文海设计。\n",
    }
    for name, text in pages.items():
        (tmp_path / f"{name}.md").write_text(text, encoding="utf-8")
    base = await open_hashed(Settings(kb=tmp_path / "kb"), True)
    await base.add([tmp_path / f"{name}.md" for name in pages])
    assert (await base.ask("青葉図書館はどこにありますか？")).confidence < 0.5
    asked = await base.ask("cache_pages 的默认值是多少？")
    assert [cited.doc.rpartition("/")[2] for cited in asked.citations] == ["zh.md"]
    assert asked.confidence > 0.3


@pytest.mark.parametrize(
    ("question", "language", "kind"),
    [
        ("Was macht max_pegel?", "de", ""),
        ("Wie viele Boote hat der Hafen?", "de", "number"),
        ("Où est la gare ?", "fr", "place"),
        ("donde nacio la ingeniera", "es", "place"),
        ("Кто построил мост?", "ru", "person"),
        ("متى افتتح الجسر؟", "ar", "date"),
        ("橋はいつ建てられましたか", "ja", "date"),
        ("Was the bridge built in 1903?", "en", ""),
        ("Who directed La Dolce Vita?", "en", "person"),
        ("Los Angeles population", "en", ""),
        ("Where was Charles de Gaulle born?", "en", "place"),
        ("大桥是谁设计的？", "zh", "person"),
    ],
)
def test_the_language_and_the_kind_of_a_question(question: str, language: str, kind: str) -> None:
    assert question_language(question) == language
    assert table_for(question).find_answer_kind(question) == kind


def test_forms_of_a_word_are_alike_and_other_words_are_not() -> None:
    for one, other in [("северныи", "северного"), ("الجسر", "جسر"), ("disenada", "diseno")]:
        assert compare_words(one, other) > 0.5
    for one, other in [("turm", "tor"), ("1911", "1912"), ("haus", "maus"), ("geboren", "gebaut")]:
        assert compare_words(one, other) == 0.0
    assert mentions_form("Mühlenwehrs Altenrath", "Das Mühlenwehr Altenrath wurde gebaut.")
    assert mentions_form("gründete", "Es wurde 1924 gegründet.")
    assert mentions_form("schickt", "Das Signal wird geschickt.")
    assert not mentions_form("meinen", "Die Gemeinde tagt.")
    assert asked_terms("Où est né l'architecte du phare ?") == ("ne", "architecte", "phare")


@pytest.mark.parametrize(
    ("text", "question", "answer"),
    [
        ("Die Zeit steht im 24-Stunden-Format da.", "Wie viele Minuten vorher geht es zu?", ""),
        ("Es wird 5 Minuten vorher erstellt.", "Wie viele Minuten vorher ist es da?", "5 Minuten"),
        (
            "Le bac porte 220 passagers et 38 voitures.",
            "Combien de voitures a le bac ?",
            "38 voitures",
        ),
        ("Le bac porte 220 passagers.", "Combien de voitures a le bac ?", ""),
        ("Паром берёт 220 пассажиров.", "Сколько машин берёт паром?", ""),
    ],
)
def test_a_number_belongs_to_the_unit_asked_for(text: str, question: str, answer: str) -> None:
    sentence = Sentence(Passage("c", "d", "", 1.0, text, 0, len(text)), 0, len(text))
    assert name_answer(sentence, "number", question) == answer
