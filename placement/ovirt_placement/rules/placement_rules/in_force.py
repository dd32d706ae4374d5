"""The placement rules in force, as constraints and as an order of restarts, and what is wrong with others.

Where rules go in a circle, nothing is asked of the VMs of the circle among one another: no order has it. The
rules stay in force for all others.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path

from ovirt_placement.lookups import Earlier, continued, once_whatever_is_pending
from ovirt_placement.model import PlacementRule, Snapshot
from ovirt_placement.model.infrastructure import LARGEST, is_priority
from ovirt_placement.model.record import SEARCH, Record
from ovirt_placement.model.snapshot import grouped
from ovirt_placement.rules.placement_rules.domains import MINIMUM_DOMAINS, SAME_DOMAIN, SPREAD
from ovirt_placement.rules.placement_rules.kind import (
    RESTART_AFTER,
    PlacementConstraint,
    PlacementKind,
    Resolved,
    RuleKind,
    resolved_rules,
)
from ovirt_placement.rules.placement_rules.limits import (
    AT_MOST_PER_DOMAIN,
    AT_MOST_PER_HOST,
    CAPACITY,
    COUNTED,
    EXCLUSIVE_HOSTS,
    SEPARATE,
)


def _found() -> Iterator[PlacementKind]:
    """Kinds of files of this package that have the line `KIND = PlacementKind(`: nothing else names them."""
    for file in sorted(Path(__file__).parent.glob("*.py")):
        if "\nKIND = PlacementKind(" in file.read_text("utf-8"):
            kind: PlacementKind = import_module(f"{__package__}.{file.stem}").KIND
            yield kind


#: Those that ask where VMs run, by name, in the order in which they are shown.
KINDS: dict[str, PlacementKind] = {
    kind.name: kind
    for kind in (
        AT_MOST_PER_HOST,
        AT_MOST_PER_DOMAIN,
        SPREAD,
        MINIMUM_DOMAINS,
        SAME_DOMAIN,
        SEPARATE,
        EXCLUSIVE_HOSTS,
        CAPACITY,
        *_found(),
    )
}
#: By name, in the order in which they are shown.
EVERY_KIND: dict[str, RuleKind] = {**KINDS, RESTART_AFTER.name: RESTART_AFTER}


#: What says in a search how its answer is sorted and cut; not within quotation marks.
_ORDERED = re.compile(r"(?:^|\s)(?:sortby\b|page\s*\d*\s*$)", re.IGNORECASE)
_QUOTED = re.compile(r'"[^"]*"')


def constraints_in(snapshot: Snapshot, cluster: str) -> Iterator[PlacementConstraint]:
    """What the rules of a cluster ask, in the order of the rules."""
    for number, found in enumerate(resolved_rules(snapshot)):
        if found.cluster == cluster and found.rule.kind in KINDS and is_in_force(found):
            yield _constraint(snapshot, number)


def constraints_of(snapshot: Snapshot, vm: str) -> list[PlacementConstraint]:
    """What the rules ask of one VM."""
    return [_constraint(snapshot, number) for number in _standing(snapshot).numbers_of.get(vm, ())]


def mistakes(rule: PlacementRule) -> Iterator[str]:
    """Why a rule is not in force for any VM, in sentences."""
    kind = EVERY_KIND.get(rule.kind)
    if kind is None:
        yield f"there is no kind {rule.kind}"
        return
    for field in kind.needs:
        if getattr(rule, field) in (None, ()):
            yield f"a rule of the kind {kind.name} needs {field}"
    if kind.in_domains and not rule.domains and not rule.domain_tags:
        yield f"a rule of the kind {kind.name} needs domains or domain_tags"
    if not kind.weaker and not (rule.enforcing and rule.continuous):
        yield f"a rule of the kind {kind.name} is neither soft nor satisfied in the end only"
    yield from _search_mistakes(rule)
    yield from _number_mistakes(rule)


def _search_mistakes(rule: PlacementRule) -> Iterator[str]:
    for _, text in rule.searches:
        if not text.strip():
            yield f"{SEARCH} needs what to search for"
        elif _ORDERED.search(_QUOTED.sub("", text)):
            yield f"{SEARCH}{text}: a search for members takes neither sortby nor page"


def _number_mistakes(rule: PlacementRule) -> Iterator[str]:
    for field in ("most", "least", "max_skew", "min_domains"):
        number, lowest = getattr(rule, field), int(rule.kind != CAPACITY.name)
        if number is not None and not lowest <= number <= LARGEST:
            yield f"{field}: {number} is {f'less than {lowest}' if number < lowest else 'too large'}"
    if not is_priority(rule.priority):
        yield f"priority: {rule.priority:g} is too large, or no number"
    if rule.counted not in COUNTED:
        yield f"counted: {rule.counted} is not one of {', '.join(COUNTED)}"


def is_in_force(found: Resolved) -> bool:
    """Whether a rule counts: it is enabled, it is known who its members are, and nothing is wrong with it."""
    known = found.cluster is not None and found.searches_answered and not found.unknown
    return found.rule.enabled and known and next(mistakes(found.rule), None) is None


def not_known_yet(snapshot: Snapshot, cluster: str) -> list[str]:
    """Rules of a cluster of which it is not known yet what they are about, each with the reason."""
    return [
        f"placement rule {found.rule.name}: {found.unknown[0]}"
        for found in resolved_rules(snapshot)
        if found.cluster == cluster and found.rule.enabled and found.unknown
    ]


@once_whatever_is_pending
def _constraint(snapshot: Snapshot, number: int) -> PlacementConstraint:
    found = resolved_rules(snapshot)[number]
    rule, kind = found.rule, KINDS[found.rule.kind]
    return kind.constraint(
        form=kind.form(snapshot, found),
        vms=_standing(snapshot).concerned[number],
        groups=(rule.id,),
        hard=rule.enforcing,
        priority=rule.priority,
        continuous=rule.continuous,
    )


def find_paths(node: str, follows: Mapping[str, Collection[str]]) -> Mapping[str, str]:
    """All that a node leads to, perhaps itself, each with the last node of a shortest way to it."""
    before: dict[str, str] = {}
    ends = [node]
    for end in ends:
        new = [one for one in follows[end] if one not in before]
        before |= dict.fromkeys(new, end)
        ends += new
    return before


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


class _Standing(Record, frozen=True):
    """What stays as it is as long as every rule names the same VMs and hosts."""

    #: The VMs that each rule is about, in an order that is not that of the snapshot.
    concerned: tuple[tuple[str, ...], ...]
    #: The rules that are about each VM, by their numbers.
    numbers_of: Mapping[str, Sequence[int]]
    orders: Orders


@continued
def _standing(snapshot: Snapshot, earlier: Earlier | None) -> _Standing:
    every = resolved_rules(snapshot)
    if earlier is not None and every is resolved_rules(earlier.snapshot):
        return _standing(earlier.snapshot)
    in_force = [found if is_in_force(found) else None for found in every]
    concerned = tuple(
        KINDS[found.rule.kind].concerned(snapshot, found) if found and found.rule.kind in KINDS else ()
        for found in in_force
    )
    numbers_of = grouped((vm, number) for number, vms in enumerate(concerned) for vm in vms)
    ordering = [found for found in in_force if found and found.rule.kind == RESTART_AFTER.name]
    return _Standing(concerned, numbers_of, _orders(ordering))


def restart_orders(snapshot: Snapshot) -> Orders:
    """What the rules in force ask, without what goes in a circle, and one circle of each knot."""
    return _standing(snapshot).orders


def _orders(rules: list[Resolved]) -> Orders:
    graph = _graph(rules)
    ways = {found.rule.id: find_paths(found.rule.id, graph) for found in rules}
    after: defaultdict[str, list[After]] = defaultdict(list)
    for found in rules:
        others = frozenset(found.other_vms)
        for vm in found.vms:
            left = others
            if vm in ways[found.rule.id]:
                # Without those that restart after the VM themselves.
                left = frozenset(
                    one for one in others if one != vm and all(vm not in ways[rule] for rule in graph[one])
                )
            if left:
                after[vm].append(After(found.rule.id, left))
    return Orders({vm: tuple(some) for vm, some in after.items()}, tuple(_circles(rules, ways)))


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
    """In a sentence, why a rule of the kind orders nothing; nothing where it does, or names no VM."""
    if found.rule.kind != RESTART_AFTER.name or not is_in_force(found):
        return
    for words, vms in ((found.rule.vms, found.vms), (found.rule.other_vms, found.other_vms)):
        if vms and not any(snapshot.vm_by_id[vm].ha for vm in vms):
            yield f"the engine restarts nothing that {', '.join(words)} names: it is not highly available"


def not_waiting(snapshot: Snapshot, found: Resolved) -> tuple[str, ...]:
    """The VMs of a rule that the engine may restart too early: it waits by priority alone.

    Only a VM of a lower priority than all that it is to restart after surely restarts after them.
    """
    known, after = snapshot.vm_by_id, restart_orders(snapshot).after

    def waits(vm: str) -> bool:
        others = (known[other] for one in after.get(vm, ()) if one.rule == found.rule.id for other in one.vms)
        return all(other.ha_priority > known[vm].ha_priority for other in others if other.ha)

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
        node, back = found.rule.id, ways[found.rule.id]
        way = [back[node]] if node in back else []
        while way and way[-1] != node:
            way.append(back[way[-1]])
        way.reverse()
        if way and frozenset(way) not in seen:
            seen.add(frozenset(way))
            # It begins with a rule: rule, VM, rule, VM ...; each VM waits by the rule after it.
            yield Circle(vms=tuple(way[1::2]), rules=(*way[2::2], way[0]))


def rule_problems(snapshot: Snapshot, found: Resolved) -> Iterator[str]:
    """In a sentence each: words that name nothing, numbers that cannot be, orders in a circle."""
    yield from found.problems
    kind = KINDS.get(found.rule.kind)
    if kind is not None and found.cluster and found.rule.enabled and next(mistakes(found.rule), None) is None:
        hosts = frozenset(host.id for host in snapshot.hosts_of_cluster.get(found.cluster, ()))
        yield from kind.impossible(found, hosts)
    yield from why_circular(snapshot, found.rule.id)
    yield from why_without_effect(snapshot, found)
