"""A plan's hosts next to each other, as they are and as they would be afterwards."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from ovirt_placement_web.cluster_map import MapDocument, MapHost, MapVm

#: Of a plan that concerns more hosts, those that most migrations concern are shown.
_MOST_HOSTS = 30
#: Of VMs that stay and stand right, this many are named on a host.
_MOST_NAMED = 8


class Cell(NamedTuple):
    """A host on one side."""

    host: MapHost
    #: Those that leave or arrive, and those that stand wrong, before others.
    vms: tuple[MapVm, ...]
    #: How many VMs more there are.
    more: int
    groups: Mapping[str, tuple[str, ...]]
    moving: frozenset[str]


class Sides(NamedTuple):
    """Before and after, host by host in the same order."""

    pairs: tuple[tuple[Cell, Cell], ...]
    #: How many hosts of the plan are not shown.
    left_out: int
    #: How many VMs stand wrong in the whole cluster, before and after.
    wrong: tuple[int, int]


def sides(before: MapDocument, after: MapDocument, steps: Collection[Mapping[str, Any]]) -> Sides:
    """The hosts that a plan concerns; those with most migrations first."""
    moving = frozenset(vm["id"] for step in steps for vm in step["vms"])
    counts: dict[str, int] = {}
    for step in steps:
        for host in (*(vm["from"]["id"] for vm in step["vms"]), step["to"]["id"]):
            counts[host] = counts.get(host, 0) + 1
    chosen = sorted(counts, key=lambda host: -counts[host])
    known = {host.id: at for at, host in enumerate(before.hosts)}
    shown = [host for host in chosen if host in known][:_MOST_HOSTS]
    pairs = tuple((_cell(before, known[host], moving), _cell(after, known[host], moving)) for host in shown)
    wrong = (sum(bool(vm.wrong) for vm in before.vms), sum(bool(vm.wrong) for vm in after.vms))
    return Sides(pairs, len(chosen) - len(shown), wrong)


def _cell(drawn: MapDocument, at: int, moving: frozenset[str]) -> Cell:
    own = [vm for vm in drawn.vms if vm.host == at]
    own.sort(key=lambda vm: (vm.id not in moving, not vm.wrong))
    named = sum(vm.id in moving or bool(vm.wrong) for vm in own)
    shown = tuple(own[: max(named, _MOST_NAMED)])
    groups = {vm.id: tuple(drawn.groups[group].name for group in vm.groups) for vm in shown}
    return Cell(drawn.hosts[at], shown, len(own) - len(shown), groups, moving)
