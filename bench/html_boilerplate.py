"""Our HTML reader against trafilatura: how much of a page's main text is kept, and of the rest.

`python -m bench.html_boilerplate --pages DIR`. DIR holds Debian documentation packages, unpacked
(`apt-get download NAME; dpkg -x NAME_*.deb DIR/NAME`) for the names that `MARKED` begins with.
Each page's main text was marked by hand: an element, less the navigation within it. Eight more
pages are generated here, with the navigation of news, shops, forums and wikis; and further pages
of the same books, which nobody looked at, check what was chosen by the others. A line
that was kept is right if its letters are in the main text; a line of the main text is found if its
letters are in what was kept; both are weighted by letters. Needs `pip install trafilatura`.
"""

import argparse
import random
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from statistics import mean, median
from typing import Any

from bench.machine import load_library, print_result, require_path
from clew.ingest.readers import html as reader
from clew.ingest.readers.decode import decode
from clew.ingest.readers.navigation import CODE_TAGS, NAVIGATION_TAGS


@cache
def tree() -> Any:
    """lxml's HTML parser, loaded when it is needed."""
    return load_library("lxml.html", "trafilatura")


BOOKS = {
    "apache2-doc": "usr/share/doc/apache2-doc/manual/en",
    "sqlite3-doc": "usr/share/doc/sqlite3",
    "postgresql-doc-15": "usr/share/doc/postgresql-doc-15/html",
    "python-django-doc": "usr/share/doc/python-django-doc/html",
    "debian-handbook": "usr/share/doc/debian-handbook/html/en-US",
    "rust-doc": "usr/share/doc/rust-doc/html",
    "python-flask-doc": "usr/share/doc/python-flask-doc/html",
    "developers-reference": "usr/share/developers-reference",
    "debian-policy": "usr/share/doc/debian-policy/policy.html",
    "libstdc++-12-doc": "usr/share/doc/gcc-12-base/libstdc++/manual",
    "python-requests-doc": "usr/share/doc/python-requests-doc/html/user",
    "git-doc": "usr/share/doc/git-doc",
}
# Page, and where its main text is.
MARKED: tuple[tuple[str, str, str], ...] = (
    ("apache2-doc", "caching.html", '//div[@id="page-content"]'),
    ("apache2-doc", "logs.html", '//div[@id="page-content"]'),
    ("sqlite3-doc", "autoinc.html", '//div[@class="fancy"]'),
    ("sqlite3-doc", "atomiccommit.html", '//div[@class="fancy"]'),
    ("postgresql-doc-15", "app-createdb.html", '//div[@class="refentry"]'),
    ("postgresql-doc-15", "mvcc-intro.html", '//div[@class="sect1"]'),
    ("python-django-doc", "intro/tutorial01.html", '//div[@class="yui-g"]'),
    ("python-django-doc", "topics/cache.html", '//div[@class="yui-g"]'),
    ("debian-handbook", "sect.inetd.html", '//body/div[@class="section"]'),
    ("debian-handbook", "sect.remote-login.html", '//body/div[@class="section"]'),
    ("rust-doc", "book/ch15-01-box.html", "//main"),
    ("rust-doc", "reference/types/tuple.html", "//main"),
    ("rust-doc", "std/vec/struct.Vec.html", '//section[@id="main-content"]'),
    ("python-flask-doc", "patterns/caching.html", '//div[@role="main"]'),
    ("python-flask-doc", "testing.html", '//div[@role="main"]'),
    ("developers-reference", "scope.html", '//div[@role="main"]'),
    ("debian-policy", "ch-scope.html", '//div[@role="main"]'),
    ("libstdc++-12-doc", "using_exceptions.html", '//body/div[@class="section"]'),
    ("python-requests-doc", "quickstart.html", '//div[@role="main"]'),
    ("git-doc", "git-commit.html", '//div[@id="header"]|//div[@id="content"]'),
)  # fmt: skip
NAVIGATION = (
    './/div[@class="toplang" or @class="bottomlang" or @id="quickview" or @class="top"]',
    './/a[@class="headerlink"]',
    './/p[small/i[contains(., "last modified")]]',
    ".//script|.//style|.//button",
)

# --- pages made here ----------------------------------------------------------------------------

