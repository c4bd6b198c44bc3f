import pytest

from clew.text.language import prompt_language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("", "en"),
        ("Orla Quist founded it.", "en"),
        ("鲁迅出生于浙江绍兴。", "zh"),
        ("使用 PyTorch 与 Transformers 训练模型，效果很好。", "zh"),
        ("The word 北京 means northern capital, they say.", "en"),
        ("東京タワーは東京都港区にある。", "en"),
        ("Она родилась в Москве.", "en"),
        ("김구는 독립운동가였다", "en"),
        ("1234 5678 …", "en"),
        ("臺灣位於亞洲東部", "zh"),
    ],
)
def test_the_script_decides(text: str, language: str) -> None:
    assert prompt_language(text) == language
