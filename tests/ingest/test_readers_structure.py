"""Readers of structured formats: what a person sees on the page is in the text, in its markup."""

import gzip
import io
import json
import zipfile
from pathlib import Path

import pytest

from clew.ingest.chunk import BySentences
from clew.ingest.files import read
from clew.ingest.readers.source import ReadBudget, Skipped
from clew.types import Document


async def read_all(path: Path, raw: bytes | str) -> list[Document | Skipped]:
    write(path, raw)
    return [item async for item in read([path])]


def write(path: Path, raw: bytes | str) -> None:
    path.write_bytes(raw if isinstance(raw, bytes) else raw.encode())


async def read_text(path: Path, raw: bytes | str) -> str:
    [found] = await read_all(path, raw)
    assert isinstance(found, Document), found
    return found.text


async def test_definitions_tables_and_lists_of_a_page(tmp_path: Path) -> None:
    page = (
        "<title>Pools — Manual of it</title><h1>Pools</h1><div class=toc><a>1</a></div>"
        "<dl><dt><code>pool_size</code> (integer)</dt><dd><p>Sets the size.</p><p>More.</p></dd>"
        "<dt>-a</dt><dt>--all</dt><dd>Everything.</dd></dl>"
        "<ol><li>Stop it.<li>Start it.<ul><li>With care.</ul></ol>"
        "<table><thead><tr><th>Code<th>Name</thead><tr><td rowspan=2>23<td>a || b<tr><td>c"
        "<tr><td colspan=2>Class 24</table>"
        "<table><tr><th>Weight<td>82 g</table><pre>x\n  y</pre>"
    )
    [found] = await read_all(tmp_path / "a.html", page)
    assert isinstance(found, Document)
    assert found.title == "Pools"
    assert found.metadata["terms"] == {"pool_size": 1}
    assert found.text == (
        "# Pools\n\npool_size (integer)\n:   Sets the size.\n\n    More.\n\n-a\n--all\n"
        ":   Everything.\n\n1. Stop it.\n2. Start it.\n\n   - With care.\n\n"
        "| Code: 23 | Name: a || b |\n| Code: 23 | Name: c |\n| Class 24 |\n\n"
        "| Weight: 82 g |\n\n```\nx\n  y\n```"
    )


async def test_a_page_that_only_lists_others_is_skipped(tmp_path: Path) -> None:
    links = "".join(f"<dt><a>entry {n}</a></dt>" for n in range(200))
    [found] = await read_all(
        tmp_path / "i.html", f"<h1>Index</h1><div class=indexdiv>{links}</div>"
    )
    assert isinstance(found, Skipped) and "index" in found.reason


async def test_a_manual_page(tmp_path: Path) -> None:
    source = (
        '.\\" comment\n.TH QUILL 1 2024\n.SH NAME\nquill \\- draws maps\n.SH OPTIONS\n.TP\n'
        '.BR \\-a ", " \\-\\-all\nShow \\fIall\\fP maps, see\n.BR tar (1).\n.IP\nMore of it.\n'
        ".TP\n.B \\-q\nBe quiet.\n.PP\nAfter \\(lqall\\(rq.\n.nf\nquill -a\n  map\n.fi\n"
        ".TS\ntab(:);\nl l.\nCode:Meaning\n1:error\n.TE\n"
    )
    packed = gzip.compress(source.encode())
    [found] = await read_all(tmp_path / "quill.1.gz", packed)
    assert isinstance(found, Document)
    assert found.title == "quill(1)"
    assert found.text == (
        "## NAME\n\nquill - draws maps\n\n## OPTIONS\n\n-a, --all\n"
        ":   Show all maps, see tar(1).\n\n    More of it.\n\n-q\n:   Be quiet.\n\n"
        "After “all”.\n\n```\nquill -a\n  map\n```\n\n| Code: 1 | Meaning: error |"
    )


