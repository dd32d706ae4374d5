"""An affinity group as a form has it: filled from one that there is, and read back as what is meant."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from ovirt_placement.answers.groups.change import MEMBERS, find_member, table_of
from ovirt_placement.model import AffinityGroup, AffinityRule, Cluster, Snapshot
from ovirt_placement.model.group_file import stored_priority, stored_text
from ovirt_placement_web.bounds import Refusal
from ovirt_service.errors import UserError
from ovirt_service.legible import escaped

_POLARITIES = ("disabled", "positive", "negative")
#: The member lists with what they are called.
LISTS = {"vms": "VMs", "vm_labels": "VM labels", "hosts": "Hosts", "host_labels": "Host labels"}
_OFF = AffinityRule(enabled=False, positive=False, enforcing=False)


def filled(group: AffinityGroup, snapshot: Snapshot) -> dict[str, str]:
    """What stands in the fields of a group as it is; members as a name a line."""
    form = {"name": group.name, "priority": f"{group.priority:.7f}".rstrip("0").rstrip(".")}
    for of, rule in (("vms", group.vms_rule), ("hosts", group.hosts_rule)):
        form |= {f"{of}_rule": _polarity(rule), f"{of}_enforcing": "on" if rule.enforcing else ""}
    for name in LISTS:
        form[name] = "\n".join(_name(table_of(name, snapshot), member) for member in getattr(group, name))
    return {**form, "was": state_of(group)}


def empty(cluster: Cluster) -> AffinityGroup:
    """A group that is to be made in a cluster."""
    return AffinityGroup(
        id="",
        name="",
        cluster=cluster.id,
        priority=1.0,
        vms_rule=_OFF,
        hosts_rule=_OFF,
        vms=(),
        hosts=(),
        vm_labels=(),
        host_labels=(),
    )


def sent(form: Mapping[str, str]) -> dict[str, str]:
    """What somebody has filled in."""
    fields = ("name", "priority", "vms_rule", "vms_enforcing", "hosts_rule", "hosts_enforcing", "was")
    return {field: form.get(field, "").replace("\r\n", "\n") for field in (*fields, *LISTS)}


def meant(form: Mapping[str, str], group: AffinityGroup, snapshot: Snapshot) -> AffinityGroup:
    """The group as it is to be; raises `Refusal` for what means nothing."""
    members: dict[str, Any] = {}
    for name in MEMBERS:
        words = dict.fromkeys(line.strip() for line in form[name].split("\n") if line.strip())
        try:
            members[name] = tuple(_member(word, name, group, snapshot) for word in words)
        except UserError as error:
            raise Refusal(400, f"{LISTS[name]}: there is {error}.") from None
    return msgspec.structs.replace(
        group,
        name=_stored_name(form["name"]),
        priority=_priority(form["priority"].strip()),
        vms_rule=_rule(form["vms_rule"], enforcing=bool(form["vms_enforcing"])),
        hosts_rule=_rule(form["hosts_rule"], enforcing=bool(form["hosts_enforcing"])),
        **members,
    )


def state_of(group: AffinityGroup) -> str:
    """Another text once anything of the group has changed."""
    ordered = {name: tuple(sorted(getattr(group, name))) for name in LISTS}
    state = msgspec.structs.replace(group, **ordered)
    return hashlib.sha256(msgspec.json.encode(state)).hexdigest()[:16]


def _member(word: str, name: str, group: AffinityGroup, snapshot: Snapshot) -> str:
    """Those that are in the group already come before others of the same name."""
    table = table_of(name, snapshot)
    own = [one for one in getattr(group, name) if _name(table, one) == word]
    return str(own[0] if len(own) == 1 else find_member(word, name, group.cluster, snapshot).id)


def _name(table: Mapping[str, Any], member: str) -> str:
    """As a form shows it: with codes for marks that would turn a line round."""
    return escaped(str(table[member].name)) if member in table else member


def _polarity(rule: AffinityRule) -> str:
    if not rule.enabled:
        return "disabled"
    return "positive" if rule.positive else "negative"


def _rule(polarity: str, *, enforcing: bool) -> AffinityRule:
    if polarity not in _POLARITIES:
        raise Refusal(400, "A rule is disabled, positive or negative.")
    return AffinityRule(enabled=polarity != "disabled", positive=polarity == "positive", enforcing=enforcing)


def _stored_name(text: str) -> str:
    try:
        return stored_text(text)
    except UserError as error:
        raise Refusal(400, f"Name: {error}.") from None


def _priority(text: str) -> float:
    try:
        return stored_priority(float(text))
    except (ValueError, UserError):
        raise Refusal(400, "A priority is a number, such as 1 or 2.5.") from None
