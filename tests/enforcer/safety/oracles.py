"""Says which limits a request of the enforcer has passed, by what was under way and what was begun before."""

import math
import sqlite3
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import NamedTuple

from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.model import Snapshot
from ovirt_simulator.core.state import State
from tests.placement.planning.brute_force import BruteForce

#: A database shows the time of day no finer: by its clock, which the limits go by, so much less is the whole.
CLOCK_GRAIN_SECONDS = 0.001
_HOUR_SECONDS = 3600.0


@dataclass
class Begun:
    """A migration that the engine has begun, and how it ended, once it has."""

    vm: str
    source: str
    target: str
    #: The request's correlation id where it is the enforcer's.
    request: str | None
    at: float
    #: Its place in the sequence of all that happened.
    tick: int
    #: How often the engine was read before.
    reading: int
    ended: float = math.inf
    arrived: bool | None = None


def passed(
    settings: EnforcerSettings,
    under_way: Mapping[str, int],
    ever: Sequence[Begun],
    new: Sequence[Begun],
    now: float,
) -> list[str]:
    """The limits that a request has passed with what it began.

    `under_way` counts what was so before it, as far as anybody can know, and `ever` is all that the enforcer
    began in the cluster before. Of a group that the engine moves at once all VMs count; alone it may be more
    than a limit.
    """
    first, more = new[0], len(new)
    counts = {
        **under_way,
        "cycle": _lately(ever, settings.interval_seconds, now),
        "hour": _lately(ever, _HOUR_SECONDS, now),
    }
    limits = {
        "engine": settings.migrations_at_once,
        "cluster": settings.cluster_migrations_at_once,
        "host out": settings.host_migrations_out,
        "host in": settings.host_migrations_in,
        "cycle": settings.cluster_migrations_per_cycle,
        "hour": settings.cluster_migrations_per_hour,
    }
    faults = [
        f"{now:.1f}: {first.vm} to {first.target}: {count} + {more} pass the limit {limits[name]} ({name})"
        for name, count in counts.items()
        if count and count + more > limits[name]
    ]
    for one in new:
        count = _lately([other for other in ever if other.vm == one.vm], _HOUR_SECONDS, now)
        if count >= settings.vm_migrations_per_hour:
            faults.append(f"{now:.1f}: {one.vm} was moved {count} times within the hour, and again")
    return faults


def _lately(begun: Sequence[Begun], seconds: float, now: float) -> int:
    return sum(now - one.at < seconds - CLOCK_GRAIN_SECONDS for one in begun)


#: The hosts that each VM is on, or takes room on.
Places = Mapping[str, Collection[str]]


@dataclass(frozen=True)
class HardRule:
    kind: str
    vms: frozenset[str]
    hosts: frozenset[str] = frozenset()

    def violated(self, places: Places) -> bool:
        """Whether it is violated where VMs are so; those that do not run are not among them."""
        there = [host for vm in self.vms for host in set(places.get(vm, ()))]
        if self.kind == "together":
            return len(set(there)) > 1
        if self.kind == "apart":
            return len(set(there)) < len(there)
        return any((host in self.hosts) != (self.kind == "on") for host in there)


def hard_rules(state: State, cluster: str) -> tuple[HardRule, ...]:
    """Positive groups that share VMs are one rule, as for the engine."""
    return (*_together(state, cluster), *_others(state, cluster))


def fewest_migrations(
    rules: Sequence[HardRule], placement: Mapping[str, str], hosts: Collection[str], fixed: Collection[str]
) -> int | None:
    """How many migrations repair all rules at the least; None if nothing does.

    Hosts have room for every VM, so that no migration is needed but those of VMs which end elsewhere.
    """
    ruled = sorted({vm for rule in rules for vm in rule.vms} & placement.keys() - set(fixed))
    known = {vm: {host} for vm, host in placement.items()}
    ends = (
        {**known, **dict(zip(ruled, places, strict=True))}
        for places in product([{host} for host in hosts], repeat=len(ruled))
    )
    costs = (
        sum(known[vm] != end[vm] for vm in ruled)
        for end in ends
        if not any(rule.violated(end) for rule in rules)
    )
    return min(costs, default=None)


