"""A headless Chromium of the system, and tabs in it that note what a person would not see."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.configuration import PASSWORD
from tests.web.running import ROOT
from tests.web.running import Page as Served

#: Without them, it would look for its maker's servers.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class Tab:
    """A tab with a session, and all that it has complained of or asked others for."""

    def __init__(self, page: Page, served: Served) -> None:
        self.page = page
        self.served = served
        self.complaints: list[str] = []
        self.strangers: list[str] = []
        page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda asked: self._note(asked.url))

    def _note(self, url: str) -> None:
        if not url.startswith((f"{self.served.origin}/", "data:")):
            self.strangers.append(url)

    def log_in(self, name: str = "admin@internal") -> None:
        self.page.goto(f"{self.served.origin}{ROOT}/")
        self.page.fill("#name", name)
        self.page.fill("#password", PASSWORD)
        self.page.click("main button")
        self.page.wait_for_selector("header nav")

    def see(self, path: str) -> None:
        self.page.goto(f"{self.served.origin}{ROOT}{path}")
        self.page.wait_for_load_state("load")


Opened = Callable[..., Tab]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    found = shutil.which("chromium")
    assert found, "the browser tests need Debian's chromium: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        browser.close()


@contextmanager
def tab(browser: Browser, served: Served, *, scheme: str = "light", width: int = 1280) -> Iterator[Tab]:
    """A browser profile of its own with one tab."""
    context = browser.new_context(
        color_scheme=scheme,  # type: ignore[arg-type]
        viewport={"width": width, "height": 900},
        bypass_csp=False,
    )
    try:
        yield Tab(context.new_page(), served)
    finally:
        context.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core, which a package brings."""
    import axe_playwright_python

    (found,) = Path(axe_playwright_python.__file__).parent.rglob("axe.min.js")
    return found.read_text()
