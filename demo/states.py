"""`python -m demo.states`: pictures of the page in states that need an administrator, and of every view.

Each state is a cluster in the simulator. What a first screen must answer in it is: what is wrong, what will
happen next, who must do what, whether a failed host would be survived, and why a VM is down. `make
screenshots` takes those of README and docs/web.md so.
"""

import argparse
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace
from playwright.sync_api import Browser, Page, sync_playwright

from demo.stage import PASSWORD, TIME_SCALE, USER, ProcessFailed, Stage, demonstrate
from ovirt_placement.model import Snapshot
from ovirt_simulator.core.state import required_mb
from ovirt_simulator.generate import Sizes, generate

_SMALL = Sizes(hosts=12, vms=120, groups=12, broken=0.0)
_VIOLATED = Sizes(hosts=12, vms=120, groups=12, broken=0.25)
_LARGE = Sizes(hosts=500, vms=10_000, groups=500, broken=0.0)
_TINY = Sizes(hosts=3, vms=18, groups=3, broken=0.4, down=0.2)
#: Large enough that a map is worth looking at, small enough that names are read.
_OF_README = Sizes(hosts=24, vms=240, groups=24, broken=0.15)
_PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
_WIDTH, _HEIGHT = 1440, 900
#: The machine's own browser.
_FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
_PATIENCE_MS = 300_000
#: Enough for the enforcer to plan, and for statistics to be read.
_SETTLING_MS = 6_000

#: What is wrong with how a view is laid out: a window that scrolls sideways, a table that does, text that is
#: cut, and text over text.
_FAULTS = """() => {
  const found = []
  const root = document.documentElement
  if (root.scrollWidth > root.clientWidth) found.push(`the window scrolls sideways: ${root.scrollWidth}`)
  for (const one of document.querySelectorAll('main *, header *, nav *')) {
    const style = getComputedStyle(one)
    if (one.closest('.unseen, [hidden], [popover]:not(:popover-open), svg') || !one.offsetParent) continue
    const name = `${one.tagName.toLowerCase()}.${one.className} "${one.textContent.trim().slice(0, 40)}"`
    if (one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 1 && style.display !== 'inline') {
      if (style.overflowX !== 'visible') found.push(`cut or scrolled: ${name}`)
      else if (!one.querySelector(':scope > *')) found.push(`wider than its place: ${name}`)
    }
    const unseen = [...one.querySelectorAll('.unseen')].map((each) => each.textContent).join('').length
    if (/^(TH|TD)$/.test(one.tagName) && one.textContent.trim().length - unseen > 24 && one.clientWidth < 80)
      found.push(`narrow column: ${name}`)
  }
  return [...new Set(found)]
}"""


class Shown(NamedTuple):
    """A state that runs, and a tab in which its administrator is logged in."""

    stage: Stage
    snapshot: Snapshot
    tab: Page
    url: str

    @property
    def names(self) -> dict[str, str]:
        """What addresses of views name."""
        vms = self.snapshot.vms
        needy = [vm for vm in vms if vm.crashed or vm.status == "unknown"]
        down = [vm for vm in vms if vm.host is None]
        return {
            "here": self.snapshot.clusters[0].id,
            "host": self.snapshot.hosts[0].id,
            "group": self.snapshot.affinity_groups[0].id,
            "vm": next(vm.id for vm in vms if vm.host),
            "down": (*down, vms[-1])[0].id,
            "needy": (*needy, *down, vms[-1])[0].id,
        }


#: Views that answer, as addresses below the page's.
_OVERVIEW = ("", "cluster/{here}")
_PLAN = (*_OVERVIEW, "plan/{here}")
_DOWN = (*_OVERVIEW, "vm/{needy}")
#: One of each kind.
_EVERY_VIEW = (
    *_PLAN, "map/{here}", "map/{here}/table", "cluster/{here}/rules", "plan/{here}/now",
    "cluster/{here}/hosts", "ha/{here}", "ha/{here}?host={host}", "maintenance/{here}",
    "maintenance/{here}?host={host}", "cluster/{here}/history", "vms", "hosts", "rules", "keys",
    "keys/set?level=node&on={host}&name=SSD", "keys/hosts?cluster={here}&name=SSD", "history", "health",
    "vm/{vm}", "vm/{down}", "vm/{vm}/keys", "vm/{vm}/then", "host/{host}", "group/{group}",
    "group/{group}/edit", "cluster/{here}/new-group", "search?q=00", "cluster/{here}/rule",
)  # fmt: skip
#: Of README, by picture, with what a view shows once it is ready: first the plan that waits.
_VIEWS_OF_README = {
    "plan": ("plan/{here}", "svg.gantt"),
    "overview": ("cluster/{here}", ".hosts .wrong"),
    "map": ("map/{here}", "#map[data-drawn]"),
}