async def test_a_short_line_before_an_indent_is_a_term(tmp_path: Path) -> None:
    source = (
        ".TH QUILL 1\n.SH OPTIONS\n.PP\n\\-\\-onto <base>\n.RS 4\nWhere it begins\\&.\n.sp\nMore.\n"
        ".PP\ninner\n.RS 4\nWithin it.\n.RE\n.RE\n.PP\n\\-q\n.RS 4\nBe quiet.\n.RE\n"
        ".PP\nFor example:\n.RS 4\nIndented.\n.RE\n"
    )
    text = await read_text(tmp_path / "quill.1", source)
    assert text == (
        "## OPTIONS\n\n--onto <base>\n:   Where it begins.\n\n    More.\n\n    inner\n"
        "    :   Within it.\n\n-q\n:   Be quiet.\n\nFor example:\n\nIndented."
    )


async def test_mdoc_macros(tmp_path: Path) -> None:
    source = (
        ".Dd May 1\n.Dt QUILL 1\n.Sh SYNOPSIS\n.Nm\n.Op Fl o Ar file\n.Sh OPTIONS\n.Bl -tag\n"
        ".It Fl o Ar file\nWrite to\n.Ar file ,\nsee\n.Xr tar 1 .\n.El\n"
    )
    text = await read_text(tmp_path / "quill.1", source)
    assert "quill [-o file]" in text
    assert "-o file\n:   Write to file, see tar(1)." in text


async def test_restructured_text(tmp_path: Path) -> None:
    source = (
        "Quill\n=====\n\n.. toctree::\n   :maxdepth: 1\n\n"
        "Draws ``maps`` of :ref:`all <x>` lands::\n\n"
        "   quill -a\n\nUse\n---\n\nterm\n   What it *means*.\n\n-a, --all  Shows all.\n\n"
        "#. One\n#. Two\n\n=====  =====\nName   Type\n=====  =====\na      int\n=====  =====\n\n"
        ".. note:: Be careful.\n\n.. function:: draw(map)\n\n   Draws it.\n"
    )
    assert await read_text(tmp_path / "a.rst", source) == (
        "# Quill\n\nDraws maps of all lands:\n\n```\nquill -a\n```\n\n## Use\n\nterm\n"
        ":   What it means.\n\n-a, --all\n:   Shows all.\n\n1. One\n\n2. Two\n\n"
        "| Name: a | Type: int |\n\nnote: Be careful.\n\ndraw(map)\n:   Draws it."
    )


async def test_latex(tmp_path: Path) -> None:
    source = (
        '\\documentclass{article}\n\\title{Maps of K\\"oln}\n\\begin{document}\n\\section{Use}\n'
        "Draw \\emph{maps}\\footnote{Of land.} --- 50\\% % hidden\nby \\texttt{quill}.\n\n"
        "\\begin{enumerate}\\item One\\item Two\\end{enumerate}\n"
        "\\begin{description}\\item[term] Means it.\\end{description}\n"
        "\\begin{tabular}{ll}\\hline Name & Type\\\\ a & int\\\\ \\end{tabular}\n"
        "\\begin{verbatim}\nquill -a\n\\end{verbatim}\n\\end{document}\nlost"
    )
    [found] = await read_all(tmp_path / "a.tex", source)
    assert isinstance(found, Document)
    assert found.title == "Maps of Köln"
    assert found.text == (
        "## Use\n\nDraw maps[^1] — 50% by quill.\n\n1. One\n\n2. Two\n\nterm\n:   Means it.\n\n"
        "| Name: a | Type: int |\n\n```\nquill -a\n```\n\n[^1]: Of land."
    )


async def test_latex_notes_and_quantities(tmp_path: Path) -> None:
    source = (
        "\\begin{document}\n\\section{Method}\nFilms of \\SI{40}{\\nano\\metre} at "
        "\\qty{3}{\\metre\\per\\second}.\\footnote{Twice.}\n\\section{Results}\n"
        "They broke.\n\\end{document}"
    )
    [found] = await read_all(tmp_path / "b.tex", source)
    assert isinstance(found, Document)
    assert found.text == (
        "## Method\n\nFilms of 40 nanometre at 3 metre per second.[^1]\n\n[^1]: Twice.\n\n"
        "## Results\n\nThey broke."
    )


