"""The differences that are meant, by the codes of docs/rules.md: how the engine is asked without a quirk."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from tools.engine_conformance.comparing import Switch
from tools.engine_conformance.questions import Question, State

_OFF = {"enabled": False, "positive": False, "enforcing": False}


def _each(name: str, change: Callable[[State], State]) -> Callable[[Question], Question]:
    """Change every entry of a list of the state."""
    return lambda question: question.about(_changed(question.state, name, change))


def _changed(state: State, name: str, change: Callable[[State], State]) -> State:
    return {**state, name: [change(one) for one in state[name]]}


def _members(state: State, group: State, kind: str = "vm") -> list[str]:
    """Give a group's VMs or hosts, those of its labels included."""
    labels = {label["id"]: label[f"{kind}s"] for label in state["affinity_labels"]}
    more = (one for label in group[f"{kind}_labels"] for one in labels[label])
    return list(dict.fromkeys([*group[f"{kind}s"], *more]))


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
    groups = [group for group in state["affinity_groups"] if _is(group["vms_rule"], positive=True)]
    tied = _connected({*_members(state, group)} for group in groups)

    def whole(group: State) -> State:
        if group not in groups:
            return group
        vms = sorted(vm for one in tied if one & {*_members(state, group)} for vm in one)
        return {**group, "hosts_rule": _OFF, "vms": vms, "vm_labels": []}

    return question.about(_changed(state, "affinity_groups", whole))


def _targets(state: State) -> dict[str, str]:
    """Where VMs are on their way to."""
    targets = {entry["vm"]: entry["host"] for entry in state["pending"]}
    return targets | {vm["id"]: vm["migrating_to"] for vm in state["vms"] if "migrating_to" in vm}


def _resting(vm: State, **changes: Any) -> State:
    return {key: value for key, value in vm.items() if key != "migrating_to"} | changes


def _left_behind(question: Question) -> Question:
    """A VM that migrates leaves another one behind, which its hard negative groups count as well."""
    state, targets = question.state, _targets(question.state)
    behind = {
        vm["id"]: _resting(
            vm, id=f"{vm['id'][:14]}5{vm['id'][15:]}", name=vm["name"] + "-behind", status="up"
        )
        for vm in state["vms"]
        if vm["host"] is not None and vm["id"] in targets and vm["id"] not in question.vms
    }

    def joined(group: State) -> State:
        more = [behind[vm]["id"] for vm in _members(state, group) if vm in behind]
        negative = _is(group["vms_rule"], positive=False)
        return {**group, "vms": [*group["vms"], *more]} if more and negative else group

    changed = _changed(state, "affinity_groups", joined)
    return question.about({**changed, "vms": [*state["vms"], *behind.values()]})


def _arrived(question: Question) -> Question:
    """VMs on their way are there."""
    targets = _targets(question.state)

    def there(vm: State) -> State:
        return _resting(vm, host=targets[vm["id"]], status="up") if vm["id"] in targets else vm

    return question.about({**_changed(question.state, "vms", there), "pending": []})


def _with_hosts(question: Question) -> Question:
    """Hard positive host rules without hosts are off."""

    def told(group: State) -> State:
        empty = _is(group["hosts_rule"], positive=True) and not _members(question.state, group, "host")
        return {**group, "hosts_rule": _OFF} if empty else group

    return question.about(_changed(question.state, "affinity_groups", told))


def _nowhere(question: Question) -> Question:
    """The VMs asked about run nowhere."""

    def gone(vm: State) -> State:
        return {**vm, "host": None, "status": "down"} if vm["id"] in question.vms else vm

    return question.about(_changed(question.state, "vms", gone))


def _protected_only(question: Question, answer: Any) -> Any:
    """Nothing is to protect in a cluster without highly available VMs on hosts that are up."""
    cluster, state = question.request["cluster"], question.state
    up = {host["id"] for host in state["hosts"] if host["cluster"] == cluster and host["status"] == "up"}
    protected = any(vm["ha"] and vm["host"] in up and vm["cluster"] == cluster for vm in state["vms"])
    return answer if protected else {"safe": True, "failed": []}


def _nothing_pending(question: Question) -> Question:
    return question.about({**_changed(question.state, "vms", _resting), "pending": []})


def _whole_percents(question: Question) -> Question:
    """Hosts of one size, and VMs that use whole percents of one."""
    state = _changed(question.state, "hosts", lambda host: {**host, "cores": 4, "threads": 4})
    return question.about(_changed(state, "vms", lambda vm: {**vm, "vcpus": 4 * vm["vcpus"]}))


def _no_rules(question: Question) -> Question:
    state = _changed(question.state, "vms", lambda vm: {**vm, "pinned_hosts": []})
    return question.about({**state, "affinity_groups": [], "affinity_labels": []})


def _with_all_hosts(question: Question) -> Question:
    hosts = sorted(host["id"] for host in question.state["hosts"])
    return replace(question, request={**question.request, "candidate_hosts": hosts})


def _candidates_only(question: Question, answer: Any) -> Any:
    return [host for host in answer if host in question.hosts] if isinstance(answer, list) else answer


def _host_full_since_now(question: Question) -> Question:
    unknown = {host["id"] for host in question.state["hosts"] if host["cpu_percent"] is None}
    told = question.request.get("told", {}) | {host: {"overloaded_minutes": 0} for host in unknown}
    changed = _each("hosts", lambda host: {**host, "cpu_percent": 100} if host["id"] in unknown else host)
    return replace(changed(question), request={**question.request, "told": told})


