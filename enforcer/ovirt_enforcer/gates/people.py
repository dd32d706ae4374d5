"""What people asked for or do: modes, pauses, maintenance, exclusions, approvals, patience, time windows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from math import inf
from typing import Final

from ovirt_enforcer.gates.gate import HOUR_SECONDS, Facts, Gate, HostAction, begun_ago, why_for_nothing
from ovirt_enforcer.settings import Mode, Window
from ovirt_placement.answers.document import upgrade_text
from ovirt_placement.model import Cluster, Host, Vm
from ovirt_placement.model.names import fits, group_name, named, named_group, value_of
from ovirt_placement.planning.plan import Plan, Step, StepPurpose
from ovirt_placement.rules.catalogue import Violation
from ovirt_placement.store.enforcer.intents import IntentKind
from ovirt_placement.store.orders import ALL_CLUSTERS, Approval, ApprovedMove

#: From the strictest, with what is said of the whole enforcer.
_IN_MODE: Final = {
    Mode.OBSERVE: "ovirt-enforcer is in observe mode: nothing is migrated;"
    ' set mode = "enforce" in [enforcer]',
    Mode.APPROVE: "ovirt-enforcer is in approve mode",
    Mode.ENFORCE: "",
}


def why_cluster_as_strict(facts: Facts, cluster: str, mode: Mode) -> str | None:
    """What makes its mode as strict as this one, or stricter; None if nothing does."""
    if _as_strict(facts.settings.mode, mode):
        return _IN_MODE[facts.settings.mode]
    name = facts.snapshot.cluster_by_id[cluster].name
    of_cluster = value_of(facts.settings.clusters, cluster, name)
    if of_cluster is not None and _as_strict(of_cluster, mode):
        return f"cluster {name} is in mode {of_cluster}"
    return None


def why_group_as_strict(facts: Facts, group: str, mode: Mode) -> str | None:
    """The same of a group by itself, whatever its cluster's mode."""
    own = value_of(facts.settings.groups, group, named_group(group, facts.snapshot).name)
    if own is None or not _as_strict(own, mode):
        return None
    return f"{group_name(group, facts.snapshot)} is in mode {own}"


def _as_strict(mode: Mode, other: Mode) -> bool:
    return [*_IN_MODE].index(mode) <= [*_IN_MODE].index(other)


def _why_only_observed(facts: Facts, group: str) -> str | None:
    """Of groups that are only observed while others of their cluster are repaired.

    Where all of a cluster is observed, its plans show what would be done.
    """
    observed = facts.settings.mode is Mode.OBSERVE
    return None if observed else why_group_as_strict(facts, group, Mode.OBSERVE)


#: In mode observe nothing is migrated before the configuration says so.
MODE: Final = Gate(
    name="mode",
    cluster=lambda facts, cluster: why_cluster_as_strict(facts, cluster, Mode.OBSERVE),
    group=_why_only_observed,
)


def _why_paused(facts: Facts, cluster: str) -> str | None:
    # What was set while the engine was away may have the cluster's name in place of its id.
    here = (ALL_CLUSTERS, cluster, facts.snapshot.cluster_by_id[cluster].name)
    return next((pause.sentence for pause in facts.pauses if pause.cluster in here), None)


PAUSE: Final = Gate(name="pause", cluster=_why_paused)


def _why_upgraded(facts: Facts, cluster: str) -> str | None:
    """While another upgrades a cluster its hosts are emptied, and each move is in the way."""
    known = facts.snapshot.cluster_by_id[cluster]
    own = known.upgrade_correlation_id in facts.own_upgrades
    return upgrade_text(known) if known.upgrade_mode and not own else None


CLUSTER_UPGRADE: Final = Gate(
    name="cluster_upgrade",
    cluster=_why_upgraded,
    # What brings back what is out of service does not disturb the upgrade.
    at_any_time=(IntentKind.UPGRADE_HOST, IntentKind.ACTIVATE_HOST, IntentKind.START_VM),
)

_STATUSES: Final = {"maintenance": "is in maintenance", "preparing_for_maintenance": "goes into maintenance"}


