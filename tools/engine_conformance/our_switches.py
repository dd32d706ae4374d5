"""Where our own units are meant to differ from the engine's: docs/rules.md, by its names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from tools.engine_conformance.question import Question
from tools.engine_conformance.states import State
from tools.engine_conformance.switches import Switch

_OFF = {"enabled": False, "positive": False, "enforcing": False}


def _members(state: State, group: State) -> list[str]:
    labels = {label["id"]: label["vms"] for label in state["affinity_labels"]}
    return list(dict.fromkeys([*group["vms"], *(vm for label in group["vm_labels"] for vm in labels[label])]))


def _is(rule: State, *, positive: bool) -> bool:
    return bool(rule["enabled"] and rule["enforcing"] and rule["positive"] is positive)


def _connected(sets: Iterable[set[str]]) -> list[set[str]]:
    found: list[set[str]] = []
    for one in sets:
        touching = [other for other in found if other & one]
        found = [other for other in found if not other & one]
        found.append(one.union(*touching))
    return found


def _unified(question: Question) -> Question:
    """Each hard positive group has all VMs that are tied to its own in a chain."""
    state = question.state
    tied = _connected(
        {*_members(state, group)}
        for group in state["affinity_groups"]
        if _is(group["vms_rule"], positive=True)
    )
    groups = []
    for group in state["affinity_groups"]:
        if _is(group["vms_rule"], positive=True):
            whole = sorted(vm for one in tied if one & {*_members(state, group)} for vm in one)
            group = {**group, "hosts_rule": _OFF, "vms": whole, "vm_labels": []}
        groups.append(group)
    return question.about({**state, "affinity_groups": groups})


def _targets(state: State) -> dict[str, str]:
    """Where VMs are on their way to."""
    targets = {entry["vm"]: entry["host"] for entry in state["pending"]}
    return targets | {vm["id"]: vm["migrating_to"] for vm in state["vms"] if "migrating_to" in vm}


def _left_behind(question: Question) -> Question:
    """A VM that migrates leaves another one behind, which its hard negative groups count as well."""
    state, targets = question.state, _targets(question.state)
    behind = {
        vm["id"]: {
            **vm,
            "id": f"{vm['id'][:14]}5{vm['id'][15:]}",
            "name": vm["name"] + "-behind",
            "status": "up",
        }
        for vm in state["vms"]
        if vm["host"] is not None and vm["id"] in targets and vm["id"] not in question.vms
    }
    for vm in behind.values():
        vm.pop("migrating_to", None)
    groups = []
    for group in state["affinity_groups"]:
        more = [behind[vm]["id"] for vm in _members(state, group) if vm in behind]
        groups.append(
            {**group, "vms": [*group["vms"], *more]}
            if more and _is(group["vms_rule"], positive=False)
            else group
        )
    return question.about({**state, "vms": [*state["vms"], *behind.values()], "affinity_groups": groups})


def _arrived(question: Question) -> Question:
    """VMs on their way are there."""
    targets = _targets(question.state)
    vms = []
    for vm in question.state["vms"]:
        if vm["id"] in targets:
            vm = {key: value for key, value in vm.items() if key != "migrating_to"}
            vm |= {"host": targets[vm["id"]], "status": "up"}
        vms.append(vm)
    return question.about({**question.state, "vms": vms, "pending": []})


def _with_hosts(question: Question) -> Question:
    """Hard positive host rules without hosts are off."""
    state = question.state
    labels = {label["id"]: label["hosts"] for label in state["affinity_labels"]}
    groups = []
    for group in state["affinity_groups"]:
        listed = [*group["hosts"], *(host for label in group["host_labels"] for host in labels[label])]
        empty = not listed and _is(group["hosts_rule"], positive=True)
        groups.append({**group, "hosts_rule": _OFF} if empty else group)
    return question.about({**state, "affinity_groups": groups})


def _nowhere(question: Question) -> Question:
    """The VMs asked about run nowhere."""
    vms = [
        {**vm, "host": None, "status": "down"} if vm["id"] in question.vms else vm
        for vm in question.state["vms"]
    ]
    return question.about({**question.state, "vms": vms})


UNIFIED_GROUPS = Switch(
    "F2-unified-groups",
    "The engine counts direct peers only when a VM starts; ours takes unified groups, as enforcement does.",
    instead=_unified,
)
LEFT_BEHIND = Switch(
    "F4-both-ends-of-a-migration",
    "To the engine a migrating VM keeps negative peers off its destination only; to ours off both its hosts.",
    instead=_left_behind,
)
PENDING_AS_IT_IS = Switch(
    "W1-pending-vms-as-they-are",
    "A VM on its way is a blank one to the engine, which can be moved; to ours it is itself.",
    instead=_arrived,
)
EMPTY_HOST_GROUP = Switch(
    "H1-group-without-hosts",
    "To the engine a hard positive group without hosts shuts out every host; to ours it means nothing.",
    instead=_with_hosts,
)
NOT_ITSELF = Switch(
    "HA1-not-the-vm-itself",
    "The engine's weight counts the VM that is moved on its own host; ours does not.",
    instead=_nowhere,
)
PENDING_HA = Switch(
    "HA2-pending-vms-count",
    "The engine's weight leaves out highly available VMs that are being started; ours counts them.",
    instead=_arrived,
)


def _protected_only(question: Question, answer: Any) -> Any:
    """Nothing is to protect in a cluster without highly available VMs on hosts that are up."""
    cluster = question.request["cluster"]
    up = {
        host["id"]
        for host in question.state["hosts"]
        if host["cluster"] == cluster and host["status"] == "up"
    }
    protected = any(
        vm["ha"] and vm["host"] in up and vm["cluster"] == cluster for vm in question.state["vms"]
    )
    return answer if protected else {"safe": True, "failed": []}


NOTHING_TO_PROTECT = Switch(
    "HC1-nothing-to-protect",
    "A single host is an alert to the engine, whatever runs there; to ours only with a highly available VM.",
    read=_protected_only,
)


def _nothing_pending(question: Question) -> Question:
    vms = [{key: value for key, value in vm.items() if key != "migrating_to"} for vm in question.state["vms"]]
    return question.about({**question.state, "vms": vms, "pending": []})


PENDING_TWICE = Switch(
    "HC4-pending-memory-once",
    "The engine deducts the memory of VMs on their way twice; ours once.",
    instead=_nothing_pending,
)


def _whole_percents(question: Question) -> Question:
    """Hosts of one size, and VMs that use whole percents of one."""
    hosts = [{**host, "cores": 4, "threads": 4} for host in question.state["hosts"]]
    vms = [{**vm, "vcpus": 4 * vm["vcpus"]} for vm in question.state["vms"]]
    return question.about({**question.state, "hosts": hosts, "vms": vms})


PERCENT_OF_CPUS = Switch(
    "HC3-HC7-cores",
    "The engine compares rounded percents of the failing host's CPU with percents of another's; ours cores.",
    instead=_whole_percents,
)


def _no_rules(question: Question) -> Question:
    vms = [{**vm, "pinned_hosts": []} for vm in question.state["vms"]]
    return question.about({**question.state, "vms": vms, "affinity_groups": [], "affinity_labels": []})


NO_RULES = Switch(
    "HC5-rules-hold",
    "Affinity and pinning mean nothing to the engine's check; to ours they hold.",
    instead=_no_rules,
)


def exact(question: Question, engine: Any, ours: Any) -> bool:
    """The same, but for failures that are survived though first fit does not find out how (HC2).

    First fit cannot err where no host has more than one highly available VM.
    """
    counts = Counter(vm["host"] for vm in question.state["vms"] if vm["ha"] and vm["host"] is not None)
    if max(counts.values(), default=0) > 1:
        return set(ours["failed"]) <= set(engine["failed"])
    return set(ours["failed"]) == set(engine["failed"]) and ours["safe"] is engine["safe"]


#: The conflicts that ours are to report alike: of the others, ours ask whether they can be satisfied.
_ALIKE = (
    "VM_TO_HOST_CONFLICT_IN_ENFORCING_POSITIVE_AND_NEGATIVE_AFFINITY",
    "VM_TO_HOST_CONFLICTS_POSITIVE_VM_TO_VM_AFFINITY",
    "VM_TO_VM_AFFINITY_CONFLICTS",
)


def conflicts_alike(question: Question, engine: Any, ours: Any) -> bool:
    """Which groups, VMs and hosts clash; whether that blocks saving is another question (C1, C3, C4)."""

    def told(conflicts: Any) -> list[str]:
        return sorted(
            repr([one["type"], *(sorted(one[key]) for key in ("groups", "vms", "hosts", "negative_vms"))])
            for one in conflicts
            if one["type"] in _ALIKE
        )

    return told(engine) == told(ours)


def refined(question: Question, engine: Any, ours: Any) -> bool:
    """The engine's order of hosts, in which ours may distinguish hosts that tie."""
    hosts = question.hosts
    return all(
        ours[one] < ours[other]
        for one in hosts
        for other in hosts
        if engine.get(one, 0) < engine.get(other, 0)
    )


OUR_SWITCHES = {
    switch.name: switch
    for switch in (
        UNIFIED_GROUPS,
        LEFT_BEHIND,
        PENDING_AS_IT_IS,
        EMPTY_HOST_GROUP,
        NOT_ITSELF,
        PENDING_HA,
        NOTHING_TO_PROTECT,
        PENDING_TWICE,
        PERCENT_OF_CPUS,
        NO_RULES,
    )
}
