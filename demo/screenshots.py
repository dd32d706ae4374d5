"""`make screenshots`: takes the pictures of README and docs/web.md from a running page, in a real browser."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, Page, sync_playwright

from demo.processes import ProcessFailed
from demo.stage import PASSWORD, TIME_SCALE, USER, Stage, demonstrate
from ovirt_placement.model import Snapshot
from ovirt_simulator.generate import Sizes, generate

#: The same cluster each time: large enough that a map is worth looking at, small enough that names are read.
_SEED = 4
_SIZES = Sizes(hosts=24, vms=240, groups=24, broken=0.15)
#: The machine's own browser asks nobody else.
_FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
_PATIENCE_MS = 300_000
_PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
#: By picture its view of the cluster, and what that shows once it is ready: first the plan that waits.
_VIEWS = {
    "plan": ("plan", "svg.gantt"),
    "overview": ("cluster", ".hosts .wrong"),
    "map": ("map", "#map[data-drawn]"),
}


class Shown(NamedTuple):
    """A state that runs, and a tab in which its administrator is logged in."""

    stage: Stage
    snapshot: Snapshot
    tab: Page
    url: str

    @property
    def cluster(self) -> str:
        return self.snapshot.clusters[0].id


def main() -> int:
    def show(folder: Path) -> None:
        with browser() as running, shown(running, folder, generate(_SIZES, _SEED)) as one:
            for name, (view, sign) in _VIEWS.items():
                _take_picture(one.tab, f"{one.url}{view}/{one.cluster}", name, sign)

    return demonstrate("make screenshots", show)


@contextmanager
def browser() -> Iterator[Browser]:
    """The machine's own; raises `ProcessFailed` without one."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        raise ProcessFailed("there is no chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=found, args=_FLAGS)
        yield running
        running.close()


@contextmanager
def shown(
    running: Browser, folder: Path, state: Snapshot, *, mode: str = "approve", time_scale: float = TIME_SCALE
) -> Iterator[Shown]:
    """A state with its page, whose processes keep what they have in the folder."""
    stage = Stage(folder, _SEED)
    with stage.processes:
        url = stage.start_all(state, mode, time_scale=time_scale)
        context = running.new_context(
            viewport={"width": 1440, "height": 900}, color_scheme="light", timezone_id="UTC"
        )
        tab = context.new_page()
        tab.set_default_timeout(_PATIENCE_MS)
        tab.goto(url)
        tab.fill("#name", USER)
        tab.fill("#password", PASSWORD)
        tab.click("main button")
        tab.wait_for_selector("header .find")
        yield Shown(stage, state, tab, url)
        context.close()


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
