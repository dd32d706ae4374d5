"""Which VMs restart after which others, by the rules that are in force, and the circles that rules form.

Where rules go in a circle, nothing is asked of the VMs of the circle among one another: no order has it. The
rules stay in force for all others.

At last all that is wrong with a placement rule in a state, but for what it lacks itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from ovirt_placement.lookups.index import Earlier, continued
from ovirt_placement.model import Snapshot
from ovirt_placement.model.record import Record
from ovirt_placement.rules.placement_rules.in_force import KINDS, is_in_force, mistakes
from ovirt_placement.rules.placement_rules.kind import RESTART_AFTER
from ovirt_placement.rules.placement_rules.members import Resolved, resolved_rules


def components(follows: Mapping[str, Sequence[str]]) -> Mapping[str, int]:
    """By node, a number that two nodes share if each leads to the other (Tarjan's, without recursion)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    component: dict[str, int] = {}
    open_nodes: list[str] = []
    for root in follows:
        path: list[tuple[str, Iterator[str]]] = []
        if root not in number:
            _enter(root, number, lowest, open_nodes)
            path.append((root, iter(follows[root])))
        while path:
            node, rest = path[-1]
            for following in rest:
                if following not in number:
                    _enter(following, number, lowest, open_nodes)
                    path.append((following, iter(follows.get(following, ()))))
                    break
                if following not in component:
                    lowest[node] = min(lowest[node], number[following])
            else:
                path.pop()
                if path:
                    lowest[path[-1][0]] = min(lowest[path[-1][0]], lowest[node])
                if lowest[node] == number[node]:
                    _close(node, component, open_nodes)
    return component


def _enter(node: str, number: dict[str, int], lowest: dict[str, int], open_nodes: list[str]) -> None:
    number[node] = lowest[node] = len(number)
    open_nodes.append(node)


def _close(node: str, component: dict[str, int], open_nodes: list[str]) -> None:
    identity = len(component)
    while node not in component:
        component[open_nodes.pop()] = identity


def shortest_circle(follows: Mapping[str, Sequence[str]], node: str) -> tuple[str, ...]:
    """A shortest way from a node back to it, without its end; empty if there is none."""
    came_from: dict[str, str] = {}
    ends = [node]
    while ends:
        found = []
        for end in ends:
            for following in follows.get(end, ()):
                if following == node:
                    return _way(came_from, node, end)
                if following not in came_from:
                    came_from[following] = end
                    found.append(following)
        ends = found
    return ()


def _way(came_from: Mapping[str, str], start: str, end: str) -> tuple[str, ...]:
    way = [end]
    while way[-1] != start:
        way.append(came_from[way[-1]])
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
    knot = components(graph)
    after: defaultdict[str, list[After]] = defaultdict(list)
    for found in rules:
        others, knots = frozenset(found.other_vms), {knot[vm] for vm in found.other_vms}
        for vm in found.vms:
            tied = knot[vm] in knots
            left = frozenset(one for one in others if knot[one] != knot[vm]) if tied else others
            if left:
                after[vm].append(After(found.rule.id, left))
    return Orders({vm: tuple(some) for vm, some in after.items()}, tuple(_circles(rules, graph, knot)))


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


def _circles(
    rules: list[Resolved], graph: Mapping[str, list[str]], knot: Mapping[str, int]
) -> Iterator[Circle]:
    """A shortest circle of each rule that is in one, each once."""
    seen: set[frozenset[str]] = set()
    for found in rules:
        way = shortest_circle(graph, found.rule.id)
        if way and frozenset(way) not in seen:
            seen.add(frozenset(way))
            # It begins with a rule: rule, VM, rule, VM ...; each VM waits by the rule after it.
            vms = way[1::2]
            asked = (*way[2::2], way[0])
            yield Circle(vms, asked)


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
