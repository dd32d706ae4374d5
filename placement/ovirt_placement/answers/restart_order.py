"""When a VM restarts after a failure: by the engine's priority, and by rules that it does not know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.model.names import Named, NamedGroup, named_group, named_host, named_vm, named_vms
from ovirt_placement.model.record import Record
from ovirt_placement.rules.failover.restart_order import restart_order
from ovirt_placement.rules.placement_rules.in_force import is_in_force
from ovirt_placement.rules.placement_rules.members import resolved_rules
from ovirt_placement.rules.placement_rules.restart_after import KIND
from ovirt_placement.rules.placement_rules.restart_order import not_waiting, restart_orders


class RestartsAfter(Record, frozen=True, omit_defaults=False):
    """A VM that another one restarts after, and the rule that asks for it."""

    vm: Named
    rule: NamedGroup
    #: Whether the engine waits: it does for VMs of a higher priority alone.
    engine_waits: bool


class Restart(Record, frozen=True, omit_defaults=False):
    """When a highly available VM restarts if its host fails."""

    #: The more, the earlier.
    priority: int
    after: tuple[RestartsAfter, ...]
    #: Where it runs now; null, as all below, if it does not.
    host: Named | None
    #: Its place among the VMs that restart if the host fails; 1 is first. The two differ where nothing says
    #: more.
    earliest: int | None
    latest: int | None
    of: int | None


class PriorityClass(Record, frozen=True, omit_defaults=False):
    """VMs of one priority, in an order in which they may restart."""

    priority: int
    vms: tuple[Named, ...]


class NotWaiting(Record, frozen=True, omit_defaults=False):
    """A rule of the restart order, and the VMs that the engine may restart too early by their priorities."""

    rule: NamedGroup
    vms: tuple[Named, ...]


def restart_of(snapshot: Snapshot, vm: Vm) -> Restart | None:
    """When a VM restarts; None if it is not highly available."""
    if not vm.ha:
        return None
    after = tuple(
        RestartsAfter(
            named_vm(other, snapshot),
            named_group(asked.rule, snapshot),
            snapshot.vm_by_id[other].ha_priority > vm.ha_priority,
        )
        for asked in restart_orders(snapshot).after.get(vm.id, ())
        for other in sorted(asked.vms)
        if snapshot.vm_by_id[other].ha
    )
    if vm.host is None or vm.host not in snapshot.host_by_id:
        return Restart(vm.ha_priority, after, None, None, None, None)
    lost = [one.id for one in snapshot.vms_of_host[vm.host] if one.ha]
    rank = restart_order(snapshot).rank(vm.id, lost)
    host = named_host(vm.host, snapshot)
    return Restart(vm.ha_priority, after, host, rank.earliest, rank.latest, len(lost))


def priority_classes(snapshot: Snapshot, vms: Iterable[str]) -> tuple[PriorityClass, ...]:
    """VMs in the order in which they would restart if all did, the highest priority first."""
    order = restart_order(snapshot)
    classes: dict[int, list[str]] = {}
    for vm in order.ordered(vms):
        classes.setdefault(order.priority(vm), []).append(vm)
    return tuple(PriorityClass(priority, named_vms(some, snapshot)) for priority, some in classes.items())


def not_waited(snapshot: Snapshot, cluster: str) -> Iterator[NotWaiting]:
    """The rules of a cluster that the engine's priorities do not bring about."""
    for found in resolved_rules(snapshot):
        asked = found.cluster == cluster and found.rule.kind == KIND.name and is_in_force(found)
        if asked and (vms := not_waiting(snapshot, found)):
            yield NotWaiting(named_group(found.rule.id, snapshot), named_vms(vms, snapshot))


# -- in words


def restart_text(name: str, restart: Restart) -> str:
    """In a line, when a VM restarts."""
    text = f"restart priority {restart.priority}"
    if restart.host is not None:
        exact = restart.earliest == restart.latest
        place = f"{restart.earliest}" if exact else f"{restart.earliest} to {restart.latest}"
        text += f"; if {restart.host.name} fails, {name} is number {place} of {restart.of} to restart"
    return text


def after_text(name: str, after: RestartsAfter) -> str:
    """In a line, what a VM restarts after, and whether the engine waits for it."""
    waits = (
        "the engine waits for its higher priority"
        if after.engine_waits
        else "the engine does not wait: its priority is not higher"
    )
    return f"{name} is to restart after {after.vm.name} ({after.rule.title}): {waits}"