def _why_in_maintenance(facts: Facts, host: Host) -> str | None:
    """In maintenance or on its way there: the engine empties it, and it stays so."""
    return f"host {host.name} {_STATUSES[host.status]}" if host.status in _STATUSES else None


HOST_MAINTENANCE: Final = Gate(name="host_maintenance", host=_why_in_maintenance)


def _why_action_left_alone(facts: Facts, cluster: str, action: HostAction) -> str | None:
    vm = facts.snapshot.vm_by_id.get(action.vm)
    host = facts.snapshot.host_by_id.get(action.host)
    return (vm and _why_vm(facts, vm)) or (host and _why_host(facts, host)) or None


def _why_vm(facts: Facts, vm: Vm) -> str | None:
    if facts.settings.maintenance.moves_excluded_vms and vm.host in facts.snapshot.draining_hosts:
        return None
    return _why_excluded(facts, facts.settings.exclude_vms, vm, vm.name, "exclude_vms")


def _why_host(facts: Facts, host: Host) -> str | None:
    return _why_excluded(facts, facts.settings.exclude_hosts, host, f"host {host.name}", "exclude_hosts")


def _why_excluded(
    facts: Facts, excluded: Sequence[str], one: Vm | Host, title: str, setting: str
) -> str | None:
    if named(excluded, one.id, one.name):
        return f"{title} is among {setting}"
    tag = facts.settings.exclude_tag
    if one.id in facts.tagged or any(fits(tag, other) for other in one.tags):
        return f"{title} bears the tag {tag}"
    return None


def _why_group(facts: Facts, group: str) -> str | None:
    if named(facts.settings.exclude_groups, group, named_group(group, facts.snapshot).name):
        return f"{group_name(group, facts.snapshot)} is among exclude_groups"
    return None


#: What was opted out: VMs, hosts in both directions, and groups, by list or by tag.
EXCLUSION: Final = Gate(
    name="exclusion", vm=_why_vm, host=_why_host, group=_why_group, action=_why_action_left_alone
)


#: What waits is approved of by this.
COMMAND: Final = "ovirt-enforcer approve"


def why_unapproved(facts: Facts, cluster: str, step: Step) -> str | None:
    """In mode approve, until a person approves of the plan: of this one, and of no other.

    An approval is used up step by step. What is left of the plan that was approved of must be what is left
    of the plan that is to be carried out. Where the cluster changed beneath it, so that another plan was
    made, that one waits.
    """
    strict = why_cluster_as_strict(facts, cluster, Mode.APPROVE) or why_for_nothing(
        step, facts.plan, lambda group: why_group_as_strict(facts, group, Mode.APPROVE)
    )
    if strict is None or empties(step, facts):
        return None
    plan = facts.plan or Plan(cluster=cluster, strategy="", steps=(step,))
    lets = facts.refused.get(plan.id, f'"{COMMAND} {plan.id}" lets it')
    wanted = f"{strict}: {lets}"
    approval = next((one for one in facts.approvals if one.cluster == cluster), None)
    if approval is None:
        return wanted
    if approval.age_seconds >= facts.settings.approval_hours * HOUR_SECONDS:
        return f"the approval of plan {approval.plan} by {approval.set_by} has expired; {wanted}"
    left = _left(approval.moves, approval, facts)
    if not left:
        return wanted
    own = ApprovedMove(step.vms, step.sources, step.target)
    if left != _left(moves(plan), approval, facts) or own not in left:
        return f"plan {approval.plan} was approved of, and the cluster has changed since; {wanted}"
    return None


APPROVAL: Final = Gate(
    name="approval", step=why_unapproved, reach=lambda settings: settings.approval_hours * HOUR_SECONDS
)


def empties(step: Step, facts: Facts) -> bool:
    """Whether it takes VMs off a host whose maintenance a person has requested: that is their word."""
    draining = facts.snapshot.draining_hosts
    return step.purpose is StepPurpose.MAINTENANCE and all(host in draining for host in step.sources)


def moves(plan: Plan) -> tuple[ApprovedMove, ...]:
    return tuple(ApprovedMove(step.vms, step.sources, step.target) for step in plan.steps)


