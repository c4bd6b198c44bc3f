"""What the fuzzed inputs start from: a small sound file of every format, and nasty pieces."""

import io
import json
import sqlite3
import tempfile
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

ROWS: list[Any] = [
    {"id": "a1", "title": "Marrow Bridge", "text": "It spans the Tarn.", "year": 1921},
    {"id": 2, "title": ["x"], "text": ["One.", "Two."], "tags": {"a": [1, None]}},
]
GRAPH_ROWS: list[Any] = [
    {"head": "Ilse", "relation": "born in", "tail": "Vessen", "weight": 2},
    ["Ilse", "designed", "Marrow Bridge"],
    {"id": "n1", "name": "Ilse", "type": "person", "aliases": ["I. B."], "born": 1870},
    {"type": "node", "id": "7", "labels": ["Person"], "properties": {"name": "Ilse"}},
    {"type": "relationship", "label": "KNOWS", "start": {"id": "7"}, "end": {"id": "8"}},
    {"kind": "entity", "name": "Ilse", "type": "person", "attributes": {"born": "1870"}},
    {"kind": "fact", "text": "Ilse met Oda.", "clew_members": [["Ilse", "head"], ["Oda", "tail"]]},
]
_GRAPHML = (
    '<?xml version="1.0"?><graphml><key id="d0" for="node" attr.name="name"/>'
    '<key id="d1" for="edge" attr.name="label"><default>knows</default></key><graph>'
    '<node id="a"><data key="d0">Ilse</data></node><node id="b"/>'
    '<node id="c"><data key="clew_attributes">{"born": "1870"}</data></node>'
    '<node id="d"><data key="clew_members">[["Ilse", "head"]]</data></node>'
    '<node id="e"><data key="clew_exact">{"+name": "x"}</data></node>'
    '<edge source="a" target="b"><data key="d1">met</data></edge></graph></graphml>'
)
_DOCUMENT_XML = (
    '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>'
    "<w:p><w:r><w:t>Marrow Bridge spans the Tarn.</w:t></w:r></w:p>"
    "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>cell</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
    "</w:body></w:document>"
)
_PDF = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
    b"2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    b"3 0 obj<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<<>>>>endobj\n"
    b"4 0 obj<</Length 44>>stream\nBT /F1 12 Tf (Marrow Bridge) Tj ET\nendstream endobj\n"
    b"trailer<</Root 1 0 R>>\n"
)
TEXT_SEEDS: dict[str, bytes] = {
    ".txt": b"Marrow Bridge spans the Tarn.\n\nIt was built in 1921.\n",
    ".md": b"---\ntitle: Bridge\n---\n# Marrow\n\ntext\n\n```py\ncode\n```\n| a | b |\n|---|---|\n",
    ".rst": b"Marrow\n======\n\n.. note:: text\n\n   more\n",
    ".html": b"<html><head><title>Marrow</title></head><body><p>It <b>spans</b> the Tarn.</p>"
    b"<table><tr><td>1</td></tr></table><script>x</script></body></html>",
    ".csv": b'id,title,text\n1,Marrow,"It spans, the Tarn."\n2,Mill,"two\nlines"\n',
    ".tsv": b"id\ttext\n1\tIt spans the Tarn.\n2\ttwo\n",
    ".jsonl": "\n".join(map(json.dumps, ROWS)).encode(),
    ".json": json.dumps(ROWS).encode(),
    ".pdf": _PDF,
    ".docx": b"",
    ".pptx": b"",
    ".epub": b"",
    ".xlsx": b"",
    ".sqlite": b"",
    ".parquet": b"",
    ".ipynb": json.dumps(
        {
            "cells": [
                {"cell_type": "markdown", "source": ["# Marrow\n", "It spans the Tarn."]},
                {"cell_type": "code", "source": "print(1)", "outputs": [{"text": ["1"]}]},
            ],
            "metadata": {"kernelspec": {"language": "python"}},
            "nbformat": 4,
        }
    ).encode(),
    ".eml": b"From: a@example.org\nTo: b@example.org\nSubject: =?utf-8?q?Br=C3=BCcke?=\n"
    b"Date: Mon, 1 Jan 2024 10:00:00 +0000\nMIME-Version: 1.0\n"
    b'Content-Type: multipart/mixed; boundary="x"\n\n--x\nContent-Type: text/plain\n\n'
    b"It spans the Tarn.\n--x\nContent-Type: text/html\n\n<p>It spans</p>\n--x--\n",
    ".mbox": b"From a@example.org Mon Jan  1 10:00:00 2024\nFrom: a@example.org\nSubject: One\n\n"
    b"It spans the Tarn.\n\nFrom b@example.org Mon Jan  1 11:00:00 2024\nSubject: Two\n\nMill.\n",
    ".tex": b"\\documentclass{article}\n\\title{Marrow}\n\\begin{document}\n\\section{Bridge}\n"
    b"It \\emph{spans} the Tarn $x^2$.\n\\begin{tabular}{ll}a & b \\\\ c & d\\end{tabular}\n"
    b"\\end{document}\n",
    ".man": b'.TH MARROW 1 "2024"\n.SH NAME\nmarrow \\- a bridge\n'
    b".SH OPTIONS\n.TP\n\\fB\\-a\\fR\nall\n",
    ".xyz": b"plain",
}
GRAPH_SEEDS: dict[str, bytes] = {
    "tsv": b"head\trelation\ttail\tweight\nIlse\tborn in\tVessen\t2\nA\\tB\tr\tC\t1\n",
    "csv": b'Ilse,born in,Vessen\n"Mill, Tarn",in,"Vessen"\nx,y,z,0.5\n',
    "pipe": b"Ilse|born in|Vessen\nIlse|designed|Marrow Bridge\n",
    "ntriples": b"<http://x/a> <http://x/p> <http://x/b> .\n"
    b'<http://x/a> <http://x/n> "I\\u00e9"@en .\n',
    "turtle": b"@prefix x: <http://x/> .\n"
    b'x:a x:p x:b ; x:n "Ilse"@en , 3.5 .\n_:b x:q [ x:r x:c ] .\n',
    "graphml": _GRAPHML.encode(),
    "neo4j": b"id:ID,name,:LABEL,tags:string[]\n1,Ilse,Person;Author,a;b\n2,Oda,Person,\n",
    "jsonl": "\n".join(map(json.dumps, GRAPH_ROWS)).encode(),
}
TOKENS = (
    *(b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\\ud800", b"\\", b'"', b"'", b"\r"),
    *(b"\n", b"\t", b",", b";", b"|", b"#", b"[" * 3000, b'{"a":' * 3000, b"<a>" * 2000, b"]]>"),
    *(b"<!DOCTYPE x [<!ENTITY a 'b'>]>", b"&a;", b"NaN", b"1e999", b"-0", b"9" * 5000, b"null"),
    *(b"\x1b[31m", "\u202e".encode(), "\u2028".encode(), "e\u0301".encode(), b"\x85", b"=1+1"),
    *(b'""""', b"/*", b"<table>" * 200, b"(" * 2000, b"\\u0000", b"\x1a", b"PK\x03\x04", b"%PDF-"),
)
VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        [],
        {},
        [[]],
        {"a": {"b": [1]}},
        -1,
        1e308,
        "",
        " ",
        "\ud800",
        "\x00",
        "a" * 9000,
    ),
    *([["x", "y"], ["z"]], {"": ""}, "\u202eabc", 10**400, [None, "x"], "#", "=cmd|' /C calc'!A0"),
)
_OFFICE = "http://schemas.openxmlformats.org"
_SHEET = (
    f'<worksheet xmlns="{_OFFICE}/spreadsheetml/2006/main"><sheetData><row r="1">'
    '<c r="A1" t="inlineStr"><is><t>name</t></is></c><c r="B1" t="s"><v>0</v></c></row>'
    '<row r="2"><c r="A2" t="inlineStr"><is><t>Marrow</t></is></c><c r="B2"><v>1921</v></c></row>'
    "</sheetData></worksheet>"
)
_SLIDE = (
    f'<p:sld xmlns:p="{_OFFICE}/presentationml/2006/main" xmlns:a="{_OFFICE}/drawingml/2006/main">'
    '<p:cSld><p:spTree><p:sp><p:nvSpPr><p:nvPr><p:ph type="title"/></p:nvPr></p:nvSpPr><p:txBody>'
    "<a:p><a:r><a:t>Marrow Bridge</a:t></a:r></a:p></p:txBody></p:sp></p:spTree></p:cSld></p:sld>"
)
ZIPPED_SEEDS: dict[str, dict[str, str]] = {
    ".docx": {"word/document.xml": _DOCUMENT_XML},
    ".pptx": {
        "ppt/slides/slide1.xml": _SLIDE,
        "ppt/presentation.xml": f'<p:presentation xmlns:p="{_OFFICE}/presentationml/2006/main"/>',
    },
    ".epub": {
        "META-INF/container.xml": "<container><rootfiles>"
        '<rootfile full-path="a.opf"/></rootfiles></container>',
        "a.opf": '<package><metadata><title>Marrow</title></metadata><manifest><item id="p" '
        'href="p.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="p"/>'
        "</spine></package>",
        "p.xhtml": "<html><body><h1>Marrow</h1><p>It spans the Tarn.</p></body></html>",
    },
    ".xlsx": {
        "xl/worksheets/sheet1.xml": _SHEET,
        "xl/workbook.xml": f'<workbook xmlns="{_OFFICE}/spreadsheetml/2006/main" '
        f'xmlns:r="{_OFFICE}/officeDocument/2006/relationships"><sheets>'
        '<sheet name="One" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": "<Relationships xmlns="
        '"http://schemas.openxmlformats.org/package/2006/relationships">'
        '<Relationship Id="r1" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/sharedStrings.xml": f'<sst xmlns="{_OFFICE}/spreadsheetml/2006/main"><si><t>built</t>'
        "</si></sst>",
    },
}
"""Parts of the formats that are archives; the first is the one most often changed."""


@cache
def make_binary_seed(suffix: str) -> bytes:
    """A database file or a table of columns; empty where its library is missing."""
    if suffix == ".sqlite":
        with tempfile.TemporaryDirectory() as folder:
            db = sqlite3.connect(Path(folder) / "a.sqlite")
            db.execute("CREATE TABLE bridges (id INTEGER PRIMARY KEY, name TEXT, built REAL)")
            db.executemany("INSERT INTO bridges VALUES (?,?,?)", [(1, "Marrow", 1921), (2, "x", 3)])
            db.commit()
            db.close()
            return (Path(folder) / "a.sqlite").read_bytes()
    try:
        import pyarrow
        from pyarrow.parquet import write_table
    except ImportError:
        return b""
    file = io.BytesIO()
    write_table(pyarrow.table({"name": ["Marrow", "Mill"], "built": [1921, None]}), file)
    return file.getvalue()


def pack_zip(parts: dict[str, bytes]) -> bytes:
    """An archive of these parts."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return file.getvalue()
