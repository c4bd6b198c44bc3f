"""HTML: what a reader of the page reads."""

import time
from pathlib import Path

import pytest

from clew.ingest.files import read
from clew.ingest.readers.source import ReadBudget, Skipped
from clew.types import Document


async def page(tmp_path: Path, html: str | bytes) -> Document | Skipped:
    path = tmp_path / "a.html"
    path.write_bytes(html if isinstance(html, bytes) else html.encode())
    items = [item async for item in read([path])]
    assert len(items) == 1
    return items[0]


async def text(tmp_path: Path, html: str) -> str:
    found = await page(tmp_path, html)
    assert isinstance(found, Document)
    return found.text


async def test_a_page(tmp_path: Path) -> None:
    found = await page(
        tmp_path,
        """<!doctype html><html><head><title>Teutberga &amp;
        Lothair</title><style>p {}</style><script>var x = "<p>no</p>"</script></head>
        <body><nav><ul><li>Menu<nav>deep</nav></li></ul>still menu</nav>
        <h1>The <em>queen</em></h1><p>Died in&nbsp;875,
        was  <b>queen</b>.<br>Next line</p>
        <ul><li>one</li><li>two</ul>
        <table><tr><th>Name</th><th>Year</th></tr><tr><td>Ann</td><td>1900</td></tr></table>
        <pre>a
  b</pre><footer>Imprint</footer></body></html>""",
    )
    assert isinstance(found, Document)
    assert found.title == "Teutberga & Lothair"
    assert found.metadata["format"] == "html"
    expected = (
        "# The queen\n\nDied in 875, was queen.\nNext line\n\n- one\n- two\n\n"
        "| Name: Ann | Year: 1900 |\n\n```\na\n  b\n```"
    )
    assert found.text.replace("\xa0", " ") == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("plain text", "plain text"),
        ("<p>a<p>b", "a\n\nb"),
        ("<b>in</b>side <i>a</i> word", "inside a word"),
        ("1 &lt; 2 &#x4e1c; &eacute;", "1 < 2 东 é"),
        ("<head><title>T</title><body>No closed head", "No closed head"),
        ("<nav>everything in an unclosed menu", "everything in an unclosed menu"),
        ("<div>cut off <a href='x", "cut off"),
        ("e\u0301 <!-- comment --> b", "é b"),
        ("<h2>A</h2>b", "## A\n\nb"),
        ("<tr><td><p>a</p><p>b</p><td>c<tr><td>d", "| a b | c |\n| d |"),
        ("<ul><li><p>one</p></li><li>two</ul>", "- one\n\n- two"),
        ("<ul><li>one<li><img></li><li>two</ul>", "- one\n- two"),
        ("a < b <3 </> c", "a < b <3 c"),
        ("<a title='1 > 0' x=\"<p>\">link</a>", "link"),
        ('<a title="unclosed>link</a> more', "link more"),
        ("<SCRIPT>if (a</b) '<p>'</script >after", "after"),
        ("<title>T<p>text", "text"),
    ],
)
async def test_pieces(tmp_path: Path, html: str, expected: str) -> None:
    assert await text(tmp_path, html) == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ('<div role="navigation">Home</div><p>text', "text"),
        ("<div ROLE=Banner class=x role=x>Ad</div><p role=note>text", "text"),
        ("<aside>Ad</aside>text", "text"),
        ('<ul class="main-menu"><li>Home<li>News</ul>text', "text"),
        ("<div class='site footer'>© <div>2025</div></div>text", "text"),
        ('<h2>Title<a class="headerlink" href="#t">¶</a></h2>text', "## Title\n\ntext"),
        ('<div class="sidebar">a box of text</div>', "a box of text"),
        ('<div class="navigate" id="menu">text</div>', "text"),
        ('<div data-class="menu" title=\'class="menu"\'>text</div>', "text"),
        ('<body class="has-menu"><main class="nav">text', "text"),
        ('<div role="main" class="nav">text</div>', "text"),
        ('<ul><li class="menu">one<li>two</ul>', "- one\n- two"),
        ('<img class="menu"><input role="search">text', "text"),
        ('<div class="menu">everything in an unclosed menu', "everything in an unclosed menu"),
        ('<nav>Home</nav><div class="menu">kept, unclosed', "kept, unclosed"),
    ],
)
async def test_navigation_by_role_and_class_is_dropped(
    tmp_path: Path, html: str, expected: str
) -> None:
    assert await text(tmp_path, html) == expected


