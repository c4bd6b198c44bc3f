"""A browser on the page of a server, and a model that writes slowly, for the tests of the page."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from serving import Listening

from clew.config import ModelSettings
from clew.serve.core.server import Server
from clew.testing.stub_endpoint import StubEndpoint

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
QUESTION = "Who designed the Marrow Bridge?"
SENTENCES = ("Ilse Brandvik designed the Marrow Bridge.", "She was an engineer from the valley.")


@contextmanager
def browsing(server: Server, bypass_csp: bool = False) -> Iterator[tuple[Any, str, list[str]]]:
    """A page of a browser, the server's address, and the errors on the console."""
    with Listening(server) as url, opened_browser() as browser:
        context = browser.new_context(
            viewport={"width": 1280, "height": 800},
            bypass_csp=bypass_csp,
            permissions=["clipboard-read", "clipboard-write"],
        )
        page = context.new_page()
        page.set_default_timeout(90_000)  # a busy machine is slow, and that is no fault
        errors: list[str] = []
        page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        yield page, url, errors


@contextmanager
def opened_browser(*more: str) -> Iterator[Any]:
    """Debian's Chromium, with these options more, or a skipped test."""
    sync_api = pytest.importorskip("playwright.sync_api")
    if not CHROMIUM.exists():
        pytest.skip("Chromium is not installed")
    with sync_api.sync_playwright() as playwright:
        options = [*ARGUMENTS, *more]
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=options)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def writing_model(pace: float) -> Iterator[ModelSettings]:
    """The settings of a model that writes an answer piece by piece."""
    reply = json.dumps({"enough": True, "answer": " ".join(f"{one} [1]" for one in SENTENCES)})
    stub = StubEndpoint(lambda _: reply, pace=pace)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(stub.start(), loop).result()
    given = {"base_url": stub.base_url, "answer": "stub", "shape_by": "json", "tries": 1}
    try:
        yield ModelSettings.model_validate(given)
    finally:
        asyncio.run_coroutine_threadsafe(stub.stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
