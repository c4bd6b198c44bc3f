"""How a question is read once its names are known."""

import pytest

from clew.retrieve.question import locate_names, parse_question, strip_courtesy, wants_breadth
from clew.retrieve.relation_vectors import stem_share
from clew.text.names import relation_to_words


def test_names_are_taken_out_and_their_place_is_kept() -> None:
    question = "which films share actors with the film Grey Coast"
    shape = parse_question(question, locate_names(question, ["Grey Coast"]))
    assert shape.words == ("films", "actors", "film")
    assert shape.rest == "which films share actors with the film"
    assert (shape.name_position, shape.question_word_position, shape.has_shared_word) == (
        7,
        0,
        True,
    )
    assert shape.nouns == ("films",) and shape.answer_kind == ""


@pytest.mark.parametrize(
    ("question", "sought"),
    [
        ("who directed it", "person"),
        ("which person wrote this", "person"),
        ("when was it released", "time"),
        ("where was she born", "place"),
        ("谁导演了它", "person"),
        ("它是什么时候上映的", "time"),
        ("what is its genre", ""),
    ],
)
def test_what_kind_of_thing_is_asked_for(question: str, sought: str) -> None:
    assert parse_question(question, []).answer_kind == sought


def test_a_question_without_telling_words_keeps_what_it_has() -> None:
    assert parse_question("who is it", []).words == ("who", "is", "it")
    assert parse_question("", []).words == ()


def test_overlapping_names_stand_once() -> None:
    question = "did Ann Lee meet Ann Lee Moss"
    assert locate_names(question, ["Ann Lee", "Ann Lee Moss", "Bob"]) == [(1, 3), (4, 7)]


@pytest.mark.parametrize(
    "relation", ["release_year", "releaseYear", "release-year", "release.year", "release year"]
)
def test_relations_in_words(relation: str) -> None:
    assert relation_to_words(relation) == "release year"


def test_a_relation_of_marks_only_stays() -> None:
    assert relation_to_words("___") == "___" and relation_to_words("上映年份") == "上映年份"


def test_stems() -> None:
    assert stem_share("screenwriter", ["written"]) == pytest.approx(4 / 7)
    assert stem_share("directors", ["directed"]) == pytest.approx(6 / 8)
    assert stem_share("river", ["written"]) == 0


@pytest.mark.parametrize(
    ("question", "broad"),
    [
        ("Summarize how the mill came to be.", True),
        ("Could you please describe the harbour?", True),
        ("What are the main causes of the flood?", True),
        ("What were the effects and the consequences of the strike?", True),
        ("Who designed Marrow Bridge?", False),
        ("What caused the flood of 1921?", False),
        ("Which film has the director who was born later?", False),
        ("列出所有的桥", True),
        ("", False),
    ],
)
def test_a_question_for_an_account_wants_breadth(question: str, broad: bool) -> None:
    assert wants_breadth(question) == broad


@pytest.mark.parametrize(
    ("question", "plain"),
    [
        ("Could you please tell me the following: Who is older? Thank you!", "Who is older?"),
        ("Please tell me who designed Marrow Bridge.", "who designed Marrow Bridge."),
        ("Hello, I was wondering if you know where Osmere lies", "where Osmere lies"),
        ("Who can help the question of Osmere?", "Who can help the question of Osmere?"),
        ("who designed Marrow Bridge please", "who designed Marrow Bridge"),
        ("I would like to know when Osmere was built, thanks", "when Osmere was built,"),
        ("Do you know who built it? Many thanks in advance", "who built it?"),
        ("What do we know about Osmere?", "What do we know about Osmere?"),
        ("Whom did he thank?", "Whom did he thank?"),
        ("Tell me Ilse Brandvik's birthplace", "Ilse Brandvik's birthplace"),
        ("Tell Ilse Brandvik to close the bridge", "Tell Ilse Brandvik to close the bridge"),
        ("Please Please Me was recorded where?", "Please Please Me was recorded where?"),
        ("Please Please Me is an album by whom?", "Please Please Me is an album by whom?"),
        ("Following the flood, what changed?", "Following the flood, what changed?"),
        ('" Osmere by Night" is whose song?', '" Osmere by Night" is whose song?'),
        ('Please tell me: "Osmere" is whose song?', '"Osmere" is whose song?'),
        (" “Osmere” is whose song? Thanks", "“Osmere” is whose song?"),
        ("Thank you!", "Thank you!"),
        ("", ""),
    ],
)
def test_courtesy_is_no_part_of_the_question(question: str, plain: str) -> None:
    assert strip_courtesy(question) == plain


def test_of_a_long_question_the_words_nearest_to_the_name_are_read() -> None:
    before = " ".join(f"before{n}" for n in range(40))
    shape = parse_question(f"which {before} Marrow Bridge stone ends", [(41, 43)])
    assert len(shape.words) == 24
    assert shape.words[-3:] == ("before39", "stone", "ends") and "before10" not in shape.words
