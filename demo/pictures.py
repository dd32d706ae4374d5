"""`make screenshots`: takes the pictures of README and docs/web.md, from the page of a simulated cluster."""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from demo.stage import PASSWORD, USER, ProcessFailed, Stage, demonstrate
from ovirt_simulator.generate import Sizes, generate

_SEED = 4
#: Large enough that a map is worth looking at, small enough that names are read.
_SIZES = Sizes(hosts=24, vms=240, groups=24, broken=0.15)
_PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
_WIDTH, _HEIGHT = 1440, 900
_FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
_PATIENCE_MS = 300_000
#: By picture, with what a view shows once it is ready: first the plan that waits.
_VIEWS = {
    "plan": ("plan", "svg.gantt"),
    "overview": ("cluster", ".hosts .wrong"),
    "map": ("map", "#map[data-drawn]"),
}


def main() -> int:
    return demonstrate("make screenshots", _take_all)


def _take_all(folder: Path) -> None:
    """By the machine's own browser; raises `ProcessFailed` without one."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        raise ProcessFailed("there is no chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=_FLAGS)
        _take_pictures(browser, Stage(folder, _SEED))
        browser.close()


def _take_pictures(browser: Browser, stage: Stage) -> None:
    drawn = generate(_SIZES, _SEED)
    with stage.processes:
        url = stage.start_all(drawn, "approve")
        context = browser.new_context(
            viewport={"width": _WIDTH, "height": _HEIGHT}, color_scheme="light", timezone_id="UTC"
        )
        tab = context.new_page()
        tab.set_default_timeout(_PATIENCE_MS)
        tab.goto(url)
        tab.fill("#name", USER)
        tab.fill("#password", PASSWORD)
        tab.click("main button")
        tab.wait_for_selector("header .find")
        for name, (view, sign) in _VIEWS.items():
            tab.goto(f"{url}{view}/{drawn.clusters[0].id}")
            tab.wait_for_selector(sign)
            if name == "map":  # with a host chosen
                tab.focus("#map")
                tab.keyboard.press("ArrowRight")
            file = _PICTURES / f"page-{name}.png"
            tab.evaluate("document.activeElement.blur()")
            tab.screenshot(path=file, animations="disabled")
            print(f"{file.relative_to(Path.cwd())}: {file.stat().st_size // 1024} KiB")
        context.close()


if __name__ == "__main__":
    sys.exit(main())
