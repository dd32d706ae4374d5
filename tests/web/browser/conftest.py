"""Tabs of a browser that note what a person would not see."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.configuration import PASSWORD
from tests.web.running import ROOT
from tests.web.running import Page as Served


class Noting:
    """What a page has asked for, with methods; what it has complained of, and asked of others than some."""

    def __init__(self, page: Page, *origins: str) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.strangers: list[str] = []
        self.asked: list[tuple[str, str]] = []
        own = (*(f"{origin}/" for origin in origins), "data:")

        def note(method: str, url: str) -> None:
            self.asked.append((method, url))
            if not url.startswith(own):
                self.strangers.append(url)

        page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.context.on("request", lambda asked: note(asked.method, asked.url))


class Tab(Noting):
    """A tab with a session."""

    def __init__(self, page: Page, served: Served) -> None:
        super().__init__(page, served.origin)
        self.served = served

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
def tab(
    browser: Browser, served: Served, *, scheme: str = "light", width: int = 1280, complains: bool = False
) -> Iterator[Tab]:
    """A browser profile of its own with one tab, which asks nobody else, and complains where that is said."""
    context = browser.new_context(
        color_scheme=scheme,  # type: ignore[arg-type]
        viewport={"width": width, "height": 900},
        bypass_csp=False,
    )
    try:
        found = Tab(context.new_page(), served)
        yield found
        assert found.strangers == []
        assert complains or found.complaints == []
    finally:
        context.close()


def violations_of(shown: Tab | Any, axe: str) -> list[Any]:
    """What axe finds in a tab, or a frame."""
    page = shown.page if isinstance(shown, Tab) else shown
    page.evaluate(f"() => {{ {axe} }}")
    found: list[Any] = page.evaluate(
        "async () => (await axe.run()).violations.map((one) => [one.id, one.nodes.map((node) => node.html)])"
    )
    return found
