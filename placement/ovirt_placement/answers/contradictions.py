"""Hard groups, placement rules and keys that cannot be satisfied together, as data and in a sentence."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ovirt_placement.answers.sentences import listed
from ovirt_placement.model import Host, Snapshot
from ovirt_placement.model.names import Named, NamedGroup, named_groups, named_vms
from ovirt_placement.model.record import Record
from ovirt_placement.planning.assignment.catalogue import OPTIMAL_IS_THERE
from ovirt_placement.rules.affinity.feasibility import Feasibility, judge_groups
from ovirt_placement.rules.asks import Ask, asks, parts_of

NEEDS_PLANNER = "needs OR-Tools: install ovirt-placement[planner]"
_Parts = Sequence[Sequence[Ask]]


class ContradictionFound(Record, frozen=True, omit_defaults=False, kw_only=True):
    """Hard rules that cannot be satisfied together, though without any one of them the others can."""

    #: Affinity groups, legacy labels and placement rules.
    groups: tuple[NamedGroup, ...]
    #: VMs whose placement keys have a part in it.
    keys_of: tuple[Named, ...] = ()
    vms: tuple[Named, ...]
    #: Whether they could be satisfied if hosts had more memory.
    memory: bool = False
    #: Whether it is proven that no smaller set is contradictory.
    smallest: bool


class RulesJudged(Record, frozen=True):
    """What is proven about the hard rules of a cluster; sets by the ids of groups and placement rules."""

    contradictions: tuple[ContradictionFound, ...]
    #: Sets for which the work budget ended before an answer.
    unknown: tuple[tuple[str, ...], ...]
    #: Sets that need OR-Tools, where it is not installed.
    unjudged: tuple[tuple[str, ...], ...]


class _Remembered:
    """The last answer about each cluster, with what it hangs on: none of that is where VMs run now.

    A page that is looked at all day asks again whenever a VM has moved.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: An answer may take half a minute: who asks about another cluster does not wait for it.
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._answers: dict[str, tuple[Snapshot, RulesJudged]] = {}

    def ask(self, snapshot: Snapshot, cluster: str) -> RulesJudged:
        standing = _standing(snapshot)
        with self._lock:
            of_cluster = self._locks[cluster]
        with of_cluster:
            known = self._answers.get(cluster)
            if known is None or known[0] != standing:
                known = self._answers[cluster] = standing, _judged(standing, cluster)
            return known[1]


_remembered = _Remembered()


def judge_rules(snapshot: Snapshot, cluster: str) -> RulesJudged:
    """Judge all hard rules of a cluster.

    Groups alone need no OR-Tools; with placement rules and placement keys they do.
    """
    return _remembered.ask(snapshot, cluster)


def _standing(snapshot: Snapshot) -> Snapshot:
    """The state without what changes while nobody changes anything."""
    hosts = tuple(
        Host(
            id=one.id, name=one.name, cluster=one.cluster, tags=one.tags, status="up",
            memory_mb=one.memory_mb, free_mb=one.memory_mb, cpu_percent=None, cores=one.cores,
        )
        for one in snapshot.hosts
    )  # fmt: skip
    vms = tuple(
        replace(
            one, host=None, status="down", migrating_to=None, running_since=None, usage_mem_percent=None,
            usage_cpu_percent=None,
        )
        for one in snapshot.vms
    )  # fmt: skip
    return replace(snapshot, hosts=hosts, vms=vms, pending=(), draining_hosts=())


def _judged(snapshot: Snapshot, cluster: str) -> RulesJudged:
    alone = judge_groups(snapshot, cluster)
    mixed = [
        part for part in parts_of(asks(snapshot, cluster)) if any(one.of_rule or one.of_keys for one in part)
    ]
    if not mixed:
        return RulesJudged(tuple(_of_groups(snapshot, alone, ())), alone.unknown, ())
    if not OPTIMAL_IS_THERE:
        found = tuple(_of_groups(snapshot, alone, ()))
        return RulesJudged(found, alone.unknown, tuple(map(_ids, mixed)))
    return _with_all(snapshot, cluster, alone, mixed)


def _with_all(snapshot: Snapshot, cluster: str, alone: Feasibility, mixed: _Parts) -> RulesJudged:
    # Only here, so that all else works without OR-Tools.
    from ovirt_placement.planning.explain.contradictions import judge

    judged = judge(snapshot, cluster, mixed)
    found = tuple(
        ContradictionFound(
            groups=named_groups(sorted(_ids(one.asks)), snapshot),
            keys_of=named_vms(sorted(ask.id for ask in one.asks if ask.of_keys), snapshot),
            vms=named_vms(sorted({vm for ask in one.asks for vm in ask.vms}), snapshot),
            memory=one.memory,
            smallest=one.smallest,
        )
        for one in judged.contradictions
    )
    unknown = tuple(map(_ids, judged.unknown))
    open_still = frozenset(one for groups in unknown for one in groups)
    answered = [frozenset(_ids(part)) for part in mixed if open_still.isdisjoint(_ids(part))]
    left = tuple(groups for groups in alone.unknown if not any(part.issuperset(groups) for part in answered))
    return RulesJudged((*found, *_of_groups(snapshot, alone, found)), (*unknown, *left), ())


def _ids(part: Sequence[Ask]) -> tuple[str, ...]:
    """Groups and rules by their ids; keys have none."""
    return tuple(one.id for one in part if not one.of_keys)


def _of_groups(
    snapshot: Snapshot, alone: Feasibility, named: Sequence[ContradictionFound]
) -> Iterator[ContradictionFound]:
    """Those among groups alone that have no group in common with what is named already."""
    seen = {group.id for one in named for group in one.groups}
    for one in alone.contradictions:
        if seen.isdisjoint(one.groups):
            yield ContradictionFound(
                groups=named_groups(one.groups, snapshot),
                vms=named_vms(one.vms, snapshot),
                smallest=one.smallest,
            )


# -- in words


def sentence(one: ContradictionFound, *, whole: bool = True) -> str:
    """What cannot be satisfied together."""
    names = listed(titles(one), whole=whole)
    together = " together" if len(one.groups) + len(one.keys_of) > 1 else ""
    return f"{names} cannot be satisfied{together}{remark(one)}"


def titles(one: ContradictionFound) -> list[str]:
    """All that has a part in it."""
    return [
        *(group.title for group in one.groups),
        *(f"placement keys of VM {vm.name}" for vm in one.keys_of),
    ]


def remark(one: ContradictionFound) -> str:
    """What else is known."""
    memory = " with the memory that hosts have" if one.memory else ""
    return memory + ("" if one.smallest else " (perhaps fewer of them cannot)")