async def test_references_of_latex(tmp_path: Path) -> None:
    source = (
        "\\begin{document}\\begin{abstract}On \\ref{sec:dye}.\\end{abstract}\n"
        "\\section{The \\emph{vat}}\\label{sec:vat} See \\autoref{sec:dye}, Table~\\ref{t:b}, "
        "\\eqref{e} and \\ref{none}.\n\\subsection[Short]{Dyes}\\label{sec:dye}\n"
        "\\begin{table}\\caption*{No number}\\end{table}"
        "\\begin{table}\\caption{Roots}\\label{t:a}\\end{table}\n"
        "\\begin{table*}\\caption[L]{Leaves of \\ref{sec:vat}}\\label{t:b}\\end{table*}\n"
        "\\begin{equation}x\\label{e}\\end{equation}\n\\end{document}"
    )
    text = await read_text(tmp_path / "a.tex", source)
    assert text.startswith("## Abstract\n\nOn Dyes.\n\n## The vat\n\n")
    assert "See Section Dyes, Table 2, (1) and none." in text
    assert "No number\n\nTable 1: Roots\n\nTable 2: Leaves of The vat\n\nx" in text


async def test_fields_and_substitutions_of_restructured_text(tmp_path: Path) -> None:
    source = (
        "Vats\n====\n\n:Last changed: May\n\nA |vat| holds |n|.\n\n"
        ".. |vat| replace:: vat of\n   *oak*\n\n.. py:function:: fill(litres)\n\n"
        "   Fills it.\n\n   :param int litres: how much\n"
        "   :raises Full: where it is full\n   :returns: what is left\n"
    )
    [found] = await read_all(tmp_path / "a.rst", source)
    assert isinstance(found, Document)
    assert found.text == (
        "# Vats\n\nLast changed\n:   May\n\nA vat of oak holds n.\n\nfill(litres)\n"
        ":   Fills it.\n\n    litres\n    :   param, int: how much\n\n"
        "    Full\n    :   raises: where it is full\n\n"
        "    returns\n    :   what is left"
    )
    assert set(found.metadata["terms"]) == {"fill(litres)", "litres", "Full"}


async def test_notes_of_restructured_text(tmp_path: Path) -> None:
    source = (
        "Dyes\n====\n\nMadder is red [#]_ and fast [2]_. Woad [#woad]_ is blue, as "
        "[Ploss1962]_ says.\n\n.. [2] Not in light.\n.. [#woad] From leaves.\n.. [#] From roots.\n"
        ".. [Ploss1962] E. Ploss, Ein Buch.\n"
    )
    assert await read_text(tmp_path / "a.rst", source) == (
        "# Dyes\n\nMadder is red [3] and fast [2]. Woad [1] is blue, as [Ploss1962] says.\n\n"
        "[2] Not in light.\n\n[1] From leaves.\n\n[3] From roots.\n\n"
        "[Ploss1962] E. Ploss, Ein Buch."
    )


async def test_notes_of_pages_have_the_marks_of_their_references(tmp_path: Path) -> None:
    source = (
        "<p>Madder<sup><a href='#f1'>1</a></sup> and woad<sup><a href='#f2'>[2]</a></sup>, weld"
        "<sup><a href='#f3'>c</a></sup>.</p><ol><li id=f1>A root. <a href='#r'>↩</a></li></ol>"
        "<div id=f2><p>2. A leaf.</p></div><p id='f3'>A flower.</p>"
    )
    assert await read_text(tmp_path / "a.html", source) == (
        "Madder[1] and woad[2], weld[c].\n\n[1] A root.\n\n2. A leaf.\n\n[c] A flower."
    )


async def test_a_short_standard_whose_last_page_has_no_foot(tmp_path: Path) -> None:
    text = (
        f"{' ' * 28}Tides\n\n1.  Scope\n\n   The gauge is read at high water, and the height is\n"
        f"   written down by the warden of the harbour within\n\n\n"
        f"Holm{' ' * 20}Draft{' ' * 20}1 of 3\n\f\nTides 7{' ' * 20}May 1990\n\n"
        f"   10 minutes of it.\n\n2.  Gauge\n\n   It is of oak.\n\n"
        f"Holm{' ' * 20}Draft{' ' * 20}2 of 3\n\f\nTides 7{' ' * 20}May 1990\n\n"
        f"3.  Log\n\n   It is of paper.\n"
    )
    found = await read_text(tmp_path / "a.txt", text)
    assert "harbour within\n10 minutes of it." in found
    assert "Draft" not in found and "Tides 7" not in found


