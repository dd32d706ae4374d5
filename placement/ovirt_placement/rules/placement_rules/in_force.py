"""The placement rules that are in force, of every kind: as constraints, of a cluster and of a VM."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path

from ovirt_placement.lookups.index import Earlier, continued, once_per_snapshot
from ovirt_placement.model import PlacementRule, Snapshot
from ovirt_placement.model.placement_rules import SEARCH
from ovirt_placement.rules.placement_rules.domains import MINIMUM_DOMAINS, SAME_DOMAIN, SPREAD
from ovirt_placement.rules.placement_rules.host_sets import CAPACITY, COUNTED, EXCLUSIVE_HOSTS
from ovirt_placement.rules.placement_rules.kind import (
    RESTART_AFTER,
    PlacementConstraint,
    PlacementKind,
    RuleKind,
)
from ovirt_placement.rules.placement_rules.limits import AT_MOST_PER_DOMAIN, AT_MOST_PER_HOST, SEPARATE
from ovirt_placement.rules.placement_rules.members import Resolved, resolved_rules


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
    return [_constraint(snapshot, number) for number in _numbers_by_vm(snapshot).get(vm, ())]


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
    yield from _wrong_searches(rule)
    yield from _wrong_numbers(rule)


def _wrong_searches(rule: PlacementRule) -> Iterator[str]:
    for _, text in rule.searches:
        if not text.strip():
            yield f"{SEARCH} needs what to search for"
        elif _ORDERED.search(_QUOTED.sub("", text)):
            yield f"{SEARCH}{text}: a search for members takes neither sortby nor page"


def _wrong_numbers(rule: PlacementRule) -> Iterator[str]:
    for field in ("most", "least", "max_skew", "min_domains"):
        number, lowest = getattr(rule, field), int(rule.kind != CAPACITY.name)
        if number is not None and number < lowest:
            yield f"{field}: {number} is less than {lowest}"
    if rule.counted not in COUNTED:
        yield f"counted: {rule.counted} is not one of {', '.join(COUNTED)}"


def is_in_force(found: Resolved) -> bool:
    """Whether a rule counts: it is enabled, it is known who its members are, and nothing is wrong with it."""
    known = found.cluster is not None and found.searches_answered and not found.unknown
    return found.rule.enabled and known and next(mistakes(found.rule), None) is None


def not_known_yet(snapshot: Snapshot, cluster: str) -> list[str]:
    """Rules of a cluster of which nobody knows yet who they are about, each with the reason."""
    return [
        f"placement rule {found.rule.name}: {found.unknown[0]}"
        for found in resolved_rules(snapshot)
        if found.cluster == cluster and found.rule.enabled and found.unknown
    ]


@once_per_snapshot
def _constraint(snapshot: Snapshot, number: int) -> PlacementConstraint:
    found = resolved_rules(snapshot)[number]
    return KINDS[found.rule.kind].make(snapshot, found, _concerned(snapshot)[number])


@continued
def _concerned(snapshot: Snapshot, earlier: Earlier | None) -> tuple[tuple[str, ...], ...]:
    """The VMs that each rule is about, in an order that is not that of the snapshot."""
    if earlier is not None and resolved_rules(snapshot) is resolved_rules(earlier.snapshot):
        return _concerned(earlier.snapshot)
    return tuple(
        KINDS[found.rule.kind].concerned(snapshot, found)
        if found.rule.kind in KINDS and is_in_force(found)
        else ()
        for found in resolved_rules(snapshot)
    )


@continued
def _numbers_by_vm(snapshot: Snapshot, earlier: Earlier | None) -> Mapping[str, list[int]]:
    """The rules that are about each VM, by their numbers."""
    if earlier is not None and resolved_rules(snapshot) is resolved_rules(earlier.snapshot):
        return _numbers_by_vm(earlier.snapshot)
    found: defaultdict[str, list[int]] = defaultdict(list)
    for number, vms in enumerate(_concerned(snapshot)):
        for vm in vms:
            found[vm].append(number)
    return found