_OVEN = (
    "<h1>Oven X9</h1><p>It heats to 260 degrees in nine minutes.</p><p>Clean it with vinegar.</p>"
)
_SITE = (
    "<header><a href=/>Logo</a> <a href=/d>Docs</a></header><div id=sidebar><p>Subscribe to our "
    "letter today.</p><a href=1>Careers</a></div>{}<div class=also><a href=1>Ten best toasters</a> "
    "<a href=2>Why kettles whistle</a></div><div id=cookie-banner>We and 812 partners store "
    "cookies on your device to measure how this page is used and to show you what suits you.</div>"
)


@pytest.mark.parametrize("content", ["main", "article", "div"])
async def test_what_stands_around_the_content_is_dropped(tmp_path: Path, content: str) -> None:
    got = await text(tmp_path, _SITE.format(f"<{content}>{_OVEN}</{content}>"))
    assert got == "# Oven X9\n\nIt heats to 260 degrees in nine minutes.\n\nClean it with vinegar."


@pytest.mark.parametrize(
    ("html", "kept"),
    [
        ("<h2>Use</h2><p>Bake it.</p><div class=sidebar><p>A box of text.</p></div>", "A box"),
        ("<section id=footer><h2>Footer</h2><p>Set <a href=x>it</a>.</p></section><p>b", "Set it"),
        ("<h2>See also</h2><div><a href=1>Ovens</a> <a href=2>Stoves</a></div>", "Ovens Stoves"),
        ("<ul><li><a href=1>Ovens</a><li><a href=2>Stoves</a></ul>", "Ovens"),
        ("<main><p>Menu</p></main><p>A long text of the page, " + 9 * "and more ", "long text"),
        ("<header><h1>Ovens</h1></header><main><p>They are hot.</p></main>", "# Ovens\n\nThey are"),
    ],
)
async def test_what_may_be_content_stays(tmp_path: Path, html: str, kept: str) -> None:
    assert kept in await text(tmp_path, html)


CHAPTERS = "<h2 id=a>Aufbau</h2><p>Vier Pfosten.</p><h2 id=b>Pflege</h2><p>Jedes Jahr ölen.</p>"
ENTRIES = "".join(
    f"<tr><td><a href='#{key}'>{word}</a>:</td><td><a href='b.html'>{title}</a></td></tr>"
    for key, word, title in (("i1", "Ast", "Holz"), ("i2", "Birke", "Holz"), ("i3", "Öl", "Pflege"))
)


@pytest.mark.parametrize(
    "listing",
    [
        "<h2>Übersicht</h2><ul><li><a href=#a>1 Aufbau</a><ul><li><a href=#x>1.1 Xyz</a></ul>"
        "<li><a href=#b>2 Pflege</a></ul>",
        "<h2>索引</h2><div><a href=#i1>A</a> <a href=#i2>B</a> <a href=#i3>Ö</a></div>"
        f"<table><tr><th>Xyz</th></tr><tr><th>A</th></tr>{ENTRIES}</table>",
        "<h2>Xyz</h2><dl><dt><a href=c.html#q>Xyz</a><dd><a href=c.html#r>Zyx</a>"
        "<dd><a href=d.html#s>Yzx</a></dl>",
        "<div><p>Weiter: <a href=b.html rel=next>Xyz</a>, <a href=a.html rel=up>Zyx</a></div>",
    ],
)
async def test_contents_and_indexes_are_known_by_their_links(tmp_path: Path, listing: str) -> None:
    head = "<h1>Der Zaun</h1><p>Ein Zaun steht am Rand.</p>"
    plain = await text(tmp_path, f"{head}{CHAPTERS}")
    assert await text(tmp_path, f"{head}{listing}{CHAPTERS}") == plain
    assert await text(tmp_path, f"{head}{CHAPTERS}{listing}") == plain


@pytest.mark.parametrize(
    "listing",
    [
        "<p>The fence has three parts:</p>"
        "<ul><li><a href=#a>Posts</a><li><a href=#b>Rails</a><li><a href=#c>Caps</a></ul>",
        "<ul><li><a href=#a>Posts</a> carry the weight<li><a href=#b>Rails</a> hold the boards"
        "<li><a href=#c>Caps</a> keep out rain</ul>",
        "<div><p>Next: <a href=b.html rel=next>Rails</a></p><h2>Posts</h2>"
        "<dl><dt>C<dd>Set in clay.<dt>S<dd>Set in sand.</dl></div>",
        "<ul><li>Rails: <a href=t.html#oak>oak</a>, <a href=t.html#elm>elm</a>, "
        "<a href=t.html#ash>ash</a>, <a href=t.html#fir>fir</a></ul>",
        "<ul><li><a href=1.html>Oak</a><li><a href=2.html>Elm</a><li><a href=3.html>Ash</a></ul>",
    ],
)
async def test_lists_of_links_that_say_something_stay(tmp_path: Path, listing: str) -> None:
    around = "<h1>The fence</h1><p>It stands at the edge.</p>", CHAPTERS
    read_there = await text(tmp_path, listing.join(around))
    assert len(read_there.split()) > len((await text(tmp_path, "".join(around))).split()) + 2


