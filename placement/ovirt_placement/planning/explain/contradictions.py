"""Hard rules of any kind that cannot all be satisfied together, and the smallest set of them that cannot.

Groups, placement rules and keys are asked about alike. All their VMs count, as if they ran; pinning is
taken as given, and so is the memory of hosts where all VMs fit without any rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.explain.question import OutOfWork, Question, Work
from ovirt_placement.planning.explain.smallest import smallest
from ovirt_placement.rules.asks import Ask

#: Units of work, not seconds, for all questions about a cluster.
_WORK = 20.0


@dataclass(frozen=True, slots=True)
class Contradiction:
    """What cannot be satisfied together, though without any one of it the rest can."""

    asks: tuple[Ask, ...]
    #: Whether it is proven that no smaller set is contradictory.
    smallest: bool
    #: Whether all of it could be satisfied if hosts had more memory.
    memory: bool


@dataclass(frozen=True, slots=True)
class Judgement:
    """Contradictions have nothing in common; without them all that was judged can be satisfied."""

    contradictions: tuple[Contradiction, ...]
    #: What could not be judged with the work allowed.
    unknown: tuple[tuple[Ask, ...], ...]


def judge(snapshot: Snapshot, cluster: str, parts: Iterable[Sequence[Ask]], work: float = _WORK) -> Judgement:
    """Judge parts of a cluster, each by itself."""
    left = Work(work)
    found: list[Contradiction] = []
    unknown: list[tuple[Ask, ...]] = []
    hosts = _hosts_of(snapshot, cluster)
    for part in parts:
        question = Question(snapshot, part, hosts, left)
        rest = tuple(part)
        try:
            question.take_memory_into_account()
            while (among := question.contradictory(rest)) is not None:
                one = _named(question, smallest(question, rest, among))
                found.append(one)
                rest = tuple(ask for ask in rest if all(ask is not other for other in one.asks))
        except OutOfWork:
            unknown.append(rest)
    return Judgement(tuple(found), tuple(unknown))


def _named(question: Question, found: tuple[tuple[Ask, ...], bool]) -> Contradiction:
    named, proven = found
    return Contradiction(named, proven, question.only_for_memory(named))


def _hosts_of(snapshot: Snapshot, cluster: str) -> Mapping[str, int]:
    """The memory of each host."""
    return {host.id: host.memory_mb for host in snapshot.hosts_of_cluster.get(cluster, ())}