TEXTS = (
    "The old harbour of Lenn was dredged in 1871, and then the first steamers came in.",
    "Its customs house, a long brick building by Ida Kroll, still stands behind the fish market.",
    "Most of the wool that left the valley then went through the hands of three families.",
    "When the railway reached the coast in 1889 the warehouses lost half of their trade.",
    "The town council tried to buy the pier back, but the company in Basel asked too much.",
    "A flood in 1902 carried the wooden bridge away and with it the last regular ferry.",
    "Today the building holds a small museum, which is open on four days of the week from May on.",
    "Visitors find the ledgers of the Silva company there, with every bale that was ever weighed.",
)
MENU = "".join(f'<li><a href="/{n}">{n}</a></li>' for n in "Home News Sport Culture Travel".split())
COOKIES = (
    '<div id="cookie-banner" class="consent"><p>We and our 812 partners store and read cookies on '
    "your device to measure how this page is used and to show you advertising that suits you.</p>"
    "<button>Accept all</button> <a>Choose</a></div>"
)
RELATED = (
    '<div class="related-links"><h3>Read more</h3><ul>'
    + "".join(
        f'<li><a href="/r{n}">{text}</a></li>'
        for n, text in enumerate(
            (
                "Ten beaches that nobody knows",
                "Why bread is dear again this autumn",
                "The mayor speaks about the new tram line",
                "Quiz: do you know your neighbours?",
            )
        )
    )
    + "</ul></div>"
)
FOOT = (
    '<div class="site-footer"><p>© 2025 Lenn Media Ltd. All rights reserved.</p>'
    "<ul><li><a>Imprint</a></li><li><a>Privacy</a></li><li><a>Jobs</a></li></ul></div>"
)
LETTER = (
    '<div class="newsletter"><p>Never miss a story: subscribe to our weekly newsletter today.</p>'
    "<form><input name=mail><button>Subscribe</button></form></div>"
)


def _page(main: str, before: str = "", after: str = "") -> str:
    return (
        "<!doctype html><html><head><title>Page</title><script>var a = 1;</script></head><body>"
        f'{COOKIES}<div class="topbar"><ul class="menu">{MENU}</ul></div>{before}'
        f"<!--main-->{main}<!--/main-->{after}{FOOT}</body></html>"
    )


def _paragraphs(*numbers: int) -> str:
    return "".join(f"<p>{TEXTS[n]} {TEXTS[(n + 3) % 8]}</p>" for n in numbers)


MADE: Mapping[str, str] = {
    "news": _page(
        f'<div class="story"><h1>The harbour of Lenn</h1>{_paragraphs(0, 1, 2)}'
        f"<h2>The railway</h2>{_paragraphs(3, 4, 5)}</div>",
        after=RELATED + LETTER,
    ),
    "semantic": _page(
        f"<main><article><h1>The harbour of Lenn</h1>{_paragraphs(0, 1, 2, 3)}</article></main>",
        "<nav><ul><li>Sections</li></ul></nav>",
        f"<aside>{RELATED}</aside><footer>Imprint and contact</footer>",
    ),
    "shop": _page(
        '<div class="product"><h1>Brass compass</h1><p>A pocket compass of brass, 45 mm wide.</p>'
        "<table><tr><th>Weight</th><td>82 g</td></tr><tr><th>Maker</th><td>Kroll and Sons, Lenn"
        "</td></tr><tr><th>Year</th><td>1931</td></tr></table></div>",
        after='<div class="also"><h3>Customers also bought</h3><ul><li>Leather case</li>'
        "<li>Folding map of the coast</li></ul></div>",
    ),
    "forum": _page(
        '<div class="question"><h1>Who built the customs house of Lenn?</h1>'
        f"<p>{TEXTS[0]} But who drew the plans?</p></div>"
        f'<div class="answer"><p>It was Ida Kroll. {TEXTS[1]}</p></div>'
        f'<div class="answer"><p>I can only add a date to that. {TEXTS[4]}</p></div>',
        after='<div class="sidebar"><h3>Hot questions</h3><ul><li>How do I caulk a boat?</li>'
        "<li>What is a bale?</li></ul></div>",
    ),
    "wiki": _page(
        '<h1>Lenn</h1><table class="infobox"><tr><th>Country</th><td>Westmark</td></tr>'
        f"<tr><th>People</th><td>18,204</td></tr></table>{_paragraphs(0, 2)}"
        "<h2>Mayors</h2><table><tr><th>Name</th><th>From</th></tr><tr><td>Otto Brandt</td>"
        "<td>1880</td></tr><tr><td>Maria Silva</td><td>1893</td></tr></table>"
        f"<h2>Sights</h2><ul><li>{TEXTS[1]}</li><li>{TEXTS[6]}</li></ul>",
        '<div id="sidebar"><ul><li>Main page</li><li>Recent changes</li></ul></div>',
    ),
    "old tables": _page(
        f"<table width=100%><tr><td><h1>Lenn</h1>{_paragraphs(0, 1, 5)}</td></tr></table>",
        "<table><tr><td><a>Start</a><br><a>Guest book</a><br><a>Links</a></td></tr></table>",
    ),
    "short notes": _page(
        "<h1>Opening hours</h1><p>May to June: Tue to Fri, 10 to 16.</p><p>July: every day.</p>"
        "<p>Tickets: 4 marks.</p><ul><li>Children: free</li><li>Groups: 3 marks each</li></ul>",
    ),
    "no navigation": "<html><body><!--main--><h1>Lenn</h1>"
    + _paragraphs(0, 1, 2, 3)
    + "<!--/main--></body></html>",
}