async def test_lists_keep_their_numbers(tmp_path: Path) -> None:
    html = (
        '<ol start="3"><li>Rinse</li><li>Dry</li><li value="9">Press</li></ol><p>Or:</p>'
        '<ol type="a"><li>Hang</li><li>Fold</li></ol>'
    )
    assert await text(tmp_path, html) == "3. Rinse\n4. Dry\n9. Press\n\nOr:\n\na. Hang\nb. Fold"


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ("<p hidden>No</p><p>Yes</p>", "Yes"),
        ("<div style='color: red; display : none'><div>No</div>No</div>Yes", "Yes"),
        ("<ul><li hidden>No<li>Yes</ul><p style='visibility:hidden'>No<p>Too", "- Yes\n\nToo"),
        ("<table><tr hidden><td>No<tr><td>Yes</table>Too", "Yes\n\nToo"),
        ("<a href='#b'>B</a><div id=b style='display:none'>Yes</div>", "B\n\nYes"),
        ("<button aria-controls=c>C</button><p id=c hidden>Yes</p>", "Yes"),
        ("<div role=tabpanel hidden>Yes</div>", "Yes"),
        ("<p hidden=until-found>Yes</p><input type=hidden>Too", "Yes\n\nToo"),
    ],
)
async def test_what_nobody_sees_is_not_read(tmp_path: Path, html: str, shown: str) -> None:
    assert await text(tmp_path, html) == shown


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>A field of 3 m<sup>2</sup>, x<sup>2</sup>", "A field of 3 m^2, x^2"),
        ("<p>10<sup>-6</sup> on the 1<sup>st</sup>", "10^-6 on the 1st"),
        ("<p>The harbour<sup>1</sup> is old.<sup>2</sup>", "The harbour[1] is old.[2]"),
        (
            "<p><img alt='A man stirs the vat.'> It is hot.",
            "(image: A man stirs the vat) It is hot.",
        ),
        ("<p>a<img alt='logo'><img alt='vat-old-2.jpg'><img alt='{\\\\a x^{2} b}'>b", "ab"),
    ],
)
async def test_raised_numbers_and_descriptions_of_images(
    tmp_path: Path, html: str, expected: str
) -> None:
    assert await text(tmp_path, html) == expected


async def test_a_page_that_is_only_an_index_is_skipped(tmp_path: Path) -> None:
    found = await page(tmp_path, f"<body><table>{10 * ENTRIES}</table></body>")
    assert isinstance(found, Skipped)
    assert "index" in found.reason


async def test_the_first_heading_is_the_title_of_a_page_without_one(tmp_path: Path) -> None:
    found = await page(tmp_path, "<h1>First <i>one</i></h1><p>a</p><h1>Second</h1>")
    assert isinstance(found, Document)
    assert found.title == "First one"


async def test_a_declared_encoding_is_believed(tmp_path: Path) -> None:
    declared = '<meta charset="windows-1251"><p>Москва'.encode("cp1251")
    found = await page(tmp_path, declared)
    assert isinstance(found, Document)
    assert found.text == "Москва" and found.metadata["encoding"] == "cp1251"


@pytest.mark.parametrize("charset", ["nonsense", "hex", "idna", "undefined"])
async def test_a_wrong_declaration_is_not(tmp_path: Path, charset: str) -> None:
    raw = f'<meta charset="{charset}"><p>Café'.encode("latin-1")
    found = await page(tmp_path, raw)
    assert isinstance(found, Document) and found.text == "Café"


@pytest.mark.parametrize("html", ["<script>x</script>", "<p> </p>", "", "<head><title>x</title>"])
async def test_a_page_without_text_is_skipped(tmp_path: Path, html: str) -> None:
    assert isinstance(await page(tmp_path, html), Skipped)


@pytest.mark.parametrize(
    "unit",
    [
        "<div>",
        "<table><tr><td>",
        "<b>x",
        "</p>",
        "<!--",
        "<a ",
        "&",
        "<",
        "<a ='",
        "<title>",
        "<b class=menu>",
        "<i class='",
        "<b role=x ",
        "<b class =",
    ],
)
@pytest.mark.parametrize("count", [20_000, pytest.param(100_000, marks=pytest.mark.slow)])
async def test_bombs_are_bounded(tmp_path: Path, unit: str, count: int) -> None:
    path = tmp_path / "bomb.html"
    path.write_text("Text " + unit * count)
    began = time.process_time()
    items = [item async for item in read([path], budget=ReadBudget(seconds=5))]
    assert len(items) == 1
    assert time.process_time() - began < 10  # quadratic would take hours