async def test_a_standard_on_pages(tmp_path: Path) -> None:
    bodies = [f"   The {word} of it goes on\n   for two {word}s.\n" for word in ("a", "b", "c")]
    pages = [
        f"Brandvik{' ' * 40}Standard{' ' * 9}[Page {n}]\n\f\nStandard 77{' ' * 30}May 1990\n\n"
        for n in range(1, 5)
    ]
    text = (
        f"{' ' * 28}Drawing of Maps\n\nContents\n\n   1. Scope .......... 1\n   2. Terms ...... 2\n"
        f"   2.1. Land ....... 3\n\n{pages[0]}1.  Scope\n\n{bodies[0]}\n"
        f"{pages[1]}2.  Terms\n\n{bodies[1]}\n{pages[2]}2.1.  Land\n\n{bodies[2]}\n"
        f"{pages[3]}   The end.\n"
    )
    [found] = await read_all(tmp_path / "std.txt", text)
    assert isinstance(found, Document)
    assert found.title == "Drawing of Maps"
    assert "[Page" not in found.text and "Standard 77" not in found.text
    assert ". . ." not in found.text and "....." not in found.text
    assert [line for line in found.text.split("\n") if line.startswith("#")] == [
        "## 1. Scope",
        "## 2. Terms",
        "### 2.1. Land",
    ]


_MEMO = (
    f"{' ' * 28}Beacon Relay\n{' ' * 60}March 2023\n\n   Abstract of it.\n\nTable of Contents\n\n"
    "   1. Scope ........ 2\n   2. Format ....... 2\n   3. Timers ....... 3\n\n",
    "1. Scope\n\n   Beacons go from one router to the next.\n\n2. Format\n\n   The first octet is "
    "the version,\n   and a router that finds another one\n",
    "   MUST discard the message.\n\n3. Timers\n\n   They run for ten seconds.\n",
)


@pytest.mark.parametrize("feed", ["\f", ""])
@pytest.mark.parametrize("count", [2, 3])
async def test_running_lines_of_few_pages(tmp_path: Path, count: int, feed: str) -> None:
    head = f"\nMemo 9911{' ' * 20}Beacon Relay{' ' * 20}March 2023\n\n"
    feet = [f"\nHalvers{' ' * 40}[Page {n}]\n" for n in (1, 2, 3)]
    pages = [part + foot for part, foot in zip(_MEMO, feet, strict=True)][:count]
    text = await read_text(tmp_path / "memo.txt", (feed + head).join(pages))
    assert "Memo 9911" not in text and "[Page" not in text and "Table of Contents" not in text
    assert count == 2 or "another one\nMUST discard" in text
    assert count == 2 or "## 2. Format" in text