def _blocks(element: Any) -> str:
    """An element's text, one line for each element that holds text of its own."""
    for one in element.iter():
        if isinstance(one.tag, str) and one.tag in _APART:
            one.tail = "\n" + (one.tail or "")
            one.text = "\n" + (one.text or "")
    return str(element.text_content())


_APART = frozenset(
    "p div section article h1 h2 h3 h4 h5 h6 li dt dd tr td th pre br table ul ol dl".split()
)


def unseen(folder: Path, most: int) -> list[tuple[str, str, str]]:
    """Other pages of the same books, marked by the rules of their neighbours, read by nobody."""
    found = []
    for package, path, where in MARKED:
        files = sorted((folder / package / BOOKS[package] / path).parent.glob("*.html"))
        named = {folder / book / BOOKS[book] / one for book, one, _ in MARKED}
        kept = [file for file in files if file not in named]
        for file in random.Random(7).sample(kept, min(2 * most, len(kept))):
            if most and (one := _marked(package, file, where)) and len(one[2]) > 400:
                found.append(one)
    return found


def marked(folder: Path) -> list[tuple[str, str, str]]:
    """Name, page and main text of every page there is."""
    found = []
    for package, path, where in MARKED:
        found.append(
            _marked(
                package, require_path(folder / package / BOOKS[package] / path, "--pages"), where
            )
        )
    for name, page in MADE.items():
        main = page.partition("<!--main-->")[2].partition("<!--/main-->")[0]
        bare = page.replace("<!--main-->", "").replace("<!--/main-->", "")
        found.append((f"made/{name}", bare, _blocks(tree().fromstring(f"<div>{main}</div>"))))
    return found


def _marked(package: str, file: Path, where: str) -> tuple[str, str, str]:
    """One page with its main text."""
    raw = file.read_bytes()
    lines = []
    for element in tree().fromstring(raw).xpath(where):
        for rule in NAVIGATION:
            for part in element.xpath(rule):
                part.drop_tree()
        lines.append(_blocks(element))
    return f"{package}/{file.stem}", decode(raw, "")[0], "\n".join(lines)


# --- the readers ----------------------------------------------------------------------------------


def by_tags(page: str) -> str:
    """Our reader, dropping navigation by tags alone."""
    found = reader.extract_page(page, CODE_TAGS | NAVIGATION_TAGS).text()
    return found or reader.extract_page(page, CODE_TAGS - {"head"}).text()


def by_names(page: str) -> str:
    """Our reader, dropping navigation by tags, roles and classes, as it does in books."""
    found = reader.read_page(page, is_book=True)
    return found.text() if found else ""


def by_all(page: str) -> str:
    """Our reader as it is: also by links, and by where a block stands."""
    found = reader.read_page(page)
    return found.text() if found else ""


def by_trafilatura(page: str) -> str:
    """With its own settings."""
    trafilatura = load_library("trafilatura")
    return trafilatura.extract(page, output_format="markdown", include_comments=True) or ""


def for_recall(page: str) -> str:
    """With its setting that favours recall."""
    trafilatura = load_library("trafilatura")
    return trafilatura.extract(page, output_format="markdown", favor_recall=True) or ""


SIDES: Mapping[str, Callable[[str], str]] = {
    "ours, tags": by_tags,
    "ours, names": by_names,
    "ours": by_all,
    "trafilatura": by_trafilatura,
    "trafilatura, recall": for_recall,
}


# --- judging ------------------------------------------------------------------------------------


def letters(text: str) -> str:
    """What counts of a line."""
    return re.sub(r"[\W_]+", "", text).lower()


