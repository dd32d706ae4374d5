"""Plans as an administrator reads them, with names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ovirt_placement.answers.names import group_name, host_name, vm_name
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import Failure, Plan, Refused, Remaining, Reservation, Step, StepPurpose

#: What steps are for that concern no broken group.
_PURPOSES = {
    StepPurpose.ROOM: "makes room for the next steps",
    StepPurpose.BACK: "goes back to where it was",
    StepPurpose.ON: "goes on from where it stepped aside to",
    StepPurpose.KEYS: "to a host that its placement keys accept",
}
#: So many failures that are not survived are told of in words; data have them all.
_MOST_FAILURES = 10


def text(plan: Plan, snapshot: Snapshot) -> str:
    """A plan in lines: what it comes to, each step with its reason, what stays broken and why."""
    lines = [f"Cluster {snapshot.cluster_by_id[plan.cluster].name}: {_summary(plan)}"]
    lines += steps_text(plan, snapshot)
    if plan.crowded:
        lines.append(f"  Takes of the headroom of {_hosts(plan.crowded, snapshot)}: {_needs_it(plan)}")
    for rule in plan.remaining:
        lines.append(f"  Stays broken: {rule_text(rule, snapshot)} ({_vms(rule.vms, snapshot)})")
        lines += (f"    - {reason}" for reason in rule.because)
    if plan.reservation is not None:
        lines += (f"  {line}" for line in reservation_text(plan.reservation, snapshot))
    return "\n".join(lines)


def _needs_it(plan: Plan) -> str:
    reserves = any(step.reserves for step in plan.steps)
    return "a hard rule or the HA reservation needs it" if reserves else "a hard rule needs it"


def steps_text(plan: Plan, snapshot: Snapshot) -> Iterator[str]:
    """The steps, numbered from 1, with those that each waits for."""
    for number, step in enumerate(plan.steps, 1):
        yield f"  {number}. {step_text(step, snapshot)}{_after(step)}"


def reservation_text(reservation: Reservation, snapshot: Snapshot) -> Iterator[str]:
    """What highly available VMs do not survive even then; nothing, where they survive all."""
    if not reservation.known:
        yield "It is not known whether the HA reservation holds: not all failures could be judged"
    if reservation.lost:
        yield "The HA reservation stays broken: " + (
            "no legal migrations restore it"
            if reservation.proven
            else "no migrations that restore it were found; not all could be tried"
        )
    for failure in reservation.lost[:_MOST_FAILURES]:
        vms = _vms(failure.vms, snapshot)
        yield f"  - if {_failing(failure, snapshot)} failed, no home would be left for {vms}"
    if more := len(reservation.lost[_MOST_FAILURES:]):
        yield f"  - and {more} more failures"


def _failing(failure: Failure, snapshot: Snapshot) -> str:
    if failure.domains:
        return "failure domain " + " and ".join(failure.domains)
    names = " and ".join(host_name(host, snapshot) for host in failure.hosts)
    return f"host{'s' * (len(failure.hosts) > 1)} {names}"


def _summary(plan: Plan) -> str:
    if not plan.steps and not plan.remaining:
        lost = plan.reservation is not None and plan.reservation.lost
        return "every affinity rule holds, but the HA reservation does not." if lost else "every rule holds."
    if not plan.steps:
        return (
            "no migration repairs what is broken."
            if plan.proven
            else "no way to repair what is broken was found."
        )
    count = f"{plan.migrations} migration{'s' if plan.migrations > 1 else ''}"
    if plan.proven:
        return f"{count}, the fewest that repair all that can be repaired ({plan.strategy})."
    needed = f"at least {plan.at_least} {'is' if plan.at_least == 1 else 'are'} needed, and "
    return f"{count} ({plan.strategy}); {needed if plan.at_least else ''}not all plans could be tried."


def rule_text(rule: Remaining, snapshot: Snapshot) -> str:
    """Which rule it is, with what it asks."""
    named = _groups(rule.groups, snapshot) or "placement keys"
    return f"{named}, {'hard' if rule.hard else 'soft'}: {rule.asks}"


def step_text(step: Step, snapshot: Snapshot) -> str:
    """Who goes where, and what for."""
    moves = ", ".join(
        f"{vm_name(vm, snapshot)} from {host_name(source, snapshot)}"
        for vm, source in zip(step.vms, step.sources, strict=True)
    )
    together = " (at once, as one group)" if step.closure else ""
    return f"{moves} to {host_name(step.target, snapshot)}{together}: {reason_text(step, snapshot)}"


def dropped_text(dropped: Refused, snapshot: Snapshot) -> str:
    """A step that the search took for legal and a rule refuses."""
    because = "; ".join(dropped.because) or "the rules refuse it"
    return f"dropped from the plan: {step_text(dropped.step, snapshot)}: {because}"


def reason_text(step: Step, snapshot: Snapshot) -> str:
    """What a step is for."""
    if step.repairs:
        return f"repairs {_groups(step.repairs, snapshot)}"
    if step.reserves:
        return "for the HA reservation"
    if step.groups:
        return f"helps to repair {_groups(step.groups, snapshot)}"
    return _PURPOSES[step.purpose]


def _after(step: Step) -> str:
    if not step.after:
        return ""
    return f" (after {', '.join(str(number + 1) for number in step.after)})"


def _groups(groups: Iterable[str], snapshot: Snapshot) -> str:
    return " and ".join(group_name(group, snapshot) for group in groups)


def _vms(vms: Iterable[str], snapshot: Snapshot) -> str:
    return ", ".join(vm_name(vm, snapshot) for vm in vms)


def _hosts(hosts: Iterable[str], snapshot: Snapshot) -> str:
    return ", ".join(host_name(host, snapshot) for host in hosts)