def _idle(vm: State) -> State:
    return {**vm, "usage_cpu_percent": 0} if vm["usage_cpu_percent"] is None else vm


def _own_members(question: Question) -> Question:
    """Groups without VMs of other clusters; nor has a cluster that is asked about any in its labels."""
    state, asked = question.state, question.request.get("cluster")
    cluster_of = {vm["id"]: vm["cluster"] for vm in state["vms"]}

    def own_group(group: State) -> State:
        vms = _members(state, group)
        own = [vm for vm in vms if cluster_of[vm] == group["cluster"]]
        return group if own == vms else {**group, "vms": own, "vm_labels": []}

    def own_label(label: State) -> State:
        return {**label, "vms": [vm for vm in label["vms"] if asked is None or cluster_of[vm] == asked]}

    return question.about(
        _changed(_changed(state, "affinity_groups", own_group), "affinity_labels", own_label)
    )


def _up_only(question: Question, answer: Any) -> Any:
    """Of runs, or of moves, those VMs that are up."""
    up = {vm["id"] for vm in question.state["vms"] if vm["status"] == "up"}
    if not isinstance(answer, list):
        return answer
    if answer and isinstance(answer[0], dict):
        return [move for move in answer if move["vm"] in up]
    return [[vm for vm in run if vm in up] for run in answer]


def _others_than_the_engine(question: Question, answer: Any) -> Any:
    own = {vm["id"] for vm in question.state["vms"] if vm["hosted_engine"]}
    return [move for move in answer if move["vm"] not in own]


def _memory_as_told(host: State) -> State:
    free = host.get("memory_free_mb")
    if free is None:
        return host
    known = host.get("swap_free_mb") is not None
    return {**host, "memory_free_mb": free + host["memory_mb"] // 100 if known else None}


#: The engine counts direct peers only when a VM starts; ours takes unified groups, as enforcement does.
UNIFIED_GROUPS = Switch("F2-unified-groups", instead=_unified)
#: To the engine a migrating VM keeps negative peers off its destination only; to ours off both its hosts.
LEFT_BEHIND = Switch("F4-both-ends-of-a-migration", instead=_left_behind)
#: A VM on its way is a blank one to the engine, which can be moved; to ours it is itself.
PENDING_AS_IT_IS = Switch("W1-pending-vms-as-they-are", instead=_arrived)
#: To the engine a hard positive group without hosts shuts out every host; to ours it means nothing.
EMPTY_HOST_GROUP = Switch("H1-group-without-hosts", instead=_with_hosts)
#: The engine's weight counts the VM that is moved on its own host; ours does not.
NOT_ITSELF = Switch("HA1-not-the-vm-itself", instead=_nowhere)
#: The engine's weight leaves out highly available VMs that are being started; ours counts them.
PENDING_HA = Switch("HA2-pending-vms-count", instead=_arrived)
#: A single host is an alert to the engine, whatever runs there; to ours only with a highly available VM.
NOTHING_TO_PROTECT = Switch("HC1-nothing-to-protect", read=_protected_only)
#: The engine deducts the memory of VMs on their way twice; ours once.
PENDING_TWICE = Switch("HC4-pending-memory-once", instead=_nothing_pending)
#: The engine compares rounded percents of the failing host's CPU with percents of another's; ours cores.
PERCENT_OF_CPUS = Switch("HC3-HC7-cores", instead=_whole_percents)
#: Affinity and pinning mean nothing to the engine's check; to ours they hold.
NO_RULES = Switch("HC5-rules-hold", instead=_no_rules)
#: The engine throws where a host that is no candidate holds a positive and a negative peer; ours answers as
#: it does where that host is a candidate.
CRASH_OF_A_HOST_ASIDE = Switch("F1-crash", instead=_with_all_hosts, read=_candidates_only)
#: The same crash ends what asked for hosts, as the enforcement of all clusters; ours goes on.
CRASH_FOR_ALL = Switch("F1-ends-what-asked", crash=lambda where: "VmAffinityFilterPolicyUnit" in where)
#: The engine throws where a host has no CPU statistics, and no cluster is balanced; to ours it is full, but
#: not overloaded.
UNKNOWN_USE_OF_A_HOST = Switch("balance-without-host-statistics", instead=_host_full_since_now)
#: The engine throws where it compares a VM without CPU statistics with another one; to ours it is idle.
UNKNOWN_USE_OF_A_VM = Switch("balance-without-vm-statistics", instead=_each("vms", _idle))
#: To our rules only VMs of a group's own cluster are members; labels can bring others into a group.
MEMBERS_ELSEWHERE = Switch("E5-members-elsewhere", instead=_own_members)
#: The engine tries VMs of any status, and its command then refuses; ours passes over those not up.
ONLY_WHAT_IS_UP = Switch("only-what-is-up", read=_up_only)
#: The engine's balance gives away its own VM, too; ours never does.
HOSTED_ENGINE_STAYS = Switch("HA8-hosted-engine-stays", read=_others_than_the_engine)
#: The engine knows how much of a host's memory is in use, and shows whole percents: to ours all is free that
#: may be, and nothing lacks where free swap is not shown.
PHYSICAL_MEMORY_AS_TOLD = Switch("physical-memory-as-told", instead=_each("hosts", _memory_as_told))
#: The engine refuses a host that is too busy only after minutes, and does not show since when it is: ours
#: refuses it at once.
OVERLOADED_SINCE = Switch(
    "overloaded-since-when",
    instead=lambda question: replace(question, request={**question.request, "told": {}}),
)
