"""The members of an affinity group, by the words that options and files have for them."""

from __future__ import annotations

from typing import Any, Final

from ovirt_placement.answers.document import find
from ovirt_placement.model import AffinityLabel, Host, Snapshot, Vm

#: Of each member list of the model: its option and its word.
MEMBERS: Final = {
    "vms": ("vm", "VM"),
    "hosts": ("host", "host"),
    "vm_labels": ("vm_label", "affinity label"),
    "host_labels": ("host_label", "affinity label"),
}


def find_member(word: str, name: str, cluster: str, snapshot: Snapshot) -> Vm | Host | AffinityLabel:
    """The member that a word means: of the group's own cluster if there is one, else of any."""
    kind = MEMBERS[name][1]
    known = tuple(table_of(name, snapshot).values())
    own = [item for item in known if getattr(item, "cluster", cluster) == cluster]
    in_own = any(word in (item.id, item.name) for item in own)
    found: Vm | Host | AffinityLabel = find(word, kind, own if in_own else known)
    return found


def table_of(name: str, snapshot: Snapshot) -> dict[str, Any]:
    """All that could be in a member list, by id."""
    if name == "vms":
        return snapshot.vm_by_id
    return snapshot.host_by_id if name == "hosts" else snapshot.label_by_id
