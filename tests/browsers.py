"""A headless Chromium of the system, one at a time in each process: playwright refuses a second.

It ends with the tests of a file: while it runs, the process has a loop of asyncio, and others begin theirs.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

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


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    found = shutil.which("chromium")
    assert found, "the browser tests need Debian's chromium: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core, which a package brings."""
    import axe_playwright_python

    (found,) = Path(axe_playwright_python.__file__).parent.rglob("axe.min.js")
    return found.read_text()
