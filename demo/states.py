"""`python -m demo.states`: pictures of the page in states that need an administrator, and of every view.

Each state is a cluster in the simulator. What a first screen must answer in it is: what is wrong, what will
happen next, who must do what, whether a failed host would be survived, and why a VM is down.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from msgspec.structs import replace
from playwright.sync_api import Browser

from demo.processes import ProcessFailed
from demo.screenshots import Shown, browser, shown
from demo.stage import TIME_SCALE, demonstrate
from ovirt_placement.model import Snapshot, Vm
from ovirt_simulator.core.state import required_mb
from ovirt_simulator.generate import Sizes, generate

_SMALL = Sizes(hosts=12, vms=120, groups=12, broken=0.0)
_VIOLATED = Sizes(hosts=12, vms=120, groups=12, broken=0.25)
_LARGE = Sizes(hosts=500, vms=10_000, groups=500, broken=0.0)
_HEIGHT = 900
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


@dataclass(frozen=True)
class State:
    """A state, and the views that answer for it."""

    draw: Callable[[], Snapshot]
    views: Callable[[Snapshot], Sequence[str]]
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
    parser.add_argument("--width", type=int, nargs="+", default=[1440])
    parser.add_argument("--scheme", choices=("light", "dark"), nargs="+", default=["light"])
    arguments = parser.parse_args()
    arguments.into.mkdir(parents=True, exist_ok=True)

    def show(folder: Path) -> None:
        with browser() as running:
            for name in arguments.states or list(_STATES):
                (folder / name).mkdir()
                _picture(running, folder / name, arguments)

    return demonstrate("demo.states", show)


def _picture(running: Browser, folder: Path, arguments: argparse.Namespace) -> None:
    """Take the pictures of the state that the folder is named for."""
    name, state = folder.name, _STATES[folder.name]
    with shown(running, folder, state.draw(), mode=state.mode, time_scale=state.time_scale) as one:
        one.tab.wait_for_timeout(_SETTLING_MS)
        state.then(one)
        one.tab.goto(f"{one.url}cluster/{one.cluster}")
        one.tab.wait_for_selector(state.sign)
        for view in _every_view(one) if arguments.every_view else state.views(one.snapshot):
            one.tab.goto(f"{one.url}{view}")
            one.tab.wait_for_load_state("load")
            if view.startswith("map/"):
                one.tab.wait_for_selector("#map[data-drawn], table")
            words = view.replace(one.cluster, "").strip("/").replace("/", "-") or "first"
            for width, scheme in product(arguments.width, arguments.scheme):
                one.tab.set_viewport_size({"width": width, "height": _HEIGHT})
                one.tab.emulate_media(color_scheme=scheme)
                file = arguments.into / f"{name}-{words[:60]}-{width}-{scheme}.png"
                one.tab.screenshot(path=file, animations="disabled")
                print(file, *one.tab.evaluate(_FAULTS), sep="\n    ", flush=True)


def _every_view(shown: Shown) -> list[str]:
    """One of each kind."""
    here, snapshot = shown.cluster, shown.snapshot
    host = snapshot.hosts[0].id
    vm = next(one for one in snapshot.vms if one.host)
    down = next((one for one in snapshot.vms if one.host is None), snapshot.vms[-1])
    group = snapshot.affinity_groups[0].id
    return [
        "", f"cluster/{here}", f"map/{here}", f"map/{here}/table", f"cluster/{here}/rules", f"plan/{here}",
        f"plan/{here}/now", f"cluster/{here}/hosts", f"ha/{here}", f"ha/{here}?host={host}",
        f"maintenance/{here}", f"maintenance/{here}?host={host}", f"cluster/{here}/history", "vms", "hosts",
        "rules", "keys", f"keys/set?level=node&on={host}&name=SSD", f"keys/hosts?cluster={here}&name=SSD",
        "history", "health", f"vm/{vm.id}", f"vm/{down.id}", f"vm/{vm.id}/keys", f"vm/{vm.id}/then",
        f"host/{host}", f"group/{group}", f"group/{group}/edit", f"cluster/{here}/new-group", "search?q=00",
        f"cluster/{here}/rule",
    ]  # fmt: skip


# -- What is drawn.


def _with_vms(snapshot: Snapshot, changed: Callable[[Vm], Vm]) -> Snapshot:
    return replace(snapshot, vms=tuple(map(changed, snapshot.vms)))


def _crashed(sizes: Sizes = _SMALL) -> Snapshot:
    """A host does not respond; the engine knows nothing of its VMs."""
    drawn = generate(sizes, 3)
    lost = drawn.hosts[4]
    hosts = tuple(replace(one, status="non_responsive") if one is lost else one for one in drawn.hosts)
    return _with_vms(
        replace(drawn, hosts=hosts), lambda vm: replace(vm, status="unknown") if vm.host == lost.id else vm
    )


def _unknown() -> Snapshot:
    """Some VMs do not answer on a host that is up, and a highly available one is down since it crashed."""
    drawn = generate(_SMALL, 4)
    ill = {vm.id for vm in drawn.vms if vm.host == drawn.hosts[2].id}
    crashed = next(vm for vm in drawn.vms if vm.ha and vm.host == drawn.hosts[5].id)

    def changed(vm: Vm) -> Vm:
        if vm is crashed:
            return replace(
                vm, status="down", host=None, crashed=True, usage_cpu_percent=None, usage_mem_percent=None
            )
        return replace(vm, status="unknown") if vm.id in ill else vm

    return _with_vms(drawn, changed)


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


def _overview_of(snapshot: Snapshot) -> tuple[str, ...]:
    return "", f"cluster/{snapshot.clusters[0].id}"


def _plan_of(snapshot: Snapshot) -> tuple[str, ...]:
    return *_overview_of(snapshot), f"plan/{snapshot.clusters[0].id}"


def _down_of(snapshot: Snapshot) -> tuple[str, ...]:
    """With the VM that is most in need."""
    needy = [vm for vm in snapshot.vms if vm.crashed or vm.status == "unknown"]
    needy += [vm for vm in snapshot.vms if vm.host is None]
    return *_overview_of(snapshot), f"vm/{needy[0].id}"


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
    shown.tab.goto(f"{shown.url}plan/{shown.cluster}")
    shown.tab.click("text=/^Approve /")
    shown.tab.wait_for_timeout(_SETTLING_MS)


def _refuse(shown: Shown) -> None:
    """By the button, with a reason."""
    shown.tab.goto(f"{shown.url}plan/{shown.cluster}")
    shown.tab.click("text=Refuse…")
    shown.tab.fill("#reason", "backup tonight")
    shown.tab.click(".dialog:popover-open form button")
    shown.tab.wait_for_timeout(_SETTLING_MS)


def _lose_engine(shown: Shown) -> None:
    shown.stage.processes.stop("ovirt-simulator")
    shown.tab.wait_for_selector("#away:not([hidden])")


def _small(sizes: Sizes, seed: int) -> Callable[[], Snapshot]:
    return lambda: generate(sizes, seed)


_PAUSE = ("ovirt-enforcer", "pause", "--hours", "2", "--reason", "storage upgrade")
_MAINTENANCE = ("ovirt-enforcer", "maintenance", "run", "--cluster", "cluster-1", "--work", "nothing")
_TINY = Sizes(hosts=3, vms=18, groups=3, broken=0.4, down=0.2)

_STATES: dict[str, State] = {
    "crashed-host": State(_crashed, _down_of, time_scale=0.01),
    "unknown-vms": State(_unknown, _down_of, time_scale=0.01),
    "waiting-plan": State(_small(_VIOLATED, 6), _plan_of),
    "approved-plan": State(_small(_VIOLATED, 6), _plan_of, then=_approve, time_scale=0.2),
    "refused-plan": State(_small(_VIOLATED, 7), _plan_of, then=_refuse),
    "full-cluster": State(_full, _down_of, mode="enforce"),
    "violated-groups": State(
        _small(Sizes(hosts=12, vms=120, groups=12, broken=0.3, soft=0.5), 8), _overview_of, mode="observe"
    ),
    "maintenance": State(
        _small(_SMALL, 9),
        lambda drawn: (*_overview_of(drawn), f"maintenance/{drawn.clusters[0].id}"),
        mode="enforce",
        then=_command(*_MAINTENANCE),
        time_scale=1,
    ),
    "paused": State(
        _small(_VIOLATED, 10), _overview_of, mode="enforce", then=_command(*_PAUSE), time_scale=0.01
    ),
    "several-at-once": State(
        lambda: _crashed(replace(_LARGE, hosts=60, vms=900, groups=60, broken=0.05)),
        _down_of,
        then=_command(*_PAUSE),
        time_scale=0.01,
    ),
    "engine-away": State(_small(_VIOLATED, 11), _overview_of, then=_lose_engine),
    "healthy": State(_small(_LARGE, 12), _overview_of, mode="enforce", sign=".heat, .hosts"),
    "three-hosts": State(_small(_TINY, 13), _overview_of),
    "large": State(_small(replace(_LARGE, broken=0.02), 14), _overview_of, sign=".heat, .hosts"),
}


if __name__ == "__main__":
    sys.exit(main())
