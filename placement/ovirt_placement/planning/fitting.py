"""Whether a plan that was made a while ago still fits its cluster, and in which way it does not."""

from __future__ import annotations

from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import group_name, host_name, vm_name
from ovirt_placement.planning.legality import legal, vetoes
from ovirt_placement.planning.plan import Plan, Step
from ovirt_placement.planning.verification import apply
from ovirt_placement.rules.sentences import sentence
from ovirt_placement.rules.violations import find_violations


def misfit(snapshot: Snapshot, plan: Plan) -> str | None:
    """Why a plan must not be carried out now, as a sentence; None if it may.

    Every step must begin where its VMs are and be legal in its turn, and in the end the very rules must be
    broken that the plan said: where rules were changed since, others are.
    """
    if plan.cluster not in snapshot.cluster_by_id:
        return "its cluster is gone"
    state = snapshot
    for number, step in enumerate(plan.steps, 1):
        why = _why_not(state, step)
        if why is not None:
            return f"step {number}: {why}"
        state = apply(state, step)
    return _other_end(state, plan)


def _why_not(state: Snapshot, step: Step) -> str | None:
    for vm, source in zip(step.vms, step.sources, strict=True):
        known = state.vm_by_id.get(vm)
        if known is None:
            return f"VM {vm} is gone"
        if known.host != source:
            place = "on no host" if known.host is None else f"on {host_name(known.host, state)}"
            return f"{known.name} is {place}, not on {host_name(source, state)}"
    if step.target not in state.host_by_id:
        return f"host {step.target} is gone"
    if legal(state, step):
        return None
    cluster = state.vm_by_id[step.vms[0]].cluster
    found = [sentence(reason, state) for _, reason in vetoes(state, cluster, step.vms, step.target)]
    because = "; ".join(dict.fromkeys(found)) or "its VM is not up, or may not be migrated"
    names = ", ".join(vm_name(vm, state) for vm in step.vms)
    return f"{names} may not go to {host_name(step.target, state)} any more: {because}"


def _other_end(end: Snapshot, plan: Plan) -> str | None:
    told = {(rule.family, rule.groups, rule.hard) for rule in plan.remaining}
    found = {(one.constraint.family, one.groups, one.hard) for one in find_violations(end, plan.cluster)}
    if told == found:
        return None
    groups = sorted({group for _, groups, _ in told ^ found for group in groups})
    names = ", ".join(group_name(group, end) for group in groups)
    return f"the rules have changed since it was made: it leads elsewhere for {names}"