def _together(state: State, cluster: str) -> Iterator[HardRule]:
    sets = [
        _members(state, group.id)
        for group in state.groups_of(cluster)
        if group.vms_rule.enabled and group.vms_rule.enforcing and group.vms_rule.positive
    ]
    while overlap := next(((one, other) for one, other in combinations(sets, 2) if one & other), None):
        sets = [one for one in sets if one is not overlap[0] and one is not overlap[1]]
        sets.append(overlap[0] | overlap[1])
    for vms in sets:
        yield HardRule("together", frozenset(vms))


def _others(state: State, cluster: str) -> Iterator[HardRule]:
    for group in state.groups_of(cluster):
        vms = frozenset(_members(state, group.id))
        if group.vms_rule.enabled and group.vms_rule.enforcing and not group.vms_rule.positive:
            yield HardRule("apart", vms)
        if group.hosts_rule.enabled and group.hosts_rule.enforcing:
            kind = "on" if group.hosts_rule.positive else "off"
            yield HardRule(kind, vms, frozenset(group.hosts))
    if state.clusters[cluster].compatibility in {"4.2", "4.3"}:
        for label in state.labels.values():
            vms = frozenset(vm for vm in label.vms if state.vms[vm].cluster == cluster)
            if label.implicit and label.hosts and vms:
                yield HardRule("on", vms, frozenset(label.hosts))


def _members(state: State, group: str) -> set[str]:
    known = state.groups[group]
    return {*known.vms, *(vm for label in known.vm_labels for vm in state.labels[label].vms)}


_OPEN = {"prepared", "accepted", "unknown"}
_QUERY = "SELECT vm, target, correlation_id, state, error FROM intents"


class Record(NamedTuple):
    vm: str
    target: str
    correlation_id: str
    state: str
    error: str | None

    def is_of(self, begun: Begun) -> bool:
        """The VMs of a group that is moved at once have numbers at the end of the request's id."""
        asked = self.correlation_id == begun.request or self.correlation_id.startswith(f"{begun.request}-")
        return asked and (self.vm, self.target) == (begun.vm, begun.target)


def records(store: Path) -> list[Record]:
    """All records; none while there is no store, or no table in it."""
    with (
        suppress(sqlite3.OperationalError),
        closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as file,
    ):
        return [Record(*row) for row in file.execute(_QUERY)]
    return []


def settled(store: Path) -> bool:
    """Whether the end of every migration is recorded."""
    return not any(record.state in _OPEN for record in records(store))


def faults_of(store: Path, begun: Sequence[Begun]) -> Iterator[str]:
    """Compare what the engine did with what the store holds, either way."""
    found = records(store)
    for record in found:
        if record.state in _OPEN:
            yield f"open at the end: {record}"
        if record.state == "done" and not any(one.arrived and record.is_of(one) for one in begun):
            yield f"recorded, and never was: {record}"
    for one in begun:
        state = "done" if one.arrived else "failed"
        if not any(record.is_of(one) and record.state == state for record in found):
            yield f"no record says {state} of {one}: {found}"


def violated(end: Snapshot) -> int:
    """How many hard rules are violated."""
    oracle = BruteForce(end)
    return oracle.score(oracle.start)[0]


def fewest_violated(end: Snapshot) -> int:
    """How many hard rules are not repaired at least, whatever legal migrations are made."""
    oracle = BruteForce(end)
    known, queue = {oracle.start}, deque([oracle.start])
    fewest = oracle.score(oracle.start)[0]
    while queue and fewest:
        for after, _ in oracle.migrations(queue.popleft()):
            if after not in known:
                known.add(after)
                queue.append(after)
                fewest = min(fewest, oracle.score(after)[0])
    return fewest