def pack(parts: dict[str, str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return out.getvalue()


async def test_a_presentation(tmp_path: Path) -> None:
    def shape(kind: str, *lines: str) -> str:
        text = "".join(f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in lines)
        return f'<p:sp><p:nvPr><p:ph type="{kind}"/></p:nvPr><p:txBody>{text}</p:txBody></p:sp>'

    def cell(text: str) -> str:
        return f"<a:tc><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:tc>"

    def part(content: str) -> str:
        return f'<p:x xmlns:p="p" xmlns:a="a" xmlns:r="r">{content}</p:x>'

    def link(key: str, number: int) -> str:
        return f'<Relationship Id="{key}" Target="slides/slide{number}.xml"/>'

    table = "".join(f"<a:tr>{cell(a)}{cell(b)}</a:tr>" for a, b in (("Name", "Age"), ("Ann", "7")))
    second = shape("title", "Second") + shape("sldNum", "2") + f"<a:tbl>{table}</a:tbl>"
    order = '<p:sldId id="1" r:id="b"/><p:sldId id="2" r:id="a"/>'
    raw = pack(
        {
            "ppt/presentation.xml": part(order),
            "ppt/_rels/presentation.xml.rels": f"<R>{link('a', 1)}{link('b', 2)}</R>",
            "ppt/slides/slide1.xml": part(second),
            "ppt/slides/slide2.xml": part(shape("ctrTitle", "First") + shape("body", "one", "two")),
        }
    )
    [found] = await read_all(tmp_path / "a.pptx", raw)
    assert isinstance(found, Document)
    assert found.title == "First"
    assert found.text == "## First\n\n- one\n- two\n\n\f## Second\n\n| Name: Ann | Age: 7 |"
    assert found.text[found.page_starts[1] :].startswith("## Second")


def chart(title: str, *series: tuple[str, str, list[tuple[str, str]]]) -> str:
    """Return the part of a chart: its title, and series with their number format and points."""

    def points(values: list[str]) -> str:
        return "".join(f'<pt idx="{at}"><v>{value}</v></pt>' for at, value in enumerate(values))

    written = "".join(
        f"<ser><tx><pt><v>{name}</v></pt></tx><cat>{points([a for a, _ in pairs])}</cat>"
        f"<val><formatCode>{shown}</formatCode>{points([b for _, b in pairs])}</val></ser>"
        for name, shown, pairs in series
    )
    axis = "<catAx><title><t>Month</t></title></catAx>"
    return f"<c><chart><title><t>{title}</t></title>{written}{axis}</chart></c>"


async def test_charts_and_speaker_notes(tmp_path: Path) -> None:
    link = '<R><Relationship Id="c" Target="../charts/chart3.xml"/>{}</R>'.format
    notes = '<Relationship Id="n" Target="../notesSlides/notesSlide1.xml"/>'
    text = '<p:sp><a:p xmlns:a="a"><a:t>{}</a:t></a:p></p:sp>'.format
    drawn = chart(
        "Honey",
        ("Jars", "0.0", [("May", "41.000000000000007"), ("June", "60")]),
        ("Share", "0%", [("May", "0.4")]),
    )
    framed = '<c:chart xmlns:c="c" xmlns:r="r" r:id="c"/>'
    deck = pack(
        {
            "ppt/presentation.xml": '<p:x xmlns:p="p"/>',
            "ppt/slides/slide1.xml": f'<p:x xmlns:p="p">{text("Sales")}{framed}</p:x>',
            "ppt/slides/_rels/slide1.xml.rels": link(notes),
            "ppt/notesSlides/notesSlide1.xml": f'<p:x xmlns:p="p">{text("Pause here.")}</p:x>',
            "ppt/charts/chart3.xml": drawn,
        }
    )
    rows = "| Month: May | Jars: 41 | Share: 40 % |\n| Month: June | Jars: 60 |"
    shown = f"Chart: Honey\n\n{rows}"
    assert await read_text(tmp_path / "a.pptx", deck) == (
        f"Sales\n\n{shown}\n\nSpeaker notes: Pause here."
    )
    letter = pack(
        {
            "word/document.xml": f'<w:x xmlns:w="w"><w:p><w:r>{framed}</w:r></w:p></w:x>',
            "word/_rels/document.xml.rels": link("").replace("../", ""),
            "word/charts/chart3.xml": drawn,
        }
    )
    assert await read_text(tmp_path / "a.docx", letter) == shown


async def test_a_book(tmp_path: Path) -> None:
    raw = pack(
        {
            "META-INF/container.xml": '<c><rootfile full-path="OPS/book.opf"/></c>',
            "OPS/book.opf": '<p xmlns:d="d"><d:title>Maps</d:title><d:creator>Ilse</d:creator>'
            '<item id="n" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>'
            '<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/>'
            '<item id="b" href="b.xhtml" media-type="application/xhtml+xml"/>'
            '<itemref idref="n"/><itemref idref="b"/><itemref idref="a"/></p>',
            "OPS/nav.xhtml": "<ol><li>Contents</ol>",
            "OPS/a.xhtml": "<!DOCTYPE html><h1>Two</h1><p>Later.",
            "OPS/b.xhtml": "<h1>One</h1><p>Earlier.",
        }
    )
    [found] = await read_all(tmp_path / "a.epub", raw)
    assert isinstance(found, Document)
    assert (found.title, found.metadata["author"]) == ("Maps", "Ilse")
    assert found.text == "Author: Ilse\n\n# One\n\nEarlier.\n\n# Two\n\nLater."


async def test_a_notebook(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Maps\n", "Of land."]},
        {"cell_type": "code", "source": "draw()", "outputs": [{"text": ["a map"]}]},
    ]
    info = {"language_info": {"name": "python"}}
    text = await read_text(tmp_path / "a.ipynb", json.dumps({"cells": cells, "metadata": info}))
    assert text == "# Maps\nOf land.\n\n```python\ndraw()\n```\n\n```\na map\n```"


async def test_errors_of_a_notebook_are_read_and_pictures_are_not(tmp_path: Path) -> None:
    error = {"output_type": "error", "ename": "KeyError", "evalue": "\x1b[31m'tide'\x1b[0m"}
    figure = {"data": {"image/png": "iVBO", "text/plain": ["<Figure size 640x480 with 1 Axes>"]}}
    lines = {"data": {"text/plain": "[<matplotlib.lines.Line2D at 0x7f>,\n <b at 0x8>]"}}
    compared = {"output_type": "stream", "text": "a < b > c"}
    cell = {"cell_type": "code", "source": "", "outputs": [error, figure, lines, compared]}
    text = await read_text(tmp_path / "a.ipynb", json.dumps({"cells": [cell]}))
    assert text == "```\nKeyError: 'tide'\n```\n\n```\na < b > c\n```"


MAIL = "From: Ilse <i@example.org>\nTo: Anton\nSubject: Re: =?utf-8?q?K=C3=B6ln?=\n"


async def test_mail(tmp_path: Path) -> None:
    page = "Content-Type: text/html; charset=utf-8\n\n<p>See <b>the</b> map.</p>"
    [found] = await read_all(tmp_path / "a.eml", MAIL + page)
    assert isinstance(found, Document)
    assert found.title == "Köln"
    assert found.text.endswith("Subject: Re: Köln\n\nSee the map.")
    box = f"From a@b Mon Jan 1 2024\n{MAIL}\nOne.\n\nFrom a@b Tue Jan 2 2024\n{MAIL}\nTwo.\n"
    found_all = await read_all(tmp_path / "all.mbox", box)
    assert [item.text[-4:] for item in found_all if isinstance(item, Document)] == ["One.", "Two."]


async def test_rows_of_markdown_have_their_labels(tmp_path: Path) -> None:
    fenced = "```\n| a | b |\n|---|---|\n| 1 | 2 |\n```"
    table = "  | Map | Width |\n  |:----|----:|\n  | North\\|East | 20 |\n  | West | |"
    text = await read_text(tmp_path / "a.md", f"{fenced}\n\n- Sizes\n\n{table}\n\nEnd.")
    rows = "- Sizes\n\n  | Map: North\\|East | Width: 20 |\n  | Map: West |\n\nEnd."
    assert text == f"{fenced}\n\n{rows}"


async def test_what_a_mail_quotes_is_not_its_own(tmp_path: Path) -> None:
    reply = f"{MAIL}\nOn Friday.\n\nOn 5 March Anton wrote:\n> When do we sail?\n> It rains.\n"
    text = await read_text(tmp_path / "a.eml", reply)
    assert text.endswith("On Friday.\n\n## On 5 March Anton wrote\n\nWhen do we sail?\nIt rains.")
    between = await read_text(tmp_path / "b.eml", f"{MAIL}\n> When?\n\nOn Friday.\n")
    assert between.endswith("> When?\n\nOn Friday.")
    first = f"From a@b Mon Jan 1 2024\n{MAIL}\nWhen do we sail?\nIt rains.\n\n"
    found = await read_all(tmp_path / "all.mbox", f"{first}From a@b Tue Jan 2 2024\n{reply}")
    assert isinstance(found[1], Document) and found[1].text.endswith("\n\nOn Friday.")


async def test_code_is_split_at_its_functions(tmp_path: Path) -> None:
    functions = "\n\n".join(
        f"# number {n}\ndef run_{n}(value):\n" + "    value += 1\n" * 60 for n in range(3)
    )
    [found] = await read_all(tmp_path / "a.py", functions)
    assert isinstance(found, Document)
    chunks = BySentences(size=200)(found)
    assert {chunk.heading for chunk in chunks} == {"run_0", "run_1", "run_2"}
    assert all(c.text.startswith(("# number", "value")) for c in chunks)


async def test_chunks_follow_the_structure(tmp_path: Path) -> None:
    definitions = "\n\n".join(
        f"option_{n}\n:   Sets number {n}. {'It has a long text of its own. ' * 6}"
        for n in range(12)
    )
    code = "```\n" + "run the thing\n" * 40 + "```"
    text = f"# Book\n\n## Options\n\n{definitions}\n\n## Code\n\nRun this:\n\n{code}\n"
    [found] = await read_all(tmp_path / "a.md", text)
    assert isinstance(found, Document)
    chunks = BySentences(size=150)(found)
    for chunk in chunks:
        begins = chunk.text.split("\n")[0]
        assert begins.startswith(("option_", "# Book", "## Code")), begins
        assert chunk.text.count("option_") == chunk.text.count(":   Sets")
    assert chunks[1].heading == "Book > Options"
    assert chunks[-1].text.endswith("```") and chunks[-1].text.count("```") == 2


async def test_a_chunk_is_headed_by_no_definition_that_ends_in_it(tmp_path: Path) -> None:
    long = "\n\n".join(f"    The pot number {n} is set down {'with care ' * 20}." for n in range(9))
    text = f"# Kiln\n\n## Options\n\n--pots\n:   Takes pots.\n\n{long}\n\n" + "\n\n".join(
        f"--mark-{n}\n:   Sets the mark {n} and {'says so ' * 9}." for n in range(9)
    )
    [found] = await read_all(tmp_path / "a.md", text)
    assert isinstance(found, Document)
    chunks = BySentences(size=150)(found)
    headed = [chunk for chunk in chunks if chunk.heading.endswith("--pots")]
    assert len(headed) > 1 and not any("--mark" in chunk.text for chunk in headed)
    [marked] = [chunk for chunk in chunks if "--mark-0\n" in chunk.text]
    assert marked.heading == "Kiln > Options"


async def test_compressed_files_within_the_budget(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    assert await read_text(path, gzip.compress(b"Some text.")) == "Some text."
    path.write_bytes(gzip.compress(b"x" * 3_000_000))
    [found] = [item async for item in read([path], budget=ReadBudget(file_bytes=1_000_000))]
    assert isinstance(found, Skipped) and "unpacks to more than 1 MB" in found.reason
    [found] = await read_all(tmp_path / "b.csv.gz", gzip.compress(b"text\na\n"))
    assert isinstance(found, Skipped) and "unpack it first" in found.reason


@pytest.mark.parametrize(
    ("suffix", "unit"),
    [
        *(
            (".tex", unit)
            for unit in ("\\begin{itemize}\\item ", "{", "\\", "$", "\\footnote{", "&")
        ),
        *((".rst", unit) for unit in ("* a\n  ", "..", "``", "==\n", ":a:`", "+-+\n")),
        *((".1", unit) for unit in (".SH A\n.RS\n", ".TP\n", "\\f", ".TS\n", ".IP a\n.RS\n")),
        *((".eml", unit) for unit in ("A: b\n", "\n", "=?utf-8?q?", "--x\n")),
        *((".txt", unit) for unit in ("1. A\n\nb\n\n", "\f", "A ....... 1\n")),
    ],
)
async def test_what_is_repeated_without_end_is_read_in_time(
    tmp_path: Path, suffix: str, unit: str
) -> None:
    head = ".TH A 1\n" if suffix == ".1" else ""
    (tmp_path / f"bomb{suffix}").write_text(f"{head}Text\n\n" + unit * 8_000)
    budget = ReadBudget(seconds=20)
    items = [item async for item in read([tmp_path / f"bomb{suffix}"], budget=budget)]
    assert len(items) == 1
    assert not (isinstance(items[0], Skipped) and "takes longer" in items[0].reason)


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        (
            "Mill\n====\n\nGrinding\n--------\n\nThe stone turns.",
            "# Mill\n\n\n## Grinding\n\n\nThe stone turns.",
        ),
        (
            "Lease\n\nArticle 1: Rent\n\nIt is due.\n\nArticle 2: Notice\n\nThree months.\n\n"
            "Article 3: Keys\n\nTwo.",
            "Lease\n\n## Article 1: Rent\n\nIt is due.\n\n## Article 2: Notice\n\nThree months.\n\n"
            "## Article 3: Keys\n\nTwo.",
        ),
        (
            "RULES\n\nMOORING\n\nAt the quay.\nBy night.\n\nFISHING\n\nWith nets.",
            "# RULES\n\n## MOORING\n\nAt the quay.\nBy night.\n\n## FISHING\n\nWith nets.",
        ),
        (
            "Phrase    Seed\n==============\na    1\n\nPhrase    Seed\n==============\nb    2",
            "Phrase    Seed\n==============\na    1\n\nPhrase    Seed\n==============\nb    2",
        ),
        ("A STOP\n\nB STOP\n\nC STOP\n\nD STOP", "A STOP\n\nB STOP\n\nC STOP\n\nD STOP"),
    ],
)
async def test_headings_of_plain_text(tmp_path: Path, text: str, marked: str) -> None:
    assert await read_text(tmp_path / "a.txt", text) == marked


async def test_footers_and_contents_of_two_pages(tmp_path: Path) -> None:
    contents = "\n".join(f"{n}. Part {n} ......... {n}" for n in range(1, 5))
    text = await read_text(
        tmp_path / "a.txt",
        f"{contents}\n\nOne.\n\nOkonkwo  [Page 1]\n\fTwo.\n\nOkonkwo  [Page 2]\n",
    )
    assert text.split() == ["One.", "Two."]


async def test_tables_of_directives(tmp_path: Path) -> None:
    text = await read_text(
        tmp_path / "a.rst",
        ".. list-table:: Regions\n   :header-rows: 1\n\n   * - Region\n     - Host\n   * - north\n"
        '     - n.example\n\n.. csv-table:: Sizes\n   :header: "Name", "Size"\n\n   "a, b", 4\n',
    )
    assert text == (
        "Regions\n\n| Region: north | Host: n.example |\n\nSizes\n\n| Name: a, b | Size: 4 |"
    )


ATTACHED = """MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="X"

--X
Content-Type: text/plain

See the list.
--X
Content-Type: text/csv
Content-Disposition: attachment; filename="boats.csv"

boat,berth
Tern,14
--X
Content-Type: image/png
Content-Disposition: attachment; filename="quay.png"

picture
--X--
"""


async def test_what_is_attached_to_a_mail_is_read_or_told_of(tmp_path: Path) -> None:
    found = await read_all(tmp_path / "a.eml", MAIL + ATTACHED)
    [mail] = [item for item in found if isinstance(item, Document)]
    assert mail.text.endswith("See the list.\n\n## boats.csv\n\nboat: Tern; berth: 14.")
    [skipped] = [item for item in found if isinstance(item, Skipped)]
    assert skipped.name.endswith("a.eml#quay.png") and "cannot be read" in skipped.reason


async def test_an_escaped_line_of_a_mailbox_is_no_quotation(tmp_path: Path) -> None:
    box = f"From a@b Mon Jan 1 2024\n{MAIL}\nWe sail.\n\n>From Oslo we go on.\n"
    [mail] = [i for i in await read_all(tmp_path / "a.mbox", box) if isinstance(i, Document)]
    assert mail.text.endswith("We sail.\n\nFrom Oslo we go on.")


async def test_items_that_rst_counts_by_itself_are_numbered(tmp_path: Path) -> None:
    first = "#. Unpack it.\n\n   With care.\n#. Connect it.\n"
    source = f"Begin\n=====\n\n{first}\nThen\n\n3. Wait.\n#. Go.\n"
    text = await read_text(tmp_path / "a.rst", source)
    numbers = [line.split()[0] for line in text.splitlines() if line[:1].isdigit()]
    assert numbers == ["1.", "2.", "3.", "4."]
