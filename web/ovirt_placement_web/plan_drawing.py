"""What is drawn of a plan: a bar of time a step, and the hosts that it changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from ovirt_placement.answers.plans.reading import timed
from ovirt_placement_web.cluster_map import MapDocument, MapHost, MapVm

#: Of a longer plan, this many steps have a bar: they wait for none of the others.
_MOST_DRAWN = 300
#: Of a plan that concerns more hosts, those that most migrations concern are shown.
_MOST_HOSTS = 24
#: In units of the drawing; a bar is at least so wide that it is seen.
_WIDTH, _LEAST = 1000.0, 12.0


class Bar(NamedTuple):
    """When a step runs, in seconds from the beginning of the plan, and where its bar is drawn."""

    begins: float
    seconds: float
    x: float
    width: float


class Gantt(NamedTuple):
    """The bars of a plan by the numbers of its steps."""

    seconds: float
    bars: Mapping[int, Bar]
    left_out: int


class ChangedHost(NamedTuple):
    """A host that a plan changes: its VMs and its memory in percent before and after."""

    host: MapHost
    before: int
    after: int
    memory: tuple[int, int]
    leaving: tuple[MapVm, ...]
    arriving: tuple[MapVm, ...]


class Sides(NamedTuple):
    """A cluster before and after a plan."""

    hosts: tuple[ChangedHost, ...]
    #: How many hosts of the plan are not shown, and how many of the cluster stay as they are.
    left_out: int
    staying: int
    #: How many VMs violate a rule, before and after.
    wrong: tuple[int, int]


def gantt(steps: Sequence[Mapping[str, Any]]) -> Gantt | None:
    """The bars of a plan; None of one without steps."""
    times = timed(steps[:_MOST_DRAWN])
    if not times:
        return None
    whole = max(one.ends for one in times) or 1.0
    bars = {}
    for one in times:
        width = max(_LEAST, _WIDTH * (one.ends - one.begins) / whole)
        x = min(_WIDTH * one.begins / whole, _WIDTH - width)
        bars[one.number] = Bar(one.begins, one.ends - one.begins, round(x, 1), round(width, 1))
    return Gantt(whole, bars, len(steps) - len(times))


def sides(before: MapDocument, after: MapDocument, steps: Collection[Mapping[str, Any]]) -> Sides:
    """The hosts that a plan changes; those with most migrations first."""
    counts: dict[str, int] = {}
    for step in steps:
        for host in (*(vm["from"]["id"] for vm in step["vms"]), step["to"]["id"]):
            counts[host] = counts.get(host, 0) + 1
    places = {host.id: at for at, host in enumerate(before.hosts)}
    chosen = sorted(counts.keys() & places.keys(), key=lambda host: (-counts[host], places[host]))
    hosts = tuple(_changed(before, after, places[host]) for host in chosen[:_MOST_HOSTS])
    wrong = (sum(bool(vm.wrong) for vm in before.vms), sum(bool(vm.wrong) for vm in after.vms))
    return Sides(hosts, len(counts) - len(hosts), len(before.hosts) - len(counts), wrong)


def used_percent(host: MapHost) -> int:
    """Memory that is handed out."""
    return round(100 - 100 * host.free_mb / host.memory_mb) if host.memory_mb else 0


def _changed(before: MapDocument, after: MapDocument, at: int) -> ChangedHost:
    was = {vm.id: vm for vm in before.vms if vm.host == at}
    will = {vm.id: vm for vm in after.vms if vm.host == at}
    return ChangedHost(
        host=before.hosts[at],
        before=len(was),
        after=len(will),
        memory=(used_percent(before.hosts[at]), used_percent(after.hosts[at])),
        leaving=tuple(vm for name, vm in was.items() if name not in will),
        arriving=tuple(vm for name, vm in will.items() if name not in was),
    )