@dataclass(frozen=True)
class State:
    """A state, and the views that answer for it."""

    draw: Callable[[], Snapshot]
    views: Sequence[str]
    mode: str = "approve"
    #: What happens once all runs.
    then: Callable[[Shown], None] = lambda shown: None
    #: What the first view shows in the end.
    sign: str = "h1"
    time_scale: float = TIME_SCALE


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m demo.states", description=__doc__)
    parser.add_argument("states", nargs="*", metavar="STATE", help=f"of {', '.join(_STATES)}; else all")
    parser.add_argument("--into", type=Path, default=Path("pictures"), help="the folder of the pictures")
    parser.add_argument("--every-view", action="store_true", help="every view, not only those that answer")
    parser.add_argument("--width", type=int, nargs="+", default=[_WIDTH])
    parser.add_argument("--scheme", choices=("light", "dark"), nargs="+", default=["light"])
    parser.add_argument("--readme", action="store_true", help="the pictures of README and docs/web.md")
    arguments = parser.parse_args()

    def show(folder: Path) -> None:
        with _browser() as running:
            if arguments.readme:
                _take_pictures_of_readme(running, folder)
                return
            arguments.into.mkdir(parents=True, exist_ok=True)
            for name in arguments.states or list(_STATES):
                (folder / name).mkdir()
                _take_pictures(running, folder / name, arguments)

    return demonstrate("make screenshots" if arguments.readme else "demo.states", show)


