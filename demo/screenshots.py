"""`make screenshots`: takes the pictures of README and docs/web.md from a running page, in a real browser."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from demo.stage import PASSWORD, USER, Stage, demonstrate
from ovirt_simulator.generate import Sizes, generate

#: The same cluster each time: large enough that a map is worth looking at, small enough that names are read.
_SEED = 4
_SIZES = Sizes(hosts=24, vms=240, groups=24, broken=0.15)
_VIEWPORT = {"width": 1440, "height": 900}
#: The machine's own browser asks nobody else.
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
_PATIENCE_MS = 300_000
_PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
#: By picture its view of the cluster, and what that shows once it is ready: first the plan that waits.
_VIEWS = {
    "plan": ("plan", "svg.gantt"),
    "overview": ("cluster", ".hosts .wrong"),
    "map": ("map", "#map[data-drawn]"),
}


def main() -> int:
    browser = find_browser()
    if browser is None:
        return 1

    def show(folder: Path) -> None:
        with _served(folder) as (url, cluster), _tab(browser) as tab:
            log_in(tab, url)
            for name, (view, sign) in _VIEWS.items():
                _take_picture(tab, f"{url}{view}/{cluster}", name, sign)

    return demonstrate("make screenshots", show)


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


def _take_picture(tab: Page, url: str, name: str, sign: str) -> None:
    """The picture of a view, once it shows what is to be seen."""
    tab.goto(url)
    tab.wait_for_selector(sign)
    if name == "map":  # with a host chosen
        tab.focus("#map")
        tab.keyboard.press("ArrowRight")
    file = _PICTURES / f"page-{name}.png"
    tab.evaluate("document.activeElement.blur()")
    tab.screenshot(path=file, animations="disabled")
    print(f"{file.relative_to(Path.cwd())}: {file.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    sys.exit(main())
