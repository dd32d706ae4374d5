"""What stands in the way of a repair, a migration or a plan: in sentences, and as data with names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final

from ovirt_placement.model import Snapshot
from ovirt_placement.model.amounts import counted
from ovirt_placement.model.names import (
    Named,
    NamedGroup,
    group_name,
    host_name,
    named_groups,
    named_hosts,
    named_vms,
    vm_name,
)
from ovirt_placement.model.record import Record
from ovirt_placement.planning.fitting import Misfit
from ovirt_placement.planning.obstacles import Obstacle, ObstacleKind
from ovirt_placement.rules.reasons import Reason
from ovirt_placement.rules.sentences import sentence

_KIND = ObstacleKind

#: Each kind with its fields in braces; ids become names.
_SENTENCES: Final[Mapping[ObstacleKind, str]] = {
    _KIND.RULE: "{vms} must also run {asks}{of_groups}",
    _KIND.STAYS: "{vms} stays where it is: {why}",
    _KIND.TARGETS: "{vms} may only go to {hosts}",
    _KIND.MEMORY: "{hosts} has {available} MiB free",
    _KIND.NO_HOST: "no host that is up would do for it",
    _KIND.HOST_AWAY: "{why}",
    _KIND.NO_HOST_UP: "no host is up",
    _KIND.HOST_EACH: "its {count} running VMs need a host each, and only {available} can have one",
    _KIND.PLACES: "its {count} running VMs need {needed} places, and there are only {available}",
    _KIND.RESERVATION: (
        "migrations of {vms} were left out: if {hosts} failed after them, {unplaced} would not restart"
        " (over all failures {lost}, now {available}; see ovirt-placement ha-check)"
    ),
    _KIND.OUT: (
        "while it is out, {unplaced} would not restart if {hosts} failed"
        " (over all failures {lost}, now {available}; see ovirt-placement ha-check)"
    ),
    _KIND.NO_WAY_BACK: "highly available VMs would survive fewer failures than now",
    _KIND.NO_ROUND: "no way to take it out was found; not all could be tried",
    _KIND.NO_SEQUENCE: "no sequence of legal migrations repairs it",
    _KIND.NOT_FOUND: "no sequence of legal migrations that repairs it was found; not all could be tried",
    _KIND.REFUSED: "{vms} to {hosts}: {why}",
    _KIND.REFUSED_TOGETHER: "all together to {hosts}: {why}",
    _KIND.NO_MEMORY: "{vms} to {hosts}: {needed} MiB needed, {available} MiB free",
    _KIND.NO_MEMORY_TOGETHER: "all together to {hosts}: {needed} MiB needed, {available} MiB free",
    _KIND.HELD: "{words}",
    _KIND.CLUSTER_GONE: "its cluster is gone",
    _KIND.VM_GONE: "VM {vms} is gone",
    _KIND.HOST_GONE: "host {hosts} is gone",
    _KIND.ELSEWHERE: "{vms} is {there}, not on {home}",
    _KIND.NOT_HERE: "it is gone, down, or in another cluster",
    _KIND.HOME_DOWN: "its former host {hosts} is not up",
    _KIND.VIOLATES: "it would violate {groups}",
    _KIND.RULES_CHANGED: "the rules have changed since it was made: it leads elsewhere for {groups}",
}
#: Of a VM that was named before: why it is not migrated back.
_OF_ONE_VM: Final[Mapping[ObstacleKind, str]] = {
    _KIND.STAYS: "{why}",
    _KIND.REFUSED: "{why}",
    _KIND.ELSEWHERE: "somebody else moved it since: it is {there}",
    _KIND.NO_SEQUENCE: "no legal way leads there",
}
#: What is said where there is neither a reason nor somebody's words.
_NO_REASON: Final = {_KIND.STAYS: "no host lets it in", _KIND.REFUSED: "the rules refuse it"}


class NamedObstacle(Record, frozen=True, omit_defaults=False):
    """One thing that stands in the way; which fields count depends on the kind."""

    kind: str
    vms: tuple[Named, ...]
    hosts: tuple[Named, ...]
    groups: tuple[NamedGroup, ...]
    #: Highly available VMs that would not restart.
    unplaced: tuple[Named, ...]
    #: As a sentence.
    text: str


def named_obstacles(obstacles: Iterable[Obstacle], snapshot: Snapshot) -> tuple[NamedObstacle, ...]:
    """Obstacles with names; hosts that refuse the same VMs for the same reason are reported as one."""
    found: dict[str, Obstacle] = {}
    for one in obstacles:
        words = obstacle_text(replace(one, hosts=()) if one.kind in _BY_HOST else one, snapshot)
        known = found.get(words)
        found[words] = one if known is None else replace(one, hosts=(*known.hosts, *one.hosts))
    return tuple(_named(one, snapshot) for one in found.values())


_BY_HOST = {_KIND.REFUSED, _KIND.REFUSED_TOGETHER, _KIND.NO_MEMORY, _KIND.NO_MEMORY_TOGETHER}


def obstacle_text(obstacle: Obstacle, snapshot: Snapshot) -> str:
    """What stands in the way, in a sentence."""
    return _text(_SENTENCES[obstacle.kind], obstacle, snapshot)


def kept_text(obstacle: Obstacle, snapshot: Snapshot) -> str:
    """Why a VM stays where it is, of which the name was said before."""
    template = _OF_ONE_VM.get(obstacle.kind, _SENTENCES[obstacle.kind])
    return _text(template, obstacle, snapshot)


def misfit_text(misfit: Misfit, snapshot: Snapshot) -> str:
    """Why a plan must not be carried out any more, in a sentence."""
    what = misfit.obstacle
    if what.kind is not _KIND.REFUSED:
        text = obstacle_text(what, snapshot)
    else:
        why = _why(what, snapshot) if what.reasons else "its VM is not up, or may not be migrated"
        vms = ", ".join(vm_name(vm, snapshot) for vm in what.vms)
        text = f"{vms} may not go to {host_name(what.hosts[0], snapshot)} any more: {why}"
    return text if misfit.step is None else f"step {misfit.step}: {text}"


def reasons_text(reasons: Iterable[Reason], snapshot: Snapshot) -> str:
    """Reasons as sentences, each once."""
    return "; ".join(dict.fromkeys(sentence(reason, snapshot) for reason in reasons))


def _named(obstacle: Obstacle, snapshot: Snapshot) -> NamedObstacle:
    return NamedObstacle(
        kind=obstacle.kind.value,
        vms=named_vms(obstacle.vms, snapshot),
        hosts=named_hosts(obstacle.hosts, snapshot),
        groups=named_groups(obstacle.groups, snapshot),
        unplaced=named_vms(obstacle.unplaced, snapshot),
        text=obstacle_text(obstacle, snapshot),
    )


def _text(template: str, obstacle: Obstacle, snapshot: Snapshot) -> str:
    hosts = [host_name(host, snapshot) for host in obstacle.hosts]
    groups = " and ".join(group_name(group, snapshot) for group in obstacle.groups)
    return template.format(
        vms=_and([vm_name(vm, snapshot) for vm in obstacle.vms]),
        hosts=", ".join(sorted(hosts)),
        home=hosts[0] if hosts else "",
        there=f"on {hosts[1]}" if len(hosts) > 1 else "on no host",
        groups=groups,
        of_groups=f" ({groups})" if groups else "",
        unplaced=_and([vm_name(vm, snapshot) for vm in obstacle.unplaced]),
        asks=obstacle.asks,
        needed=obstacle.needed,
        lost=counted(obstacle.needed, "VM"),
        available=obstacle.available,
        count=obstacle.count,
        words=obstacle.words,
        why=_why(obstacle, snapshot),
    )


def _why(obstacle: Obstacle, snapshot: Snapshot) -> str:
    return obstacle.words or reasons_text(obstacle.reasons, snapshot) or _NO_REASON.get(obstacle.kind, "")


def _and(names: Collection[str]) -> str:
    *most, last = names or ("",)
    return f"{', '.join(most)} and {last}" if most else last
