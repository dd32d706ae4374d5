"""Tabs of a browser that note what a person would not see."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page

from tests.configuration import PASSWORD
from tests.web.running import ROOT
from tests.web.running import Page as Served


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
        self.page.wait_for_selector("header .find")

    def log_out(self) -> None:
        self.page.click(".who")
        self.page.click("#user button")

    def see(self, path: str) -> None:
        self.page.goto(f"{self.served.origin}{ROOT}{path}")
        self.page.wait_for_load_state("load")


@pytest.fixture(scope="module")
def served(page: Served) -> Served:
    """The page of the module's state."""
    return page


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
