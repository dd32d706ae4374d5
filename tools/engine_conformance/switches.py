"""The differences that are meant: each a switch by which the engine is asked without its quirk.

A question to which a copy of ours answers otherwise is asked once more, with the copy's switches carried
out. Only if the engine then answers as we do is the difference the documented one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tools.engine_conformance.question import Question


def _same(question: Question) -> Question:
    return question


def _as_it_is(question: Question, answer: Any) -> Any:
    return answer


def _never(where: str) -> bool:
    return False


@dataclass(frozen=True)
class Switch:
    """`instead` gives the question without the quirk, `read` what its answer means for the one asked."""

    name: str
    #: What is different, and why; the quirk's name in docs/rules.md where it has one.
    says: str
    instead: Callable[[Question], Question] = _same
    read: Callable[[Question, Any], Any] = _as_it_is
    #: Whether the engine throws where ours goes on, so that there is nothing to compare with.
    crash: Callable[[str], bool] = _never


def _with_all_hosts(question: Question) -> Question:
    hosts = sorted(host["id"] for host in question.state["hosts"])
    return replace(question, request={**question.request, "candidate_hosts": hosts})


def _candidates_only(question: Question, answer: Any) -> Any:
    return [host for host in answer if host in question.hosts] if isinstance(answer, list) else answer


CRASH_OF_A_HOST_ASIDE = Switch(
    "F1-crash",
    "The engine throws where a host that is no candidate holds a positive and a negative peer; ours answers"
    " as it does where that host is a candidate.",
    instead=_with_all_hosts,
    read=_candidates_only,
)


def _no_soft_rules(question: Question) -> Question:
    off = {"enabled": False, "positive": False, "enforcing": False}
    groups = [
        {
            **group,
            **{rule: off for rule in ("vms_rule", "hosts_rule") if not group[rule]["enforcing"]},
        }
        for group in question.state["affinity_groups"]
    ]
    return question.about({**question.state, "affinity_groups": groups})


NO_SOFT_ENFORCEMENT = Switch(
    "hard-rules-only",
    "The simulator enforces hard rules only: soft ones need a second scheduling.",
    instead=_no_soft_rules,
)

CRASH_FOR_ALL = Switch(
    "F1-ends-what-asked",
    "The same crash ends what asked for hosts, as the enforcement of all clusters; ours goes on.",
    crash=lambda where: "VmAffinityFilterPolicyUnit" in where,
)


def _host_full_since_now(question: Question) -> Question:
    told = dict(question.request.get("told", {}))
    hosts = []
    for host in question.state["hosts"]:
        unknown = host["cpu_percent"] is None
        hosts.append({**host, "cpu_percent": 100} if unknown else host)
        if unknown:
            told[host["id"]] = {"overloaded_minutes": 0}
    request = {**question.request, "told": told}
    return replace(question, state={**question.state, "hosts": hosts}, request=request)


UNKNOWN_USE_OF_A_HOST = Switch(
    "balance-without-host-statistics",
    "The engine throws where a host has no CPU statistics, and no cluster is balanced; to ours it is full,"
    " but not overloaded.",
    instead=_host_full_since_now,
)


def _idle_vms(question: Question) -> Question:
    vms = [
        {**vm, "usage_cpu_percent": 0} if vm["usage_cpu_percent"] is None else vm
        for vm in question.state["vms"]
    ]
    return question.about({**question.state, "vms": vms})


UNKNOWN_USE_OF_A_VM = Switch(
    "balance-without-vm-statistics",
    "The engine throws where it compares a VM without CPU statistics with another one; to ours it is idle.",
    instead=_idle_vms,
)


def _label_without_members(where: str) -> bool:
    return "AffinityValidator" in where


LABEL_WITHOUT_MEMBERS = Switch(
    "label-without-members-in-the-cluster",
    "The engine throws when a VM or host is given groups or labels, and a group of the cluster has a label"
    " without any member in it.",
    crash=_label_without_members,
)


def _own_members(question: Question) -> Question:
    """Groups without VMs of other clusters; nor has a cluster that is asked about any in its labels."""
    state = question.state
    cluster_of = {vm["id"]: vm["cluster"] for vm in state["vms"]}
    labels = {label["id"]: label["vms"] for label in state["affinity_labels"]}
    groups = []
    for group in state["affinity_groups"]:
        vms = dict.fromkeys([*group["vms"], *(vm for label in group["vm_labels"] for vm in labels[label])])
        own = [vm for vm in vms if cluster_of[vm] == group["cluster"]]
        groups.append(group if own == list(vms) else {**group, "vms": own, "vm_labels": []})
    asked = question.request.get("cluster")
    own_labels = [
        {**label, "vms": [vm for vm in label["vms"] if asked is None or cluster_of[vm] == asked]}
        for label in state["affinity_labels"]
    ]
    return question.about({**state, "affinity_groups": groups, "affinity_labels": own_labels})


MEMBERS_ELSEWHERE = Switch(
    "E5-members-elsewhere",
    "To our rules only VMs of a group's own cluster are members; labels can bring others into a group.",
    instead=_own_members,
)


def _up_only(question: Question, answer: Any) -> Any:
    """Of runs, or of moves, those VMs that are up."""
    up = {vm["id"] for vm in question.state["vms"] if vm["status"] == "up"}
    if not isinstance(answer, list):
        return answer
    if answer and isinstance(answer[0], dict):
        return [move for move in answer if move["vm"] in up]
    return [[vm for vm in run if vm in up] for run in answer]


ONLY_WHAT_IS_UP = Switch(
    "only-what-is-up",
    "The engine tries VMs of any status, and its command then refuses; ours passes over those not up.",
    read=_up_only,
)


def _others_than_the_engine(question: Question, answer: Any) -> Any:
    own = {vm["id"] for vm in question.state["vms"] if vm["hosted_engine"]}
    return [move for move in answer if move["vm"] not in own]


HOSTED_ENGINE_STAYS = Switch(
    "HA8-hosted-engine-stays",
    "The engine's balance gives away its own VM, too; ours never does.",
    read=_others_than_the_engine,
)


def _physical_memory_as_told(question: Question) -> Question:
    hosts = []
    for host in question.state["hosts"]:
        free = host.get("memory_free_mb")
        if free is not None:
            known = host.get("swap_free_mb") is not None
            host = {**host, "memory_free_mb": free + host["memory_mb"] // 100 if known else None}
        hosts.append(host)
    return question.about({**question.state, "hosts": hosts})


PHYSICAL_MEMORY_AS_TOLD = Switch(
    "physical-memory-as-told",
    "The engine knows how much of a host's memory is in use, and shows whole percents: to ours all is free"
    " that may be, and nothing lacks where free swap is not shown.",
    instead=_physical_memory_as_told,
)


def _overloaded_for_long(question: Question) -> Question:
    return replace(question, request={**question.request, "told": {}})


OVERLOADED_SINCE = Switch(
    "overloaded-since-when",
    "The engine refuses a host that is too busy only after minutes, and does not show since when it is: ours"
    " refuses it at once.",
    instead=_overloaded_for_long,
)

#: All of them, by name.
SWITCHES = {
    switch.name: switch
    for switch in (
        CRASH_OF_A_HOST_ASIDE,
        CRASH_FOR_ALL,
        HOSTED_ENGINE_STAYS,
        LABEL_WITHOUT_MEMBERS,
        MEMBERS_ELSEWHERE,
        NO_SOFT_ENFORCEMENT,
        ONLY_WHAT_IS_UP,
        OVERLOADED_SINCE,
        PHYSICAL_MEMORY_AS_TOLD,
        UNKNOWN_USE_OF_A_HOST,
        UNKNOWN_USE_OF_A_VM,
    )
}
