"""Which VMs restart after which others, by the rules that are in force, and the circles that rules form.

Where rules go in a circle, nothing is asked of the VMs of the circle among one another: no order has it. The
rules stay in force for all others.

At last all that is wrong with a placement rule in a state, but for what it lacks itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from ovirt_placement.lookups.index import Earlier, continued
from ovirt_placement.model import Snapshot
from ovirt_placement.model.record import Record
from ovirt_placement.rules.placement_rules.in_force import KINDS, is_in_force, mistakes
from ovirt_placement.rules.placement_rules.kind import RESTART_AFTER
from ovirt_placement.rules.placement_rules.members import Resolved, resolved_rules


def find_ways(node: str, follows: Mapping[str, Collection[str]]) -> Mapping[str, str]:
    """All that a node leads to, perhaps itself, each with the last node of a shortest way to it."""
    before: dict[str, str] = {}
    ends = [node]
    for end in ends:
        new = [one for one in follows[end] if one not in before]
        before |= dict.fromkeys(new, end)
        ends += new
    return before


def find_circle(node: str, ways: Mapping[str, str]) -> tuple[str, ...]:
    """A shortest way from a node back to it, without its end, by the ways from it; empty if there is none."""
    if node not in ways:
        return ()
    way = [ways[node]]
    while way[-1] != node:
        way.append(ways[way[-1]])
    return tuple(reversed(way))


class After(Record, frozen=True):
    """The VMs that a VM restarts after, by one rule."""

    #: The id of the rule.
    rule: str
    vms: frozenset[str]


class Circle(Record, frozen=True):
    """VMs each of which would restart after the next one, and the last after the first."""

    vms: tuple[str, ...]
    #: The ids of the rules that ask for it, one for each of the VMs.
    rules: tuple[str, ...]


class Orders(Record, frozen=True):
    """What all rules of the kind ask for together."""

    #: By VM.
    after: Mapping[str, tuple[After, ...]]
    circles: tuple[Circle, ...]


@continued
def restart_orders(snapshot: Snapshot, earlier: Earlier | None) -> Orders:
    """What the rules in force ask, without what goes in a circle, and one circle of each knot."""
    if earlier is not None and resolved_rules(snapshot) is resolved_rules(earlier.snapshot):
        return restart_orders(earlier.snapshot)
    rules = [
        found
        for found in resolved_rules(snapshot)
        if found.rule.kind == RESTART_AFTER.name and is_in_force(found)
    ]
    if not rules:
        return Orders({}, ())
    graph = _graph(rules)
    ways = {found.rule.id: find_ways(found.rule.id, graph) for found in rules}
    after: defaultdict[str, list[After]] = defaultdict(list)
    for found in rules:
        others = frozenset(found.other_vms)
        for vm in found.vms:
            left = others
            if vm in ways[found.rule.id]:
                left = frozenset(one for one in others if not _goes_back(one, vm, graph, ways))
            if left:
                after[vm].append(After(found.rule.id, left))
    return Orders({vm: tuple(some) for vm, some in after.items()}, tuple(_circles(rules, ways)))


def _goes_back(
    one: str, vm: str, graph: Mapping[str, Sequence[str]], ways: Mapping[str, Mapping[str, str]]
) -> bool:
    """Whether a VM that another one restarts after restarts after that one itself."""
    return one == vm or any(vm in ways[rule] for rule in graph[one])


def why_circular(snapshot: Snapshot, rule: str) -> Iterator[str]:
    """In a sentence each, the circles that a rule is part of."""
    names = snapshot.vm_by_id
    for circle in restart_orders(snapshot).circles:
        if rule in circle.rules:
            steps = zip(circle.vms, (*circle.vms[1:], circle.vms[0]), circle.rules, strict=True)
            text = ", ".join(
                f"{names[vm].name} after {names[other].name} ({snapshot.rule_by_id[by].name})"
                for vm, other, by in steps
            )
            yield f"the restart order goes in a circle: {text}"


def why_without_effect(snapshot: Snapshot, found: Resolved) -> Iterator[str]:
    """In a sentence, why a rule of the kind orders nothing; nothing where it does, or names nobody."""
    if found.rule.kind != RESTART_AFTER.name or not is_in_force(found):
        return
    for words, vms in ((found.rule.vms, found.vms), (found.rule.other_vms, found.other_vms)):
        if vms and not any(snapshot.vm_by_id[vm].ha for vm in vms):
            yield f"the engine restarts nothing that {', '.join(words)} names: it is not highly available"


def not_waiting(snapshot: Snapshot, found: Resolved) -> tuple[str, ...]:
    """The VMs of a rule that the engine may restart too early: it waits by priority alone.

    Only a VM of a lower priority than all that it is to restart after surely restarts after them.
    """
    known = snapshot.vm_by_id
    others = {vm: known[vm].ha_priority for vm in found.other_vms if known[vm].ha}

    def waits(vm: str) -> bool:
        return all(priority > known[vm].ha_priority for other, priority in others.items() if other != vm)

    return tuple(vm for vm in found.vms if known[vm].ha and not waits(vm))


def _graph(rules: list[Resolved]) -> Mapping[str, list[str]]:
    """From each VM to the rules by which it waits, and from these to the VMs that it waits for.

    So there are as many edges as members, and not as pairs of them.
    """
    graph: defaultdict[str, list[str]] = defaultdict(list)
    for found in rules:
        graph[found.rule.id] += found.other_vms
        for vm in found.vms:
            graph[vm].append(found.rule.id)
        for vm in found.other_vms:
            graph.setdefault(vm, [])
    return dict(graph)


def _circles(rules: list[Resolved], ways: Mapping[str, Mapping[str, str]]) -> Iterator[Circle]:
    """A shortest circle of each rule that is in one, each once."""
    seen: set[frozenset[str]] = set()
    for found in rules:
        way = find_circle(found.rule.id, ways[found.rule.id])
        if way and frozenset(way) not in seen:
            seen.add(frozenset(way))
            # It begins with a rule: rule, VM, rule, VM ...; each VM waits by the rule after it.
            yield Circle(vms=way[1::2], rules=(*way[2::2], way[0]))


def why_impossible(snapshot: Snapshot, found: Resolved) -> Iterator[str]:
    """In a sentence, why a rule cannot be satisfied; nothing where it can, or where it is not in force."""
    if found.cluster is None or not found.rule.enabled or next(mistakes(found.rule), None) is not None:
        return
    kind = KINDS.get(found.rule.kind)
    if kind is not None:
        hosts = frozenset(host.id for host in snapshot.hosts_of_cluster.get(found.cluster, ()))
        yield from kind.impossible(found, hosts)


def rule_problems(snapshot: Snapshot, found: Resolved) -> Iterator[str]:
    """In a sentence each: words that name nothing, numbers that cannot be, orders in a circle."""
    yield from found.problems
    yield from why_impossible(snapshot, found)
    yield from why_circular(snapshot, found.rule.id)
    yield from why_without_effect(snapshot, found)