def _left(planned: Iterable[ApprovedMove], approval: Approval, facts: Facts) -> frozenset[ApprovedMove]:
    used = {
        (intent.vm, intent.source, intent.target)
        for intent in (*facts.ended, *facts.open_intents)
        if begun_ago(intent) < approval.age_seconds
    }
    return frozenset(
        move
        for move in planned
        if not any((vm, at, move.target) in used for vm, at in zip(move.vms, move.sources, strict=True))
    )


def _why_on_hold(facts: Facts, cluster: str, step: Step) -> str | None:
    """Until a rule was violated in some cycles: much repairs itself, or is still being changed."""
    if facts.settings.hold_cycles == 1:
        return None
    cycles = _cycles_of_groups(facts.violated_cycles)
    return why_for_nothing(step, facts.plan, lambda group: _why_held(facts, group, cycles.get(group, 0)))


def _groups_on_hold(facts: Facts) -> Mapping[str, str]:
    cycles = _cycles_of_groups(facts.violated_cycles)
    held = ((group, _why_held(facts, group, count)) for group, count in cycles.items())
    return {group: why for group, why in held if why is not None}


HOLD: Final = Gate(name="hold", step=_why_on_hold, groups=_groups_on_hold)


def rule_key(violation: Violation) -> str:
    """What identifies a violated rule from one cycle to the next: its groups, and which half it is."""
    hardness = "hard" if violation.hard else "soft"
    return " ".join((violation.constraint.family, hardness, *sorted(violation.groups)))


def _cycles_of_groups(violated: Mapping[str, int]) -> Mapping[str, int]:
    """The cycles of the rule of each group that has been violated longest."""
    longest: dict[str, int] = {}
    for key, cycles in violated.items():
        for group in key.split(" ")[2:]:
            longest[group] = max(cycles, longest.get(group, 0))
    return longest


def _why_held(facts: Facts, group: str, cycles: int) -> str | None:
    wanted = facts.settings.hold_cycles
    if cycles >= wanted:
        return None
    return f"{group_name(group, facts.snapshot)} was violated in {cycles} of {wanted} cycles (hold_cycles)"


def _why_outside(facts: Facts, cluster: str) -> str | None:
    """Outside of the windows of a cluster, where it has any, and within a blackout of it."""
    here = facts.snapshot.cluster_by_id[cluster]
    for window in _windows_of(here, facts.settings.blackouts):
        if window.seconds_left(facts.now) > 0:
            return f'it is within the blackout "{window.start}" for {window.hours:g} h ({window.time_zone})'
    opening = _opening(facts, here)
    if opening is None:
        return None
    return f"it is outside of the windows; the next one opens at {opening.isoformat(' ', 'minutes')}"


def _until_opening(facts: Facts, cluster: str) -> float:
    """Until a window opens or a blackout ends, whichever is first: another one may hold it still."""
    here = facts.snapshot.cluster_by_id[cluster]
    ends = (one.seconds_left(facts.now) for one in _windows_of(here, facts.settings.blackouts))
    opening = _opening(facts, here)
    opens = inf if opening is None else opening.timestamp() - facts.now.timestamp()
    return min((opens, *filter(None, ends)))


WINDOWS: Final = Gate(
    name="windows",
    cluster=_why_outside,
    # A host that is out of service is brought back at any time.
    at_any_time=(IntentKind.ACTIVATE_HOST, IntentKind.START_VM),
    seconds_left=_until_opening,
)


def _opening(facts: Facts, cluster: Cluster) -> datetime | None:
    """When the next window of a cluster opens; None if one is open, or there is none."""
    windows = tuple(_windows_of(cluster, facts.settings.windows))
    if not windows or any(window.seconds_left(facts.now) for window in windows):
        return None
    return min((window.next_start(facts.now) for window in windows), key=lambda at: at.timestamp())


def _windows_of(cluster: Cluster, windows: Sequence[Window]) -> Iterator[Window]:
    return (each for each in windows if not each.clusters or named(each.clusters, cluster.id, cluster.name))
