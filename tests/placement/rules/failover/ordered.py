"""Restarts in an order written down a second time: every sequence of starts, and which of them are in order.

It shares no code with the rules: of the product it knows the records of a snapshot alone.
"""

from collections.abc import Iterator
from itertools import permutations

from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from tests.builders import needed_mb
from tests.placement.rules.placement_rules.oracle import lets, running

Sequence = tuple[tuple[str, str], ...]


def failed(state: Snapshot, host: str) -> Snapshot:
    return replace(
        state,
        hosts=tuple(replace(one, status="down") if one.id == host else one for one in state.hosts),
        vms=tuple(replace(one, host=None, status="down") if one.host == host else one for one in state.vms),
    )


def members(state: Snapshot, words: tuple[str, ...]) -> set[str]:
    return {vm.id for vm in state.vms for word in words if word == vm.id or word[len("tag:") :] in vm.tags}


def asked(state: Snapshot) -> set[tuple[str, str]]:
    """All pairs of which the first is to restart after the second, but those that go round."""
    pairs = {
        (later, earlier)
        for rule in state.placement_rules
        if rule.kind == "restart_after" and rule.enabled
        for later in members(state, rule.vms)
        for earlier in members(state, rule.other_vms)
    }
    whole = set(pairs)
    for middle in [vm.id for vm in state.vms]:
        whole |= {(one, other) for one, to in whole for of, other in whole if to == middle == of}
    return {pair for pair in pairs if pair[::-1] not in whole}


def in_order(state: Snapshot, sequence: tuple[str, ...]) -> bool:
    """Whether no VM starts before one that must restart earlier."""
    pairs, priority = asked(state), {vm.id: vm.ha_priority for vm in state.vms}
    return not any(
        priority[late] > priority[early] or (priority[late] == priority[early] and (early, late) in pairs)
        for number, early in enumerate(sequence)
        for late in sequence[number + 1 :]
    )


def sequences(state: Snapshot, host: str) -> Iterator[Sequence]:
    """Every way to start all highly available VMs of a failed host, each start let through."""
    after = failed(state, host)
    lost = [vm.id for vm in state.vms if vm.host == host and vm.ha]
    for order in permutations(lost):
        yield from _started(after, running(after), order, ())


def _started(
    state: Snapshot, at: dict[str, str], order: tuple[str, ...], done: Sequence
) -> Iterator[Sequence]:
    if not order:
        yield done
        return
    first, *others = order
    for name in takers(state, at, first):
        yield from _started(state, {**at, first: name}, tuple(others), (*done, (first, name)))


def takers(state: Snapshot, at: dict[str, str], vm: str) -> list[str]:
    """The hosts that let a VM start, with VMs where they are."""
    rules = [rule for rule in state.placement_rules if rule.kind != "restart_after"]
    return [
        host.id
        for host in state.hosts
        if host.status == "up"
        and _fits(state, at, vm, host.id)
        and all(lets(rule, state, at, vm, host.id) for rule in rules)
    ]


def _fits(state: Snapshot, at: dict[str, str], vm: str, host: str) -> bool:
    """Memory of those that have started since is taken; `free_mb` has that of the others off already."""
    known = state.vm_by_id[vm]
    begun = [state.vm_by_id[one] for one, there in at.items() if there == host]
    taken = sum(needed_mb(one) for one in begun if one.host is None)
    bound = known.migratable or not known.pinned_hosts or host in known.pinned_hosts
    return bound and taken + needed_mb(known) <= state.host_by_id[host].free_mb
