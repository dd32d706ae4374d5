"""How each affinity group of a cluster stands: where its members run, and which of its rules that breaks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_placement.model.names import Named, host_name, vm_name
from ovirt_placement.model.record import Record
from ovirt_placement.rules.violations import Violation, find_violations


class BrokenRule(Record, frozen=True):
    """A rule of the group that does not hold now."""

    #: What it asks of its VMs: "together", "apart", "on its hosts" or "off its hosts".
    asks: str
    hard: bool
    #: Members that stand wrong.
    offenders: tuple[Named, ...]
    #: Groups that shared members tie to this one: where it is broken only together with them.
    only_with: tuple[Named, ...] = ()


class RunningMember(Record, frozen=True):
    vm: Named
    host: Named


class GroupState(Record, frozen=True):
    """What stands beside a group in a list."""

    #: Whether it asks for anything.
    enabled: bool
    broken_rules: tuple[BrokenRule, ...]
    #: Members that run, those that a label brings included.
    running: tuple[RunningMember, ...]

    @property
    def broken(self) -> bool:
        return bool(self.broken_rules)


def judge(snapshot: Snapshot, cluster: str) -> dict[str, GroupState]:
    """The state of every group of a cluster, by group id."""
    broken: dict[str, list[BrokenRule]] = defaultdict(list)
    for violation in find_violations(snapshot, cluster):
        for group in violation.groups:
            broken[group].append(_broken_rule(violation, group, snapshot))
    return {
        group.id: GroupState(
            enabled=group.vms_rule.enabled or group.hosts_rule.enabled,
            broken_rules=tuple(broken[group.id]),
            running=tuple(_running(group, snapshot)),
        )
        for group in snapshot.affinity_groups
        if group.cluster == cluster
    }


def in_words(state: GroupState) -> str:
    """The state in a word, and on a line for each what is broken."""
    if state.broken:
        return "\n".join(_broken_in_words(rule) for rule in state.broken_rules)
    return "kept" if state.enabled else "disabled"


def _broken_in_words(rule: BrokenRule) -> str:
    tied = f" (with {', '.join(group.name for group in rule.only_with)})" if rule.only_with else ""
    return f"broken: {rule.asks}{tied}"


def _broken_rule(violation: Violation, group: str, snapshot: Snapshot) -> BrokenRule:
    alone = group in violation.broken
    return BrokenRule(
        asks=violation.constraint.asks,
        hard=violation.hard,
        offenders=tuple(Named(vm, vm_name(vm, snapshot)) for vm in violation.offenders),
        only_with=()
        if alone
        else tuple(
            Named(other, snapshot.group_by_id[other].name) for other in violation.groups if other != group
        ),
    )


def _running(group: AffinityGroup, snapshot: Snapshot) -> Iterator[RunningMember]:
    for vm in snapshot.group_vms[group.id]:
        known = snapshot.vm_by_id.get(vm)
        if known is not None and known.host is not None:
            yield RunningMember(Named(vm, known.name), Named(known.host, host_name(known.host, snapshot)))
