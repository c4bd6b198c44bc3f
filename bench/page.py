"""The page of `clew serve` in Chromium: size, time to use, first token shown, panning a graph.

`python -m bench.page [--nodes 10000] [--width 1280] [--seconds 4] [--only size,start,token,pan]`.
Needs playwright and Debian's chromium. WebGL is drawn in software (SwiftShader), as machines
without a graphics card do. Frames are those in which the page could draw while the pointer drags:
`frames_per_second` counts them, `longest_ms` is the longest pause between two. The graph is made
up; the rest is a small knowledge base with a stub in place of a model.
"""

import argparse
import asyncio
import json
import math
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import Any

from bench.machine import load_library, print_result
from clew import sync
from clew.config import ModelSettings, ServeSettings, Settings
from clew.serve.core.folders import Folders
from clew.serve.core.server import Server
from clew.serve.http_server import StoppableServer
from clew.serve.page_files import load_page_files
from clew.serve.run import bind
from clew.testing.hashed_kb import open_hashed
from clew.testing.stub_endpoint import StubEndpoint

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
PARTS = ("size", "start", "token", "pan")
ROUNDS = 5
PACE = 0.2  # seconds between two pieces of the model's reply
SAID = "Everything that is known about it is in the passages."
REPLY = json.dumps({"enough": True, "answer": " ".join(f"{SAID} {n}. [1]" for n in range(4))})
PIECE = 20  # characters of the reply in one event of the stub
WATCH_START = """
new MutationObserver((_, watch) => {
  if (!document.querySelector("main textarea")) return;
  window.usable = performance.now();
  watch.disconnect();
}).observe(document, { childList: true, subtree: true });
"""
WATCH_TOKEN = """(word) => {
  const look = () => {
    const text = document.querySelector(".answer")?.textContent ?? "";
    if (!text.includes(word)) return requestAnimationFrame(look);
    window.shown = Date.now();
  };
  requestAnimationFrame(look);
}"""
COUNT_FRAMES = """() => {
  window.frames_at = [];
  const tick = () => { window.frames_at.push(performance.now()); requestAnimationFrame(tick); };
  requestAnimationFrame(tick);
}"""


@contextmanager
def stub_model() -> Iterator[StubEndpoint]:
    """A model that writes the same reply, piece by piece, in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    stub = StubEndpoint(lambda _: REPLY, pace=PACE)
    asyncio.run_coroutine_threadsafe(stub.start(), loop).result()
    try:
        yield stub
    finally:
        asyncio.run_coroutine_threadsafe(stub.stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


@contextmanager
def serving(model_url: str) -> Iterator[str]:
    """The address of a server over the demo's corpus."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)

        async def build() -> None:
            base = await open_hashed(Settings(kb=root / "demo"), True)
            await base.add([Path(str(files("clew") / "demo_corpus"))])
            await base.close()

        sync.wait(build())
        given = {"base_url": model_url, "answer": "stub", "shape_by": "json", "tries": 1}
        models = ModelSettings.model_validate(given)
        settings = Settings(kb=root, models=models, serve=ServeSettings(requests_per_minute=1e6))
        running = StoppableServer(Server(settings, Folders(root), open_hashed))
        bound = bind("127.0.0.1", 0)
        thread = threading.Thread(target=lambda: running.run([bound]))
        thread.start()
        while not running.started:
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        finally:
            running.should_exit = True
            thread.join()


def measure_size() -> dict[str, Any]:
    """Return the kilobytes, compressed, of the first view and of each part loaded later."""
    sizes = {name: len(file.compressed) / 1000 for name, file in load_page_files().items()}
    first = {n: s for n, s in sizes.items() if n.startswith(("index", "page/index"))}
    scripts = sum(size for name, size in first.items() if name.endswith(".js"))
    return {
        "first_view_kb": round(sum(first.values()), 1),
        "first_view_scripts_kb": round(scripts, 1),
        "later_kb": {n.split("-")[0]: round(s, 1) for n, s in sizes.items() if n not in first},
    }


def measure_start(browser: Any, url: str) -> dict[str, Any]:
    """Return the milliseconds from the navigation until a question can be typed; no cache."""
    took = []
    for _ in range(ROUNDS):
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        page = context.new_page()
        page.add_init_script(WATCH_START)
        page.goto(url)
        page.locator("main textarea").wait_for()
        took.append(page.evaluate("window.usable"))
        context.close()
    return {"usable_ms": round(median(took)), "worst_ms": round(max(took))}