@contextmanager
def _browser() -> Iterator[Browser]:
    """The machine's own; raises `ProcessFailed` without one."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        raise ProcessFailed("there is no chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=found, args=_FLAGS)
        yield running
        running.close()


@contextmanager
def _shown(running: Browser, folder: Path, state: State) -> Iterator[Shown]:
    """A state with its page, whose processes keep what they have in the folder."""
    stage, drawn = Stage(folder, seed=4), state.draw()
    with stage.processes:
        url = stage.start_all(drawn, state.mode, time_scale=state.time_scale)
        context = running.new_context(
            viewport={"width": _WIDTH, "height": _HEIGHT}, color_scheme="light", timezone_id="UTC"
        )
        tab = context.new_page()
        tab.set_default_timeout(_PATIENCE_MS)
        tab.goto(url)
        tab.fill("#name", USER)
        tab.fill("#password", PASSWORD)
        tab.click("main button")
        tab.wait_for_selector("header .find")
        yield Shown(stage, drawn, tab, url)
        context.close()


def _take_pictures_of_readme(running: Browser, folder: Path) -> None:
    with _shown(running, folder, State(partial(generate, _OF_README, 4), ())) as one:
        for name, (view, sign) in _VIEWS_OF_README.items():
            one.tab.goto(f"{one.url}{view.format_map(one.names)}")
            one.tab.wait_for_selector(sign)
            if name == "map":  # with a host chosen
                one.tab.focus("#map")
                one.tab.keyboard.press("ArrowRight")
            file = _PICTURES / f"page-{name}.png"
            one.tab.evaluate("document.activeElement.blur()")
            one.tab.screenshot(path=file, animations="disabled")
            print(f"{file.relative_to(Path.cwd())}: {file.stat().st_size // 1024} KiB")


def _take_pictures(running: Browser, folder: Path, arguments: argparse.Namespace) -> None:
    """Of the state that the folder is named for."""
    name, state = folder.name, _STATES[folder.name]
    with _shown(running, folder, state) as one:
        one.tab.wait_for_timeout(_SETTLING_MS)
        state.then(one)
        one.tab.goto(f"{one.url}cluster/{one.names['here']}")
        one.tab.wait_for_selector(state.sign)
        for view in _EVERY_VIEW if arguments.every_view else state.views:
            one.tab.goto(f"{one.url}{view.format_map(one.names)}")
            one.tab.wait_for_load_state("load")
            if view.startswith("map/"):
                one.tab.wait_for_selector("#map[data-drawn], table")
            words = re.sub("[{}]", "", view.replace("{here}", "").strip("/").replace("/", "-")) or "first"
            for width, scheme in product(arguments.width, arguments.scheme):
                one.tab.set_viewport_size({"width": width, "height": _HEIGHT})
                one.tab.emulate_media(color_scheme=scheme)
                file = arguments.into / f"{name}-{words[:60]}-{width}-{scheme}.png"
                one.tab.screenshot(path=file, animations="disabled")
                print(file, *one.tab.evaluate(_FAULTS), sep="\n    ", flush=True)


# -- What is drawn.
def _crashed(sizes: Sizes = _SMALL) -> Snapshot:
    """A host does not respond; the engine knows nothing of its VMs."""
    drawn = generate(sizes, 3)
    lost = drawn.hosts[4]
    hosts = (replace(one, status="non_responsive") if one is lost else one for one in drawn.hosts)
    vms = (replace(vm, status="unknown") if vm.host == lost.id else vm for vm in drawn.vms)
    return replace(drawn, hosts=tuple(hosts), vms=tuple(vms))


def _unknown() -> Snapshot:
    """Some VMs do not answer on a host that is up, and a highly available one is down since it crashed."""
    drawn = generate(_SMALL, 4)
    vms = [replace(vm, status="unknown") if vm.host == drawn.hosts[2].id else vm for vm in drawn.vms]
    at = next(at for at, vm in enumerate(vms) if vm.ha and vm.host == drawn.hosts[5].id)
    unmeasured = {"usage_cpu_percent": None, "usage_mem_percent": None}
    vms[at] = replace(vms[at], status="down", host=None, crashed=True, **unmeasured)
    return replace(drawn, vms=tuple(vms))


def _full() -> Snapshot:
    """No host has room for another VM."""
    drawn = generate(_SMALL, 5)
    used = Counter[str | None]()
    for vm in drawn.vms:
        used[vm.host] += required_mb(vm)
    hosts = (
        replace(one, memory_mb=used[one.id] + 900, free_mb=400, memory_free_mb=2000) for one in drawn.hosts
    )
    return replace(drawn, hosts=tuple(hosts))


# -- What happens then.
def _command(*words: str) -> Callable[[Shown], None]:
    def run(shown: Shown) -> None:
        done = shown.stage.processes.run(words)
        if done.returncode:
            raise ProcessFailed(f"{' '.join(words)}: {done.stdout}{done.stderr}")
        shown.tab.wait_for_timeout(_SETTLING_MS)

    return run


def _approve(shown: Shown) -> None:
    """By the button; its migrations run when the picture is taken."""
    shown.tab.goto(f"{shown.url}plan/{shown.names['here']}")
    shown.tab.click("text=/^Approve /")
    shown.tab.wait_for_timeout(_SETTLING_MS)


def _refuse(shown: Shown) -> None:
    """By the button, with a reason."""
    shown.tab.goto(f"{shown.url}plan/{shown.names['here']}")
    shown.tab.click("text=Refuse…")
    shown.tab.fill("#reason", "backup tonight")
    shown.tab.click(".dialog:popover-open form button")
    shown.tab.wait_for_timeout(_SETTLING_MS)


def _lose_engine(shown: Shown) -> None:
    shown.stage.processes.stop("ovirt-simulator")
    shown.tab.wait_for_selector("#away:not([hidden])")


_PAUSE = ("ovirt-enforcer", "pause", "--hours", "2", "--reason", "storage upgrade")
_MAINTENANCE = ("ovirt-enforcer", "maintenance", "run", "--cluster", "cluster-1", "--work", "nothing")
_SOFT = Sizes(hosts=12, vms=120, groups=12, broken=0.3, soft=0.5)
_SEVERAL = replace(_LARGE, hosts=60, vms=900, groups=60, broken=0.05)
_DRAWN = ".heat, .hosts"

_STATES: dict[str, State] = {
    "crashed-host": State(_crashed, _DOWN, time_scale=0.01),
    "unknown-vms": State(_unknown, _DOWN, time_scale=0.01),
    "waiting-plan": State(partial(generate, _VIOLATED, 6), _PLAN),
    "approved-plan": State(partial(generate, _VIOLATED, 6), _PLAN, then=_approve, time_scale=0.2),
    "refused-plan": State(partial(generate, _VIOLATED, 7), _PLAN, then=_refuse),
    "full-cluster": State(_full, _DOWN, mode="enforce"),
    "violated-groups": State(partial(generate, _SOFT, 8), _OVERVIEW, mode="observe"),
    "maintenance": State(
        partial(generate, _SMALL, 9),
        (*_OVERVIEW, "maintenance/{here}"),
        mode="enforce",
        then=_command(*_MAINTENANCE),
        time_scale=1,
    ),
    "paused": State(
        partial(generate, _VIOLATED, 10), _OVERVIEW, mode="enforce", then=_command(*_PAUSE), time_scale=0.01
    ),
    "several-at-once": State(partial(_crashed, _SEVERAL), _DOWN, then=_command(*_PAUSE), time_scale=0.01),
    "engine-away": State(partial(generate, _VIOLATED, 11), _OVERVIEW, then=_lose_engine),
    "healthy": State(partial(generate, _LARGE, 12), _OVERVIEW, mode="enforce", sign=_DRAWN),
    "three-hosts": State(partial(generate, _TINY, 13), _OVERVIEW),
    "large": State(partial(generate, replace(_LARGE, broken=0.02), 14), _OVERVIEW, sign=_DRAWN),
}


if __name__ == "__main__":
    sys.exit(main())
