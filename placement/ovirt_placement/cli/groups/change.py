"""Adds, changes and removes an affinity group: reads the engine, judges what is meant, and only then asks."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from ovirt_placement import config, inventory
from ovirt_placement.answers.finding import find
from ovirt_placement.answers.groups.change import GroupChangeDocument, group_change, text
from ovirt_placement.answers.groups.check import GroupJudgement, judge
from ovirt_placement.answers.groups.difference import differences
from ovirt_placement.cli.foresight import stops
from ovirt_placement.cli.groups.foreseen import foreseen, foreseen_without
from ovirt_placement.cli.groups.now import with_groups_of_now
from ovirt_placement.cli.question import PATIENCE_SECONDS, show_json
from ovirt_placement.cli.recorded import recorded
from ovirt_placement.model import AffinityGroup, AffinityLabel, AffinityRule, Host, Snapshot, Vm
from ovirt_service.errors import UserError
from ovirt_service.screen import say

if TYPE_CHECKING:
    from ovirt_placement.engine.connection.client import EngineConnection

#: Of each member list of the model: its option and its word.
_MEMBERS = {
    "vms": ("vm", "VM"),
    "hosts": ("host", "host"),
    "vm_labels": ("vm_label", "affinity label"),
    "host_labels": ("host_label", "affinity label"),
}
_DISABLED = AffinityRule(enabled=False, positive=False, enforcing=False)


def add(args: argparse.Namespace) -> int:
    """Run `groups add`."""
    # The SDK takes long to load: not for `--help`.
    from ovirt_placement.engine.writing.affinity_groups import GroupEdit, add_group

    with _connected(args) as connection:
        snapshot, group, judgement = _judged(args, connection, partial(_added, args))
        if (status := stops(args, lambda: foreseen(args, group, judgement))) is not None:
            return status
        _refuse("add", args.name, (*judgement.refusals, *judgement.unchecked))
        edit = GroupEdit(description=args.description, **_fields(group, _EDITABLE))
        with _recorded(args, "group_add", group, snapshot):
            group = replace(group, id=add_group(connection, group.cluster, edit))
    _report(args, group_change(snapshot, group, "added", judgement.warnings))
    return 0


def edit(args: argparse.Namespace) -> int:
    """Run `groups edit`."""
    with _connected(args) as connection:
        snapshot, after, judgement = _judged(args, connection, partial(_edited, args))
        before = snapshot.group_by_id[after.id]
        if (status := stops(args, lambda: foreseen(args, after, judgement))) is not None:
            return status
        edit = _edit_members if args.unchecked else _edit_whole
        warnings = edit(connection, args, snapshot, after, judgement)
    changed = before != after or args.description is not None
    _report(args, group_change(snapshot, after, "changed" if changed else "unchanged", warnings))
    return 0


def remove(args: argparse.Namespace) -> int:
    """Run `groups remove`."""
    from ovirt_placement.engine.writing.affinity_groups import remove_group

    with _connected(args) as connection:
        snapshot = _known(args, connection)
        group = find(args.group, "affinity group", snapshot.affinity_groups)
        if (status := stops(args, lambda: foreseen_without(args, group))) is not None:
            return status
        with _recorded(args, "group_remove", group, snapshot):
            remove_group(connection, group.cluster, group.id)
    _report(args, group_change(snapshot, group, "removed"))
    return 0


_EDITABLE = ("name", "priority", "vms_rule", "hosts_rule", *_MEMBERS)


def _edit_whole(
    connection: EngineConnection,
    args: argparse.Namespace,
    snapshot: Snapshot,
    after: AffinityGroup,
    judgement: GroupJudgement,
) -> Sequence[str]:
    from ovirt_placement.engine.writing.affinity_groups import GroupEdit, edit_group

    before = snapshot.group_by_id[after.id]
    changed = [name for name in _EDITABLE if getattr(before, name) != getattr(after, name)]
    if changed or args.description is not None:
        _refuse("change", before.name, (*judgement.refusals, *judgement.unchecked))
        edit = GroupEdit(description=args.description, **_fields(after, changed))
        with _recorded(args, "group_edit", after, snapshot):
            edit_group(connection, before.cluster, before.id, edit)
    return judgement.warnings


def _edit_members(
    connection: EngineConnection,
    args: argparse.Namespace,
    snapshot: Snapshot,
    after: AffinityGroup,
    judgement: GroupJudgement,
) -> Sequence[str]:
    """Change members one by one; what the engine would refuse of the whole group becomes a warning."""
    before = snapshot.group_by_id[after.id]
    others = [
        name for name in _EDITABLE if name not in _MEMBERS and getattr(before, name) != getattr(after, name)
    ]
    if others or args.description is not None:
        raise UserError("--unchecked goes with members only: change the rest in a request of its own")
    _refuse("change", before.name, judgement.refusals)
    if before != after:
        with _recorded(args, "group_edit", after, snapshot):
            _send_members(connection, before, after)
    return (*(f"the engine does not check this: {text}" for text in judgement.unchecked), *judgement.warnings)


def _send_members(connection: EngineConnection, before: AffinityGroup, after: AffinityGroup) -> None:
    from ovirt_placement.engine.writing.affinity_groups import Members, add_member, remove_member

    for members in Members:
        old, new = getattr(before, members), getattr(after, members)
        for member in (member for member in old if member not in new):
            remove_member(connection, before.cluster, before.id, members, member)
        for member in (member for member in new if member not in old):
            add_member(connection, before.cluster, before.id, members, member)


def _recorded(
    args: argparse.Namespace, kind: str, group: AffinityGroup, snapshot: Snapshot
) -> AbstractContextManager[None]:
    """Record who asks for a change of a group, and what came of it."""
    # SQLAlchemy takes long to load: not for `--help`.
    from ovirt_placement.store.user_actions import UserActionKind

    before = snapshot.group_by_id.get(group.id)
    details = () if before is None else tuple(differences(before, group, snapshot))
    cluster = snapshot.cluster_by_id[group.cluster].name
    name = group.name if before is None else before.name
    return recorded(args, UserActionKind(kind), name, details, cluster=group.cluster, cluster_name=cluster)


class _Judged(NamedTuple):
    """A group as it is to be, and by what it was judged."""

    snapshot: Snapshot
    group: AffinityGroup
    judgement: GroupJudgement


def _judged(
    args: argparse.Namespace, connection: EngineConnection, meant: Callable[[Snapshot], AffinityGroup]
) -> _Judged:
    """Judge by what is known; what speaks against a group is believed of nothing older than this moment."""
    known = _known(args, connection)
    with suppress(UserError):
        group = meant(known)
        judgement = judge(known, group)
        if not (judgement.refusals or judgement.unchecked):
            return _Judged(known, group, judgement)
    snapshot = _read(connection)
    group = meant(snapshot)
    return _Judged(snapshot, group, judge(snapshot, group))


def _added(args: argparse.Namespace, snapshot: Snapshot) -> AffinityGroup:
    cluster = find(args.cluster, "cluster", snapshot.clusters)
    members = {
        name: tuple(_find(word, name, cluster.id, snapshot).id for word in getattr(args, option))
        for name, (option, _) in _MEMBERS.items()
    }
    return AffinityGroup(
        id="",
        name=args.name,
        cluster=cluster.id,
        priority=1.0 if args.priority is None else _priority(args.priority),
        vms_rule=_rule(args, "vms", _DISABLED),
        hosts_rule=_rule(args, "hosts", _DISABLED),
        **members,
    )


def _edited(args: argparse.Namespace, snapshot: Snapshot) -> AffinityGroup:
    group = find(args.group, "affinity group", snapshot.affinity_groups)
    members = {
        name: _members(args, group, name, option, word, snapshot) for name, (option, word) in _MEMBERS.items()
    }
    return replace(
        group,
        name=group.name if args.name is None else args.name,
        priority=group.priority if args.priority is None else _priority(args.priority),
        vms_rule=_rule(args, "vms", group.vms_rule),
        hosts_rule=_rule(args, "hosts", group.hosts_rule),
        **members,
    )


def _members(
    args: argparse.Namespace, group: AffinityGroup, name: str, option: str, word: str, snapshot: Snapshot
) -> tuple[str, ...]:
    present: tuple[str, ...] = getattr(group, name)
    table = _table(name, snapshot)
    known = [table[member] for member in present]
    leaving = {find(text, f"{word} in the group", known).id for text in getattr(args, f"remove_{option}")}
    coming = (_find(text, name, group.cluster, snapshot).id for text in getattr(args, f"add_{option}"))
    return (*(member for member in present if member not in leaving), *coming)


def _find(word: str, name: str, cluster: str, snapshot: Snapshot) -> Vm | Host | AffinityLabel:
    """The member that a word means: of the group's own cluster if there is one, else of any."""
    kind = _MEMBERS[name][1]
    known = tuple(_table(name, snapshot).values())
    own = [item for item in known if getattr(item, "cluster", cluster) == cluster]
    in_own = any(word in (item.id, item.name) for item in own)
    found: Vm | Host | AffinityLabel = find(word, kind, own if in_own else known)
    return found


