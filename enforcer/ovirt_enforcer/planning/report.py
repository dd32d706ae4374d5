"""Plans as an administrator reads them, with names, and as data for programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ovirt_enforcer.planning.plan import Plan, Refused, Remaining, Step
from ovirt_placement.answers.names import group_name, host_name, vm_name
from ovirt_placement.model import Snapshot


def text(plan: Plan, snapshot: Snapshot) -> str:
    """A plan in lines: what it comes to, each step with its reason, what stays broken and why."""
    lines = [f"Cluster {snapshot.cluster_by_id[plan.cluster].name}: {_summary(plan)}"]
    lines += (f"  {number}. {step_text(step, snapshot)}" for number, step in enumerate(plan.steps, 1))
    for group in plan.remaining:
        lines.append(f"  Stays broken: {_groups(group.groups, snapshot)} ({_vms(group.vms, snapshot)})")
        lines += (f"    - {reason}" for reason in group.because)
    return "\n".join(lines)


def _summary(plan: Plan) -> str:
    if not plan.steps and not plan.remaining:
        return "every hard VM rule holds."
    if not plan.steps:
        return "no migration can mend what is broken."
    count = f"{plan.migrations} migration{'s' if plan.migrations > 1 else ''}"
    if plan.proven:
        return f"{count}, the fewest that mend all that can be mended."
    return f"{count}; at least {plan.at_least} are needed, and not all plans could be tried."


def step_text(step: Step, snapshot: Snapshot) -> str:
    moves = ", ".join(
        f"{vm_name(vm, snapshot)} from {host_name(source, snapshot)}"
        for vm, source in zip(step.vms, step.sources, strict=True)
    )
    together = " (at once, as one group)" if step.closure else ""
    return f"{moves} to {host_name(step.target, snapshot)}{together}: {_purpose(step, snapshot)}"


def dropped_text(dropped: Refused, snapshot: Snapshot) -> str:
    """A step that the search took for legal and a rule refuses."""
    because = "; ".join(dropped.because) or "the rules refuse it"
    return f"dropped from the plan: {step_text(dropped.step, snapshot)}: {because}"


def _purpose(step: Step, snapshot: Snapshot) -> str:
    if step.mends:
        return f"mends {_groups(step.mends, snapshot)}"
    if step.groups:
        return f"helps to mend {_groups(step.groups, snapshot)}"
    return "makes room for the next steps"


def data(plan: Plan, snapshot: Snapshot) -> dict[str, Any]:
    """A plan for programs: ids with names beside them."""
    return {
        "cluster": {"id": plan.cluster, "name": snapshot.cluster_by_id[plan.cluster].name},
        "migrations": plan.migrations,
        "proven": plan.proven,
        "at_least": plan.at_least,
        "steps": [_step_data(step, snapshot) for step in plan.steps],
        "remaining": [_remaining_data(group, snapshot) for group in plan.remaining],
    }


def _step_data(step: Step, snapshot: Snapshot) -> dict[str, Any]:
    return {
        "vms": [
            {"id": vm, "name": vm_name(vm, snapshot), "from": _host_data(source, snapshot)}
            for vm, source in zip(step.vms, step.sources, strict=True)
        ],
        "to": _host_data(step.target, snapshot),
        "closure": step.closure,
        "groups": [_group_data(group, snapshot) for group in step.groups],
        "mends": [_group_data(group, snapshot) for group in step.mends],
    }


def _remaining_data(group: Remaining, snapshot: Snapshot) -> dict[str, Any]:
    return {
        "groups": [_group_data(one, snapshot) for one in group.groups],
        "vms": [{"id": vm, "name": vm_name(vm, snapshot)} for vm in group.vms],
        "because": list(group.because),
    }


def _host_data(host: str, snapshot: Snapshot) -> dict[str, str]:
    return {"id": host, "name": host_name(host, snapshot)}


def _group_data(group: str, snapshot: Snapshot) -> dict[str, str]:
    return {"id": group, "name": snapshot.group_by_id[group].name}


def _groups(groups: Iterable[str], snapshot: Snapshot) -> str:
    return " and ".join(group_name(group, snapshot) for group in groups)


def _vms(vms: Iterable[str], snapshot: Snapshot) -> str:
    return ", ".join(vm_name(vm, snapshot) for vm in vms)
