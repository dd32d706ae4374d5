"""Says a rule's reasons in sentences, with names in place of ids."""

from __future__ import annotations

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.verdict import Kind, Reason

_SENTENCES = {
    Kind.POSITIVE_PEER_ELSEWHERE: "must run with VM {vm}, which is on host {host} ({group})",
    Kind.NEGATIVE_PEER_HERE: "must not run with VM {vm}, which is on host {host} ({group})",
    Kind.REQUEST_MUST_PART: "VM {vm} must not run with another VM of the same request ({group})",
    Kind.HOST_NOT_LISTED: "VM {vm} may only run on the hosts of {group}",
    Kind.HOST_FORBIDDEN: "VM {vm} must not run on the hosts of {group}",
    Kind.HOST_NOT_UP: "is not up",
    Kind.PINNED_ELSEWHERE: "VM {vm} cannot be migrated and is pinned to other hosts",
    Kind.POSITIVE_PEER_HERE: "joins VM {vm} here ({group})",
    Kind.POSITIVE_PEERS_SPLIT: "VM {vm} of {group} is on host {host}: the group is split and stays so",
    Kind.MIGRATION_TARGET_UNKNOWN: (
        "VM {vm} of {group} is migrating from host {host} to a host that is not known: only the source counts"
    ),
    Kind.GROUP_WITHOUT_HOSTS: "{group} restricts VM {vm} to hosts but lists none: not counted",
    Kind.UNIT_MISSING: "{group} has a soft rule for VM {vm}, and the cluster's policy does not enable {unit}",
    Kind.GROUP_BROKEN_HERE: "breaks {group} of priority {number:g}",
    Kind.POSITIVE_PEERS_HERE: "VMs to run with that are here: {number:g}",
    Kind.FIXED_PEERS_HERE: "of these cannot be moved: {number:g}",
    Kind.HA_VMS_HERE: "highly available VMs that are here: {number:g}",
    Kind.FAILOVER_HOST: "kept free for a failover",
    Kind.MEMORY_HANDED_OUT: "only {number:g} MiB of its memory are not handed out yet",
    Kind.MEMORY_IN_USE: "only {number:g} MiB of its memory are physically free",
    Kind.KEYS_REFUSE: "the placement keys give it {number:g}, which is not above the last threshold",
    Kind.KEYS_ROUND: "found in round {number:g} of the operator's placement keys",
    Kind.KEYS_CUSTOMER_SCORE: "the customer's placement keys give it {number:g}",
}


def sentence(reason: Reason, snapshot: Snapshot) -> str:
    """What a reason says, with the names that an administrator knows; an id that has none stands as it is."""
    template = _SENTENCES[reason.kind]
    if reason.kind is Kind.GROUP_BROKEN_HERE and reason.vm is not None:
        template += ": VM {vm} is here"
    return template.format(
        vm=vm_name(reason.vm or "", snapshot),
        host=host_name(reason.host or "", snapshot),
        group=group_name(reason.group or "", snapshot),
        number=reason.number,
        unit=reason.unit or "",
    )


def vm_name(vm_id: str, snapshot: Snapshot) -> str:
    known = snapshot.vm_by_id.get(vm_id)
    return known.name if known else vm_id


def host_name(host_id: str, snapshot: Snapshot) -> str:
    known = snapshot.host_by_id.get(host_id)
    return known.name if known else host_id


def group_name(group_id: str, snapshot: Snapshot) -> str:
    """An affinity group, or a legacy label that acts as one, with the word for what it is."""
    if group_id in snapshot.label_by_id:
        return f"affinity label {snapshot.label_by_id[group_id].name}"
    known = snapshot.group_by_id.get(group_id)
    return f"affinity group {known.name if known else group_id}"