def _table(name: str, snapshot: Snapshot) -> dict[str, Any]:
    if name == "vms":
        return snapshot.vm_by_id
    return snapshot.host_by_id if name == "hosts" else snapshot.label_by_id


def _rule(args: argparse.Namespace, what: str, rule: AffinityRule) -> AffinityRule:
    polarity, enforcing = getattr(args, f"{what}_rule"), getattr(args, f"{what}_enforcing")
    if polarity is not None:
        rule = replace(rule, enabled=polarity != "disabled", positive=polarity == "positive")
    return rule if enforcing is None else replace(rule, enforcing=enforcing)


def _priority(number: float) -> float:
    if not math.isfinite(number):
        raise UserError(f"--priority {number}: a priority is a number, such as 1 or 2.5")
    return number


def _fields(group: AffinityGroup, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(group, name) for name in names}


def _refuse(verb: str, name: str, reasons: Sequence[str]) -> None:
    if reasons:
        raise UserError(f"the engine would not {verb} {name}: {'; '.join(reasons)}")


def _report(args: argparse.Namespace, answer: GroupChangeDocument) -> None:
    for warning in answer.warnings:
        say(f"warning: {warning}")
    if args.json:
        show_json(answer)
    else:
        print(text(answer))


def _connected(args: argparse.Namespace) -> EngineConnection:
    from ovirt_placement.engine.connection.client import connect

    return connect(config.load(args.config).engine)


def _known(args: argparse.Namespace, connection: EngineConnection) -> Snapshot:
    """What is known of the engine, with the groups of this moment."""
    known = inventory.known(
        config=config.load(args.config), deadline=PATIENCE_SECONDS, measured=inventory.Measured.NOTHING
    )
    return with_groups_of_now(known.snapshot, connection) or _read(connection)


def _read(connection: EngineConnection) -> Snapshot:
    from ovirt_placement.engine.reading.topology import read_snapshot

    return read_snapshot(connection)
