"""A person's visit to the portal, in a browser profile of its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, FrameLocator, Page

from tests.web.portal.serving import Portal, root_of, start_address

#: Of each file whose tests visit the portal: one at a time.
MARKS = [
    pytest.mark.nightly,
    pytest.mark.xdist_group("portal"),
    pytest.mark.skipif(shutil.which("apache2") is None, reason="there is no apache2"),
]
LAYOUTS = ["apache", "port"]
#: A VM as the portal hands it to plug-ins.
DB_1 = {"id": "a", "name": "db-1", "status": "Up", "managed": True}


class Visit:
    """A person's browser in the portal, and all that it has complained of or asked others for."""

    def __init__(self, page: Page, served: Portal, layout: str) -> None:
        self.page = page
        self.served = served
        self.layout = layout
        self.complaints: list[str] = []
        self.strangers: list[str] = []
        self.asked: list[tuple[str, str]] = []
        page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.context.on("request", lambda asked: self._note(asked.method, asked.url))

    def _note(self, method: str, url: str) -> None:
        self.asked.append((method, url))
        if not url.startswith((f"{self.served.origin}/", f"{self.served.page(self.layout)}/", "data:")):
            self.strangers.append(url)

    def enter(self, *more: str, place: str = "") -> None:
        self.page.goto(start_address(self.served, self.layout, *more, place=place))
        self.page.wait_for_function("plugins.get('ovirt-placement').state === 'IN_USE'")

    def reveal(self, kind: str, name: str) -> None:
        """Select one thing in its list, and show its tab."""
        self.page.click(f"#menu >> text={kind}")
        self.page.click(f"#rows button:text-is('{name}')")
        self.page.click("#tabs >> text=Placement")

    def select(self, kind: str, items: list[Any], *, as_arguments: bool = False) -> None:
        self.page.evaluate("([kind, items, how]) => select(kind, items, how)", [kind, items, as_arguments])

    @property
    def outer(self) -> FrameLocator:
        return self.page.frame_locator("#content iframe")

    @property
    def inner(self) -> FrameLocator:
        return self.outer.frame_locator("iframe")

    @property
    def in_dialog(self) -> FrameLocator:
        return self.page.frame_locator("#dialog iframe").frame_locator("iframe")

    @property
    def log_ins(self) -> int:
        return self.asked.count(("POST", f"{root_of(self.served, self.layout)}/log-in/token"))

    def state(self) -> str:
        return str(self.page.evaluate("plugins.get('ovirt-placement').state"))


@contextmanager
def visit(browser: Browser, served: Portal, layout: str = "apache") -> Iterator[Visit]:
    """A browser profile of its own, which takes the certificate of the test."""
    served.user = "admin@internal"
    context = browser.new_context(ignore_https_errors=True)
    try:
        yield Visit(context.new_page(), served, layout)
    finally:
        context.close()