def shares(kept: str, main: str) -> tuple[float, float]:
    """Precision and recall by lines, weighed by letters."""
    all_kept, all_main = letters(kept), letters(main)

    def within(text: str, whole: str) -> float:
        lines = [line for line in map(letters, text.splitlines()) if len(line) > 2]
        total = sum(map(len, lines))
        return sum(len(line) for line in lines if line in whole) / total if total else 0.0

    return within(kept, all_main), within(main, all_kept)


BOMBS = ("<div>", "<table><tr><td>", "<b>x", "</p>", "<!--", "<a ", "&", "<", "<a ='", "<title>")


def run_in_process(side: str, what: str, folder: str) -> tuple[float, float, str]:
    """CPU seconds and peak megabytes of one side on bombs or pages, in its own process."""
    command = [sys.executable, "-m", "bench.html_boilerplate", "--pages", folder]
    try:
        done = subprocess.run(
            [*command, "--side", side, "--what", what],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 60.0, 0.0, "given up"
    if done.returncode:
        return 0.0, 0.0, f"died ({done.returncode})"
    seconds, peak = done.stdout.split()[-2:]
    return float(seconds), float(peak), ""


def child(side: str, what: str, folder: Path) -> None:
    """What a process of its own does: one bomb, or every page."""
    read = SIDES[side]
    pages = [page for _, page, _ in marked(folder)] if what == "pages" else []
    todo = pages or ["Text " + BOMBS[int(what)] * 100_000]
    began = time.process_time()
    for page in todo:
        read(page)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(round(time.process_time() - began, 3), round(peak, 1))


def main() -> None:
    """Measure, print tables, and the figures as the last line."""
    parser = argparse.ArgumentParser(prog="python -m bench.html_boilerplate", description=__doc__)
    parser.add_argument("--pages", type=Path, required=True)
    parser.add_argument("--more", type=int, default=5, help="other pages of each book")
    parser.add_argument("--side", default="", help=argparse.SUPPRESS)
    parser.add_argument("--what", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side:
        child(given.side, given.what, given.pages)
        return
    load_library("trafilatura")  # exit now if it is missing
    pages = marked(given.pages)
    others = unseen(given.pages, given.more)
    figures: dict[str, Any] = {}
    rows: dict[str, list[str]] = {name: [] for name, _, _ in pages}
    for side, read in SIDES.items():
        read(pages[-1][1])  # whatever is loaded late
        got, took = [], []
        for name, page, text in pages:
            began = time.process_time()
            kept = read(page)
            took.append(time.process_time() - began)
            got.append(shares(kept, text))
            rows[name].append(f"{got[-1][0]:.2f}/{got[-1][1]:.2f}")
        real = len(MARKED)
        other = [shares(read(page), text) for _, page, text in others]
        memory = run_in_process(side, "pages", str(given.pages))
        figures[side] = {
            "precision": round(mean(p for p, _ in got), 4),
            "recall": round(mean(r for _, r in got), 4),
            "precision_real": round(mean(p for p, _ in got[:real]), 4),
            "recall_real": round(mean(r for _, r in got[:real]), 4),
            "precision_made": round(mean(p for p, _ in got[real:]), 4),
            "recall_made": round(mean(r for _, r in got[real:]), 4),
            "precision_unseen": round(mean(p for p, _ in other), 4),
            "recall_unseen": round(mean(r for _, r in other), 4),
            "under_half_unseen": sum(r < 0.5 for _, r in other),
            "worst_recall": round(min(r for _, r in got), 4),
            "ms_per_page": round(1000 * mean(took), 2),
            "ms_median": round(1000 * median(took), 2),
            "peak_mb": memory[1],
            "bombs_s": [
                run_in_process(side, str(n), str(given.pages))[::2] for n in range(len(BOMBS))
            ],
        }
    print(f"{'precision/recall':46}" + "".join(f"{side:>22}" for side in SIDES))
    for name, cells in rows.items():
        print(f"  {name:44}" + "".join(f"{cell:>22}" for cell in cells))
    for side, row in figures.items():
        print(f"  {side:24}{ {key: row[key] for key in row if key != 'bombs_s'} }")
        print(f"  {'':24}bombs {row['bombs_s']}")
    figures["versions"] = {name: version(name) for name in ("trafilatura", "lxml")}
    print_result("html_boilerplate", figures, {"pages": len(pages), "unseen": len(others)})


if __name__ == "__main__":
    main()