def measure_token(browser: Any, url: str, stub: StubEndpoint) -> dict[str, Any]:
    """Return the milliseconds from the model's first word until it is on the screen."""
    took = []
    for number in range(ROUNDS):
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(url)
        page.get_by_label("Recipe").first.select_option("reader")
        page.fill("textarea", f"Who designed bridge number {number}?")
        page.evaluate(WATCH_TOKEN, SAID.split()[0])
        page.keyboard.press("Enter")
        page.locator(".answer", has_text=SAID.split()[0]).wait_for()
        event = 1 + (REPLY.index(SAID) + len(SAID.split()[0])) // PIECE  # after a comment
        took.append(page.evaluate("window.shown") - 1000 * stub.stats.paced[event])
        page.close()
    return {"first_token_ms": round(median(took)), "worst_ms": round(max(took))}


def make_overview(count: int, groups: int = 40) -> dict[str, Any]:
    """A made-up graph of communities, some nodes with many facts."""
    rng = random.Random(1)
    nodes = [
        {
            "key": n + 1,
            "name": f"Entity number {n}",
            "type": rng.choice(["person", "place", "work", "event"]),
            "facts": max(1, 60 // (n % 400 + 1)),
            "community": n % groups,
        }
        for n in range(count)
    ]
    edges = set()
    for n in range(groups, count):
        for _ in range(2):
            other = rng.randrange(n)
            if rng.random() < 0.9:
                other -= (other - n) % groups
            if 0 <= other != n:
                edges.add((min(n, other), max(n, other)))
    communities = [{"name": f"C{g}", "summary": "", "size": count // groups} for g in range(groups)]
    links = [[one, other, 1] for one, other in sorted(edges)]
    return {"all": count, "nodes": nodes, "edges": links, "communities": communities}


def measure_pan(browser: Any, url: str, nodes: int, width: int, seconds: float) -> dict[str, Any]:
    """Return frames a second while dragging, with all in view and then enlarged."""
    size = {"width": width, "height": width * 5 // 8}
    page = browser.new_page(viewport=size)
    made = make_overview(nodes)
    page.route("**/overview*", lambda route: route.fulfill(json=made))
    page.goto(f"{url}/#/graph")
    began = time.perf_counter()
    page.locator(".canvas[data-settled]").wait_for(timeout=300_000)
    settled = time.perf_counter() - began
    time.sleep(3)
    whole = _drag(page, size, seconds)
    for _ in range(3):
        page.get_by_label("Zoom in").click()
        time.sleep(1.5)
    enlarged = _drag(page, size, seconds)
    page.close()
    shown = {"settled_s": round(settled, 1), "edges": len(made["edges"])}
    return {**shown, "in_view": whole, "enlarged": enlarged}


def _drag(page: Any, size: dict[str, int], seconds: float) -> dict[str, Any]:
    x, y = size["width"] * 0.45, size["height"] * 0.5
    page.mouse.move(x, y)
    page.mouse.down()
    page.evaluate(COUNT_FRAMES)
    began, moves = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        moves += 1
        page.mouse.move(x + 150 * math.sin(moves / 15), y + 80 * math.sin(moves / 11))
        time.sleep(0.008)
    frames = page.evaluate("window.frames_at")
    page.mouse.up()
    time.sleep(2)
    gaps = [after - before for before, after in zip(frames, frames[1:], strict=False)]
    rate = 1000 * len(gaps) / max(1.0, sum(gaps))
    return {"frames_per_second": round(rate, 1), "longest_ms": round(max(gaps)), "moves": moves}


def main() -> None:
    """Measure what is asked for and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--only", default=",".join(PARTS))
    given = parser.parse_args()
    parts = given.only.split(",")
    figures: dict[str, Any] = {}
    if "size" in parts:
        figures["size"] = measure_size()
    driver = load_library("playwright.sync_api", "playwright")
    with stub_model() as stub, serving(stub.base_url) as url, driver.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        if "start" in parts:
            figures["start"] = measure_start(browser, url)
        if "token" in parts:
            figures["token"] = measure_token(browser, url, stub)
        if "pan" in parts:
            figures["pan"] = measure_pan(browser, url, given.nodes, given.width, given.seconds)
        browser.close()
    print_result("page", figures, {"nodes": given.nodes, "width": given.width})


if __name__ == "__main__":
    main()
