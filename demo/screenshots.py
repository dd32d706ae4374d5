"""`make screenshots`: takes the pictures of README and docs/web.md from a running page, in a real browser."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from demo.processes import ProcessFailed
from demo.stage import PASSWORD, USER, Stage
from ovirt_simulator.generate import Sizes, generate

#: The same cluster each time: large enough that a map is worth looking at, small enough that names are read.
_SEED = 4
_SIZES = Sizes(hosts=24, vms=240, groups=24, broken=0.15)
_VIEWPORT = {"width": 1440, "height": 900}
#: The machine's own browser asks nobody else.
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
_PATIENCE_MS = 300_000
_PICTURES = Path(__file__).parents[1] / "docs" / "pictures"


def main() -> int:
    browser = find_browser()
    if browser is None:
        return 1
    folder = Path(tempfile.mkdtemp(prefix="ovirt-placement-screenshots-"))
    try:
        with _served(folder) as (url, cluster), _tab(browser) as tab:
            log_in(tab, url)
            _plan(tab, f"{url}plan/{cluster}")
            _overview(tab, f"{url}cluster/{cluster}")
            _map(tab, f"{url}map/{cluster}")
    except ProcessFailed as failure:
        print(f"make screenshots: {failure}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder)
    return 0


def find_browser() -> str | None:
    """The machine's own; without one, that is said."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        print("there is no chromium: apt-get install chromium", file=sys.stderr)
    return found


@contextmanager
def _served(folder: Path) -> Iterator[tuple[str, str]]:
    """The page of a cluster whose plan is about to wait, and the cluster's id."""
    stage = Stage(folder, _SEED)
    state = generate(_SIZES, _SEED)
    with stage.processes:
        stage.start_engine(state)
        stage.configure("approve")
        stage.start("ovirt-placement", "inventory", "run")
        (url,) = re.findall(r"http://\S+", stage.start_page())
        stage.start("ovirt-enforcer", "run")
        yield url, state.clusters[0].id


@contextmanager
def _tab(browser: str) -> Iterator[Page]:
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=browser, args=FLAGS)
        page = running.new_context(viewport=_VIEWPORT, color_scheme="light", timezone_id="UTC").new_page()  # type: ignore[arg-type]
        page.set_default_timeout(_PATIENCE_MS)
        yield page
        running.close()


def log_in(tab: Page, url: str) -> None:
    """As the administrator of the demonstrations."""
    tab.goto(url)
    tab.fill("#name", USER)
    tab.fill("#password", PASSWORD)
    tab.click("main button")
    tab.wait_for_selector("header .find")


def _plan(tab: Page, url: str) -> None:
    """Of the plan that waits, once the enforcer has made it."""
    tab.goto(url)
    tab.wait_for_selector("svg.gantt")
    _take(tab, "plan")


def _overview(tab: Page, url: str) -> None:
    """Of a cluster that needs somebody."""
    tab.goto(url)
    tab.wait_for_selector(".hosts .wrong")
    _take(tab, "overview")


def _map(tab: Page, url: str) -> None:
    """Of all hosts, with one chosen."""
    tab.goto(url)
    tab.wait_for_selector("#map[data-drawn]")
    tab.focus("#map")
    tab.keyboard.press("ArrowRight")
    _take(tab, "map")


def _take(tab: Page, name: str) -> None:
    file = _PICTURES / f"page-{name}.png"
    tab.evaluate("document.activeElement.blur()")
    tab.screenshot(path=file, animations="disabled")
    print(f"{file.relative_to(Path.cwd())}: {file.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    sys.exit(main())
