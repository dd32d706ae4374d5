"""Settings for all tests: properties judge answers, not the speed of a busy machine; nothing stays behind."""

from __future__ import annotations

import gc
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.examples import EXAMPLES
from tests.kit import runs
from tests.kit.leaks import SERVED

if TYPE_CHECKING:
    from playwright.sync_api import Browser

settings.register_profile("default", deadline=None, max_examples=EXAMPLES)
settings.load_profile("default")

_FOLDERS = pytest.StashKey[frozenset[Path]]()


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell's background job passes that on to what tests start, and then end as Ctrl-C does.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.stash[_FOLDERS] = _folders_in_memory()
    runs.install(config)


def pytest_collection(session: pytest.Session) -> None:
    gc.disable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Collections of garbage pass over thousands of tests: each would take a second, amid anything."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove what units have left in memory for each other, once all workers are done."""
    if not hasattr(config, "workerinput"):
        for folder in _folders_in_memory() - config.stash[_FOLDERS]:
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder whose sockets have names of at most 107 bytes, wherever pytest keeps its own folders."""
    with TemporaryDirectory(prefix="t") as name:
        yield Path(name)


def _folders_in_memory() -> frozenset[Path]:
    return frozenset(Path("/dev/shm").glob(f"ovirt-placement-{os.getuid()}-*"))


@pytest.fixture(autouse=True)
def _inventories_end() -> Iterator[None]:
    """Have what serves a test's snapshots answer no more once the test is over."""
    before = set(SERVED)
    yield
    for served in SERVED - before:
        served.close()


# -- A headless Chromium of the system, one at a time in each process: playwright refuses a second. It ends
# with the tests of a file: while it runs, the process has a loop of asyncio, and others begin theirs.
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
