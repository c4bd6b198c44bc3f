"""What language a text is in is named for people."""

import pytest

from clew.text.word_forms import name_language


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("English", "Which of the two pumps is older?"),
        ("German", "Welche der beiden Pumpen ist die ältere?"),
        ("French", "Laquelle des deux pompes est la plus ancienne ?"),
        ("Spanish", "¿Cuál de las dos bombas es la más antigua?"),
        ("Italian", "Quale delle due pompe è la più vecchia?"),
        ("Portuguese", "Qual das duas bombas é a mais antiga?"),
        ("Dutch", "Welke van de twee pompen is het oudst?"),
        ("Polish", "Która z dwóch pomp jest starsza?"),
        ("Turkish", "İki pompadan hangi daha eski ve ne zaman yapıldı?"),
        ("Swedish", "Vilken av de två pumparna är äldst?"),
        ("Danish or Norwegian", "Hvilken af de to pumper er ældst?"),
        ("Finnish", "Kuka on se, joka osti pumpun?"),
        ("Japanese", "二つのポンプのうち古いのはどちらですか。"),
        ("Chinese", "两台水泵中哪一台更旧？"),
        ("Korean", "두 펌프 중 어느 것이 더 오래되었습니까?"),
        ("Cyrillic letters", "Какой из двух насосов старше?"),
        ("Arabic letters", "أي المضختين أقدم؟"),
        ("Devanagari letters", "दोनों पंपों में से कौन सा पुराना है?"),
        ("", "Grundfos Alpha 2"),
        ("", "1984 — 2001"),
    ],
)
def test_a_language_is_told_by_its_script_and_words(language: str, text: str) -> None:
    assert name_language(text) == language
