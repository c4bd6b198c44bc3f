"""What the pages of one site repeat is left out; what forms and lists repeat stays."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from clew.engine import KnowledgeBase

PAGES = {
    "Tide tables for June": "High water at the quay is at six on the longest day of the year.",
    "New pump for the harbour": "The pump was made in Bergen and lifts nine tonnes every minute.",
    "Who paints the buoys?": "Orla Keane paints all forty buoys by hand in the shed each winter.",
    "Eels return to the weir": "Some three hundred eels were counted by pupils under the old weir.",
    "Regatta moved to autumn": "Fog in May made the club move its race to the end of September.",
}
TITLES = list(PAGES)
COOKIES = "We use cookies so that your visit to the harbour site is remembered."


def markdown(title: str, body: str) -> str:
    others = [one for one in TITLES if one != title]
    links = "\n".join(f"- [{one}](/{at})" for at, one in enumerate(others[:3]))
    menu = "Home | Tides | Boats | Contact\n\n* " + "\n* ".join(others[1:])
    text = f"{menu}\n\n# {title}\n\nShare this page\n\n{body}\n\nRead more: {others[0]}\n\n"
    text += f"A second sentence closes {title.lower()} here.\n\n"
    return f"{text}## Related\n\n{links}\n\n{COOKIES}\n"


def plain(title: str, body: str) -> str:
    menu = "Harbour Post\nHome\nTides\nBoats\n\n"
    closing = f"A second sentence closes {title.lower()} here."
    return f"{menu}{title}\n\n{body}\n\n{closing}\n\nLatest posts\n\n* {TITLES[0]}\n\n{COOKIES}\n"


def html(title: str, body: str) -> str:
    items = "".join(f"<p>{one}</p>" for one in ("Home", "Tides", "Boats", "Contact"))
    return (
        f"<html><head><title>{title}</title></head><body><div>{items}</div><h1>{title}</h1>"
        f"<p>{body}</p><p>A second sentence closes {title.lower()} here.</p>"
        f"<p>Share this page</p><p>{COOKIES}</p></body></html>"
    )


def write_site(folder: Path, suffix: str, make: Callable[[str, str], str]) -> None:
    folder.mkdir()
    for at, (title, body) in enumerate(PAGES.items()):
        (folder / f"p{at}{suffix}").write_text(make(title, body))


async def read_texts(base: KnowledgeBase) -> dict[str, str]:
    sources = await base.store.sources()
    async with base.store.snapshot() as now:
        held = await now.documents([one.document for one in sources.values()])
    return {name: held[one.document].text for name, one in sources.items()}


@pytest.mark.parametrize(
    ("suffix", "make"),
    [(".md", markdown), (".txt", plain), (".html", html)],
    ids=["markdown", "text", "html"],
)
async def test_pages_of_one_folder_lose_menus_links_and_notices(
    base: KnowledgeBase, tmp_path: Path, suffix: str, make: Callable[[str, str], str]
) -> None:
    write_site(tmp_path / "site", suffix, make)
    await base.add([tmp_path / "site"])
    for name, text in (await read_texts(base)).items():
        title, body = list(PAGES.items())[int(Path(name).stem[1:])]
        assert body in text
        assert title in text
        assert f"closes {title.lower()} here" in text
        assert not [one for one in ("Home", "Boats", "Share", "Read more") if one in text]
        others = {*TITLES} - {title}
        assert not [one for one in others if one in text]
        assert (COOKIES in text) == Path(name).stem.endswith("0")  # said once, on the first page


async def test_spans_fit_what_is_left_of_a_page(base: KnowledgeBase, tmp_path: Path) -> None:
    write_site(tmp_path / "site", ".md", markdown)
    await base.add([tmp_path / "site"])
    texts = await read_texts(base)
    for body in PAGES.values():
        chunk = (await base.search(body)).evidence.chunks[0]
        assert body in chunk.text
        assert texts[chunk.doc][chunk.start : chunk.end] == chunk.text


async def test_pages_read_again_alone_or_together_are_unchanged(
    base: KnowledgeBase, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    write_site(site, ".md", markdown)
    await base.add([site])
    before = await read_texts(base)
    assert (await base.add([site])).unchanged == len(PAGES)
    assert (await base.add([site / "p2.md"])).unchanged == 1
    assert await read_texts(base) == before
    (site / "p2.md").write_text(markdown(TITLES[2], "Nobody has painted the buoys for two years."))
    assert (await base.add([site / "p2.md"])).updated == 1
    [changed] = [text for name, text in (await read_texts(base)).items() if name.endswith("p2.md")]
    assert "for two years" in changed
    assert "Home" not in changed


async def test_rows_of_one_file_are_pages_of_one_site(base: KnowledgeBase, tmp_path: Path) -> None:
    rows = [
        {"id": f"r{at}", "title": title, "text": markdown(title, body)}
        for at, (title, body) in enumerate(PAGES.items())
    ]
    (tmp_path / "site.jsonl").write_text("\n".join(map(json.dumps, rows)))
    await base.add([tmp_path / "site.jsonl"])
    assert not [one for one in (await read_texts(base)).values() if "Home |" in one]


async def test_forms_keep_the_lines_that_all_of_them_have(
    base: KnowledgeBase, tmp_path: Path
) -> None:
    folder = tmp_path / "leases"
    folder.mkdir()
    firms = "Northgate Belmont Sisko Quill Arbor".split()
    texts = {
        f"{firm}.md": f"# Lease with {firm}\n\nLessor: Harbour Hire\n\nLessee: {firm}\n\n"
        f"Status: {'ended' if at == 2 else 'active'}\n\nPayment is due within thirty days.\n\n"
        f"The lessor lets crane number {at} to {firm} for a year.\n\n## Law\n\n"
        "This agreement is governed by the laws of Norway.\n"
        for at, firm in enumerate(firms)
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    await base.add([folder])
    held = await read_texts(base)
    assert {Path(name).name: text for name, text in held.items()} == texts


async def test_a_list_of_pages_and_values_that_differ_stay(
    base: KnowledgeBase, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    write_site(site, ".md", markdown)
    for at, page in enumerate(sorted(site.iterdir())):
        status = "closed" if at == 3 else "open"
        page.write_text(page.read_text().replace("Share this page", f"Gate: {status}"))
    listed = "\n".join(f"- {title}" for title in TITLES)
    body = f"These stories won the prize of the readers this year:\n\n{listed}"
    (site / "p9.md").write_text(markdown("Stories of the year", body))
    await base.add([site])
    held = {Path(name).name: text for name, text in (await read_texts(base)).items()}
    assert listed in held["p9.md"]
    assert "Gate: open" in held["p0.md"]
    assert "Gate: closed" in held["p3.md"]


async def test_copies_of_one_page_keep_their_text(base: KnowledgeBase, tmp_path: Path) -> None:
    folder = tmp_path / "copies"
    folder.mkdir()
    text = markdown(TITLES[1], PAGES[TITLES[1]])
    for at in range(6):
        (folder / f"c{at}.md").write_text(f"{text}\nCopy {at}\n")
    await base.add([folder])
    assert all(PAGES[TITLES[1]] in one for one in (await read_texts(base)).values())
