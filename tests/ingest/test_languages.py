"""Seven languages from the file to the citation: reading, names, questions, breadcrumbs."""

from pathlib import Path

import pytest

from clew.engine import KnowledgeBase
from conftest import one_in_three

MANUALS = {
    "zh": (
        "# 网络手册\n\n## 主机名\n\n主机名保存在 /etc/hostname 文件中。系统启动时读取主机名。\n\n"
        "## 防火墙\n\n防火墙规则由 nft 命令管理。规则在重启后丢失。\n",
        "主机名保存在哪个文件中？",
        "/etc/hostname",
        "主机名",
    ),
    "ja": (
        "# ネットワーク手引き\n\n## ホスト名\n\nホスト名は /etc/hostname に保存されます。\n\n"
        "## ファイアウォール\n\nファイアウォールの規則は nft で管理します。\n",
        "ホスト名はどこに保存されますか？",
        "/etc/hostname",
        "ホスト名",
    ),
    "de": (
        "# Netzwerkhandbuch\n\n## Rechnername\n\n"
        "Der Rechnername steht in der Datei /etc/hostname.\n\n"
        "## Firewall\n\nDie Regeln der Firewall verwaltet der Befehl nft.\n",
        "In welcher Datei steht der Rechnername?",
        "/etc/hostname",
        "Rechnername",
    ),
    "fr": (
        "# Manuel du réseau\n\n## Nom d’hôte\n\n"
        "Le nom d’hôte est enregistré dans /etc/hostname.\n\n"
        "## Pare-feu\n\nLes règles du pare-feu sont gérées par nft.\n",
        "Où le nom d’hôte est-il enregistré ?",
        "/etc/hostname",
        "Nom d’hôte",
    ),
    "es": (
        "# Manual de red\n\n## Nombre\n\nEl nombre del equipo se guarda en /etc/hostname.\n\n"
        "## Cortafuegos\n\nLas reglas del cortafuegos se gestionan con nft.\n",
        "¿Dónde se guarda el nombre del equipo?",
        "/etc/hostname",
        "Nombre",
    ),
    "ru": (
        "# Руководство по сети\n\n## Имя узла\n\nИмя узла хранится в файле /etc/hostname.\n\n"
        "## Экран\n\nПравилами межсетевого экрана управляет nft.\n",
        "В каком файле хранится имя узла?",
        "/etc/hostname",
        "Имя узла",
    ),
    "ar": (
        "# دليل الشبكة\n\n## اسم المضيف\n\nيحفظ اسم المضيف في الملف /etc/hostname.\n\n"
        "## الجدار الناري\n\nتدار قواعد الجدار الناري بالأمر nft.\n",
        "في أي ملف يحفظ اسم المضيف؟",
        "/etc/hostname",
        "اسم المضيف",
    ),
}


@pytest.mark.parametrize("language", one_in_three(MANUALS))
async def test_a_manual_is_found_and_cited_in_its_own_language(
    base: KnowledgeBase, tmp_path: Path, language: str
) -> None:
    text, question, answer, section = MANUALS[language]
    (tmp_path / f"{language}.md").write_text(text)
    await base.add([tmp_path / f"{language}.md"])
    found = await base.search(question, recipe="bm25", k=1)
    assert answer in found.evidence.chunks[0].text
    answered = await base.ask(question, recipe="bm25", mode="open")
    quoted = [c for c in answered.citations if answer in c.quote]
    assert quoted, answered.answer
    assert quoted[0].heading.endswith(section)
    names = await base.search(answer, recipe="bm25", k=1)
    assert names.evidence.chunks
