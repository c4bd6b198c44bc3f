"""What readers used to lose: macros, notes at the side, terms of several lines, formulas."""

import zipfile
from pathlib import Path

from clew.ingest.files import read
from clew.ingest.readers.latex_macros import expand_macros
from clew.ingest.readers.source import Skipped
from clew.types import Document

_SPACE = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


async def read_text(path: Path, raw: str) -> str:
    write(path, raw)
    [found] = [item async for item in read([path])]
    assert isinstance(found, Document), found
    return found.text


def write(path: Path, raw: str) -> None:
    path.write_text(raw, encoding="utf-8")


async def test_macros_of_a_document_are_expanded(tmp_path: Path) -> None:
    text = await read_text(
        tmp_path / "a.tex",
        r"""\newcommand{\sys}{Wrenlock}
\newcommand{\ms}[1]{#1\,milliseconds}\newcommand\by[2][Ann]{#1 and #2}
\def\city{Gent}\DeclareMathOperator{\cost}{cost}
% \newcommand{\sys}{Never}
\begin{document}\section{Design}
\sys{} needs \ms{12} and is by \by{Bo} of \city. Its \textbf{\sys} price is \$400, $O(n\log n)$,
$\cost(\beta)=\frac{1}{2}$, said \cite{knuth}.\footnote{Without tax.}
\begin{verbatim}
\sys
\end{verbatim}
\begin{thebibliography}{9}\bibitem{knuth} D. Knuth. \emph{Art}. 1968.\end{thebibliography}
\end{document}""",
    )
    assert text == (
        "## Design\n\nWrenlock needs 12 milliseconds and is by Ann and Bo of Gent. Its Wrenlock "
        "price is $400, O(n log n), cost(β)=1/2, said [1].[^1]\n\n```\n\\sys\n```\n\n"
        "[^1]: Without tax.\n\n## References\n\n[1] D. Knuth. Art. 1968."
    )


async def test_comments_of_latex_are_no_text(tmp_path: Path) -> None:
    text = await read_text(
        tmp_path / "a.tex",
        "% Use \\refa, \\refb or \\refc, as you like. {\n\\section{Maps}\n50\\% are at "
        "\\url{x.org/a%20b}.\n%   \\platform{Unix}\n\\begin{verbatim}\n% kept\n\\end{verbatim}\n",
    )
    assert text == "## Maps\n\n50% are at x.org/a%20b.\n\n```\n% kept\n```"


def test_macros_that_call_themselves_end() -> None:
    bomb = r"\def\a{\b\b}\def\b{\c\c}\def\c{\a\a}\def\z{\z x}" + r"\a \z " * 50
    assert len(expand_macros(bomb)) < 3_000_000


async def test_a_term_over_several_lines_and_names_of_systems(tmp_path: Path) -> None:
    text = await read_text(
        tmp_path / "hop.1",
        ".Dd May 1\n.Dt HOP 1\n.Sh NAME\n.Nm hop\n.Nd hops on\n.Sh DESCRIPTION\n.Bl -tag\n"
        ".It Fl D Xo\n.Sm off\n.Oo Ar bind_address : Oc\n.Ar port\n.Sm on\n.Xc\nOpens a door.\n"
        ".It Fl L Ar one\n.It Fl L Ar two\nBinds on\n.Ux ,\n.Ox 7.4\nand more.\n.El\n.Pp\nType\n"
        ".Dl $ hop -D 8080\n.Fl Fl all\n.Ar a Ns Ar b\n",
    )
    assert "-D [bind_address:]port\n:   Opens a door." in text
    assert "-L one\n-L two\n:   Binds on UNIX, OpenBSD 7.4 and more." in text
    assert "hop – hops on" in text and "```\n$ hop -D 8080\n```" in text and "--all ab" in text


async def test_what_stands_aside_within_the_content_stays(tmp_path: Path) -> None:
    text = await read_text(
        tmp_path / "a.html",
        "<body><aside><p>Our shop</p></aside><main><p>Dug in 1702.<sup><a href='#n1'>1</a></sup> It"
        " is 10<sup>6</sup> old.</p><aside class=note><p>Boil the water.</p></aside>"
        "<aside class=related>More wells</aside></main><aside>Site</aside>"
        "<aside role=doc-footnote id=n1>By Abel Crane. <a href='#r'>↩</a></aside></body>",
    )
    assert text == "Dug in 1702.[1] It is 10^6 old.\n\nBoil the water.\n\n[1] By Abel Crane."


async def test_notes_of_a_book_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.epub"
    with zipfile.ZipFile(path, "w") as book:
        book.writestr("META-INF/container.xml", '<c><rootfile full-path="b.opf"/></c>')
        book.writestr(
            "b.opf",
            '<p><item id="a" href="a.xhtml" media-type="application/xhtml+xml"/>'
            '<itemref idref="a"/></p>',
        )
        book.writestr(
            "a.xhtml",
            '<html><body><p>Lit in 1868.<a epub:type="noteref" href="#n">1</a></p>'
            '<aside epub:type="footnote" id="n"><p>By paraffin.</p></aside></body></html>',
        )
    [found] = [item async for item in read([path])]
    assert isinstance(found, Document) and found.text == "Lit in 1868.[1]\n\n[1] By paraffin."


def write_workbook(path: Path, *sheets: str) -> None:
    """Write a workbook of sheets with the given rows."""
    numbers = range(1, len(sheets) + 1)
    with zipfile.ZipFile(path, "w") as book:
        book.writestr(
            "xl/_rels/workbook.xml.rels",
            "<r>"
            + "".join(f'<R Id="r{n}" Target="worksheets/{n}.xml"/>' for n in numbers)
            + "</r>",
        )
        spaces = f'xmlns="{_SPACE}" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/'
        names = "".join(f'<sheet name="S{n}" r:id="r{n}"/>' for n in numbers)
        book.writestr(
            "xl/workbook.xml",
            f'<workbook {spaces}relationships"><sheets>{names}</sheets></workbook>',
        )
        for number, rows in zip(numbers, sheets, strict=True):
            book.writestr(f"xl/worksheets/{number}.xml", f'<w xmlns="{_SPACE}">{rows}')


def write_row(number: int, *cells: str) -> str:
    """Write a row whose texts stand in the cells, and formulas behind `=` without a value."""
    found = (
        f"<c><f>{cell[1:]}</f><v></v></c>" if cell[0] == "=" else f'<c t="str"><v>{cell}</v></c>'
        for cell in cells
    )
    return f'<row r="{number}">{"".join(found)}</row>'


async def test_a_formula_without_a_value_or_a_broken_sheet_loses_no_other(tmp_path: Path) -> None:
    rows = (
        write_row(1, "Region", "Units", "Sum")
        + write_row(2, "North", "120", "=B2")
        + '<row r="3"><c t="str"><v>South</v></c><c><v>12o</v></c></row>'
    )
    path = tmp_path / "a.xlsx"
    write_workbook(path, rows + "</w>", write_row(1, "A", "B") + "<row", rows + "</w>")
    found = [item async for item in read([path])]
    texts = [item.text for item in found if isinstance(item, Document)]
    lines = "Region: North; Units: 120.\nRegion: South; Units: 12o."
    assert texts == [f"## S1\n\n{lines}\n\n## S3\n\n{lines}"]
    told = [item.name for item in found if isinstance(item, Skipped)]
    assert told == [f"{path}#S{number}" for number in (1, 2, 3)]
