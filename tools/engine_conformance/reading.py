"""When two answers are the same: what matters of them, and what the engine leaves to chance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tools.engine_conformance.question import Question

#: Of an answer of the engine or of ours, what two must have in common.
Reading = Any
#: Whether the engine's answer to a question and ours are the same.
Agreement = Callable[[Question, Any, Any], bool]


def raised(answer: Any) -> bool:
    """Whether the engine threw."""
    return isinstance(answer, Mapping) and "raised" in answer


def as_hosts(question: Question, answer: Sequence[str]) -> Reading:
    """Which hosts, in whatever order."""
    return sorted(answer)


def as_tiers(question: Question, answer: Mapping[str, int]) -> Reading:
    """Hosts from best to worst, ties together; one that is not mentioned counts as 0, as in the selector."""
    weights = {host: answer.get(host, 0) for host in question.hosts}
    return [
        sorted(host for host in weights if weights[host] == weight)
        for weight in sorted(set(weights.values()))
    ]


def as_is(question: Question, answer: Any) -> Reading:
    return answer


def as_placed(question: Question, answer: Mapping[str, Any]) -> Reading:
    """The hosts left, in whatever order, and the best."""
    return sorted(answer["hosts"]), answer["best"]


def as_closure(question: Question, answer: Sequence[str]) -> Reading:
    """What a VM takes along when it is migrated: of the VMs tied to it those on its own host.

    Source: computeVmAffinityClosure of MigrateMultipleVmsCommand, around positiveAffinityClosure.
    """
    place = {vm["id"]: vm["host"] for vm in question.state["vms"]}
    first = question.vms[0]
    return sorted(vm for vm in answer if vm == first or (place[vm] is not None and place[vm] == place[first]))


def as_conflicts(question: Question, answer: Sequence[Mapping[str, Any]]) -> Reading:
    """In the order of their types; those of one type as the tables of the engine have them."""
    plain = [
        {key: sorted(value) if isinstance(value, list) else value for key, value in one.items()}
        for one in answer
    ]
    return sorted(plain, key=repr), [one["type"] for one in answer]


def as_sets(question: Question, answer: Sequence[Sequence[str]]) -> Reading:
    """The engine makes a set of an empty group, too, on which nothing hangs."""
    return sorted(sorted(one) for one in answer if one)


def same(read: Callable[[Question, Any], Reading]) -> Agreement:
    """Both answers come to the same."""
    return lambda question, engine, ours: bool(read(question, engine) == read(question, ours))


def same_order(question: Question, engine: Sequence[Sequence[str]], ours: Sequence[str]) -> bool:
    """VMs in the order in which they are tried, in any order where the engine shuffles them.

    The engine answers with several runs: what it shuffles ends wherever all have begun with the same VMs.
    """
    begun = 0
    for end in range(1, len(engine[0]) + 1):
        if all(set(run[:end]) == set(engine[0][:end]) for run in engine):
            if set(ours[begun:end]) != set(engine[0][begun:end]):
                return False
            begun = end
    return len(ours) == len(engine[0])


def one_of_the_runs(question: Question, engine: Sequence[Sequence[str]], ours: Sequence[str]) -> bool:
    """In each cluster what the engine asks for in one of its runs."""
    cluster_of = {vm["id"]: vm["cluster"] for vm in question.state["vms"]}

    def in_cluster(run: Sequence[str], cluster: str) -> tuple[str, ...]:
        return tuple(vm for vm in run if cluster_of[vm] == cluster)

    clusters = [cluster["id"] for cluster in question.state["clusters"]]
    return all(in_cluster(ours, one) in {in_cluster(run, one) for run in engine} for one in clusters)


def first_move(
    question: Question, engine: Sequence[Mapping[str, Any]], ours: Mapping[str, Any] | None
) -> bool:
    """The first that the engine would try, and the hosts other than the VM's own in its order."""
    if not engine or ours is None:
        return not engine and ours is None
    place = next(vm["host"] for vm in question.state["vms"] if vm["id"] == engine[0]["vm"])
    hosts = [host for host in engine[0]["hosts"] if host != place]
    return ours["vm"] == engine[0]["vm"] and list(ours["hosts"]) == hosts
