"""Adds, changes and removes affinity groups: reads the engine, judges what is meant, and only then asks."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from ovirt_placement import config
from ovirt_placement.answers.document import find
from ovirt_placement.answers.group_changes import (
    GroupJudgement,
    GroupOutcome,
    change_lines,
    change_text,
    group_change,
    groups_change,
    in_order,
    judge,
)
from ovirt_placement.answers.groups import (
    MEMBERS,
    described_group,
    differences,
    member_ids,
    rule_of,
    table_of,
)
from ovirt_placement.cli.changes import connected, recorded, show_change, stops
from ovirt_placement.cli.questions import PATIENCE_SECONDS
from ovirt_placement.engine.actions import (
    EDITABLE,
    Members,
    add_member,
    remove_group,
    remove_member,
    save_group,
)
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.topology import consistent, read_descriptions, read_groups, read_snapshot
from ovirt_placement.inventory import client as inventory
from ovirt_placement.inventory.publication import Measured
from ovirt_placement.model import AffinityGroup, AffinityRule, Snapshot, yaml_files
from ovirt_placement.model.yaml_files import GroupEntry, GroupFile, stored_priority, stored_text
from ovirt_placement.store.user_actions import UserActionKind
from ovirt_service.errors import UserError
from ovirt_service.text import unbroken

if TYPE_CHECKING:
    from ovirt_placement.forecast.changes import Change


# -- The affinity groups of this moment among what is known of the rest: who has just changed one sees that.
def with_groups_of_now(known: Snapshot, connection: EngineConnection) -> Snapshot | None:
    """Read all affinity groups and labels, and lay them over what is known.

    None if they have members that are not known yet. Raises what `EngineConnection.get` raises.
    """
    groups, labels = read_groups(connection)
    found = consistent(replace(known, affinity_groups=groups, affinity_labels=labels))
    return found if (found.affinity_groups, found.affinity_labels) == (groups, labels) else None


# -- What commands that change affinity groups ask the engine, and how they report.
def known_groups(args: argparse.Namespace, connection: EngineConnection) -> Snapshot:
    """What is known of the engine, with the groups of this moment."""
    found = inventory.known(
        config=config.load(args.config), deadline=PATIENCE_SECONDS, measured=Measured.NOTHING
    )
    return with_groups_of_now(found.snapshot, connection) or read_snapshot(connection)


class MeantGroup(NamedTuple):
    """A group as it is to be, and as it is; both with their descriptions."""

    #: One that goes, as it is.
    group: AffinityGroup
    #: None of a new one.
    before: AffinityGroup | None
    was: str = ""
    description: str = ""
    gone: bool = False

    @property
    def changes(self) -> bool:
        return self.gone or (self.before, self.was) != (self.group, self.description)

    def described(self, snapshot: Snapshot, new_id: str = "") -> GroupOutcome:
        """With names; a new one has the id that the engine gave it."""
        before = None if self.before is None else described_group(self.before, snapshot, self.was)
        identity = new_id if self.before is None else self.before.id
        text = self.was if self.gone else self.description
        group = described_group(replace(self.group, id=identity), snapshot, text)
        return GroupOutcome(group, before, None if self.gone else group)


def carry_out(
    args: argparse.Namespace,
    connection: EngineConnection,
    one: MeantGroup,
    snapshot: Snapshot,
    *,
    unchecked: bool = False,
) -> str:
    """Ask the engine for what differs, and record who asks and how it ended; the id of the group.

    With `unchecked`, members are sent one by one, and nothing else.
    """
    before, group, cluster = one.before, one.group, snapshot.cluster_by_id[one.group.cluster]
    kind = "group_remove" if one.gone else "group_edit" if before else "group_add"
    details = tuple(differences(before, group, snapshot)) if before else ()
    name = (before or group).name
    with recorded(args, UserActionKind(kind), name, details, cluster=cluster.id, cluster_name=cluster.name):
        if one.gone:
            remove_group(connection, cluster.id, group.id)
        elif unchecked and before:
            _send_members(connection, before, group)
        else:
            description = one.description if one.description != one.was else None
            return save_group(connection, before, group, description)
    return group.id


def intended(
    args: argparse.Namespace, changes: Sequence[MeantGroup], against: Sequence[str] = ()
) -> tuple[Snapshot, Change]:
    """A change by an engine read now with all that rules need: without some groups, with others as meant."""
    from ovirt_placement.forecast.changes import changed_groups  # planning takes long to load

    state = inventory.snapshot(config=config.load(args.config), max_age=0.0, deadline=PATIENCE_SECONDS)
    gone, meant = ([one.group for one in changes if one.gone is it] for it in (True, False))
    return state, changed_groups(state, gone, meant, against)


# -- Adds, changes and removes an affinity group: reads the engine, judges what is meant, and only then asks.
_DISABLED = AffinityRule(enabled=False, positive=False, enforcing=False)


def add(args: argparse.Namespace) -> int:
    """Run `groups add`."""
    _keep_as_stored(args)
    with connected(args) as connection:
        snapshot, group, judgement = _judged(args, connection, partial(_added, args))
        meant = MeantGroup(group, None, description=args.description or "")
        return _make_change(args, connection, meant, snapshot, judgement)


def edit(args: argparse.Namespace) -> int:
    """Run `groups edit`."""
    _keep_as_stored(args)
    with connected(args) as connection:
        snapshot, after, judgement = _judged(args, connection, partial(_edited, args))
        before = snapshot.group_by_id[after.id]
        was = _description(connection, before)
        meant = MeantGroup(after, before, was, description_to_be(args.description, was))
        others = (name for name in EDITABLE if name not in MEMBERS)
        alike = all(getattr(before, name) == getattr(after, name) for name in others)
        if args.unchecked and not (alike and meant.description == was):
            raise UserError("--unchecked goes with members only: change the rest in a request of its own")
        return _make_change(args, connection, meant, snapshot, judgement, unchecked=args.unchecked)


def remove(args: argparse.Namespace) -> int:
    """Run `groups remove`."""
    with connected(args) as connection:
        snapshot = known_groups(args, connection)
        group = find(args.group, "affinity group", snapshot.affinity_groups, snapshot)
        meant = MeantGroup(group, group, _description(connection, group), gone=True)
        return _make_change(args, connection, meant, snapshot, GroupJudgement((), (), ()))


def _make_change(
    args: argparse.Namespace,
    connection: EngineConnection,
    one: MeantGroup,
    snapshot: Snapshot,
    judgement: GroupJudgement,
    *,
    unchecked: bool = False,
) -> int:
    """Preview the change of a group, or have the engine make it, and report it."""
    if (status := stops(args, lambda: intended(args, [one], judgement.all))) is not None:
        return status
    refused, warnings = (*judgement.refusals, *judgement.unchecked), judgement.warnings
    if unchecked:  # what the engine would refuse of the whole group becomes a warning
        refused = judgement.refusals
        warnings = (*(f"the engine does not check this: {text}" for text in judgement.unchecked), *warnings)
    if refused and one.changes:
        verb, name = ("add", args.name) if one.before is None else ("change", one.before.name)
        raise UserError(f"the engine would not {verb} {name}: {'; '.join(refused)}")
    identity = ""
    if one.changes and not args.dry_run:
        identity = carry_out(args, connection, one, snapshot, unchecked=unchecked)
    answer = group_change(one.described(snapshot, identity), warnings, dry_run=args.dry_run)
    show_change(args, answer, [change_text(answer)], answer.warnings)
    return 0


def _description(connection: EngineConnection, group: AffinityGroup) -> str:
    return read_descriptions(connection, group.cluster).get(group.id, "")


def description_to_be(given: str | None, was: str) -> str:
    """The one that is given, unless the engine would keep it as it is."""
    return was if given is None or unbroken(given) == was.strip() else given


def _send_members(connection: EngineConnection, before: AffinityGroup, after: AffinityGroup) -> None:
    for members in Members:
        old, new = getattr(before, members), getattr(after, members)
        for member in (member for member in old if member not in new):
            remove_member(connection, before.cluster, before.id, members, member)
        for member in (member for member in new if member not in old):
            add_member(connection, before.cluster, before.id, members, member)


def _judged(
    args: argparse.Namespace, connection: EngineConnection, meant: Callable[[Snapshot], AffinityGroup]
) -> tuple[Snapshot, AffinityGroup, GroupJudgement]:
    """Judge by what is known; what speaks against a group is believed of nothing older than this moment."""
    state = known_groups(args, connection)
    with suppress(UserError):
        group = meant(state)
        judgement = judge(state, group)
        if not (judgement.refusals or judgement.unchecked):
            return state, group, judgement
    snapshot = read_snapshot(connection)
    group = meant(snapshot)
    return snapshot, group, judge(snapshot, group)


def _added(args: argparse.Namespace, snapshot: Snapshot) -> AffinityGroup:
    cluster = find(args.cluster, "cluster", snapshot.clusters)
    members = {
        name: member_ids(getattr(args, option), name, cluster.id, snapshot)
        for name, (option, _) in MEMBERS.items()
    }
    return AffinityGroup(
        id="",
        name=args.name,
        cluster=cluster.id,
        priority=1.0 if args.priority is None else args.priority,
        vms_rule=_rule(args, "vms", _DISABLED),
        hosts_rule=_rule(args, "hosts", _DISABLED),
        **members,
    )


def _edited(args: argparse.Namespace, snapshot: Snapshot) -> AffinityGroup:
    group = find(args.group, "affinity group", snapshot.affinity_groups, snapshot)
    members = {
        name: _members(args, group, name, option, word, snapshot) for name, (option, word) in MEMBERS.items()
    }
    return replace(
        group,
        name=group.name if args.name is None else args.name,
        priority=group.priority if args.priority is None else args.priority,
        vms_rule=_rule(args, "vms", group.vms_rule),
        hosts_rule=_rule(args, "hosts", group.hosts_rule),
        **members,
    )


def _members(
    args: argparse.Namespace, group: AffinityGroup, name: str, option: str, word: str, snapshot: Snapshot
) -> tuple[str, ...]:
    present: tuple[str, ...] = getattr(group, name)
    table = table_of(name, snapshot)
    there = [table[member] for member in present]
    leaving = {find(text, f"{word} in the group", there).id for text in getattr(args, f"remove_{option}")}
    coming = member_ids(getattr(args, f"add_{option}"), name, group.cluster, snapshot)
    return (*(member for member in present if member not in leaving), *coming)


def _rule(args: argparse.Namespace, what: str, rule: AffinityRule) -> AffinityRule:
    polarity, enforcing = getattr(args, f"{what}_rule"), getattr(args, f"{what}_enforcing")
    if polarity is not None:
        rule = rule_of(polarity, enforcing=rule.enforcing)
    return rule if enforcing is None else replace(rule, enforcing=enforcing)


def _keep_as_stored(args: argparse.Namespace) -> None:
    """Take the options as the engine keeps them. Raises `UserError` for what it cannot keep."""
    for option, stored in (
        ("name", stored_text),
        ("description", stored_text),
        ("priority", stored_priority),
    ):
        if (given := getattr(args, option)) is not None:
            try:
                setattr(args, option, stored(given))
            except UserError as error:
                raise UserError(f"--{option} {given}: {error}") from None


# -- `ovirt-placement groups import` and `apply`: make affinity groups what a YAML file says.
def load(args: argparse.Namespace, *, removing: bool) -> int:
    """Run `groups import`; or `apply`, which removes what else there is in the clusters of the file."""
    file = yaml_files.load_groups(args.file)
    with connected(args) as connection:
        snapshot = read_snapshot(connection)
        clusters = _clusters(file, snapshot)
        descriptions: dict[str, str] = {}
        for cluster in clusters:
            descriptions |= read_descriptions(connection, cluster)
        meant = [_meant(entry, snapshot, descriptions) for entry in file.groups]
        kept = {one.before.id for one in meant if one.before is not None}
        gone = [
            MeantGroup(group, group, descriptions.get(group.id, ""), gone=True)
            for group in snapshot.affinity_groups
            if removing and group.cluster in clusters and group.id not in kept
        ]
        changing = {one.group.id: one for one in meant if one.changes}
        wanted = [one.group for one in changing.values()]
        order = in_order(snapshot, [one.group for one in gone], wanted)
        against = (*order.refusals, *order.warnings)
        every = (*gone, *changing.values())
        if (status := stops(args, lambda: intended(args, every, against))) is not None:
            return status
        if order.refusals:
            raise UserError(f"the engine would not save, in any order, {'; '.join(order.refusals)}")
        ids: dict[str, str] = {}
        if not args.dry_run:
            todo = (*gone, *(changing[group.id] for group in order.groups))
            ids = _carry_out_all(args, connection, todo, snapshot)
    outcomes = [one.described(snapshot, ids.get(one.group.name, "")) for one in (*gone, *meant)]
    answer = groups_change(outcomes, order.warnings, dry_run=args.dry_run)
    show_change(args, answer, change_lines(answer), answer.warnings)
    return 0


def _clusters(file: GroupFile, snapshot: Snapshot) -> tuple[str, ...]:
    words = (*file.clusters, *(entry.cluster for entry in file.groups))
    return tuple(dict.fromkeys(find(word, "cluster", snapshot.clusters).id for word in dict.fromkeys(words)))


def _meant(entry: GroupEntry, snapshot: Snapshot, descriptions: dict[str, str]) -> MeantGroup:
    cluster = find(entry.cluster, "cluster", snapshot.clusters).id
    there = (one for one in snapshot.affinity_groups if (one.cluster, one.name) == (cluster, entry.name))
    before = next(there, None)
    after = AffinityGroup(
        id=entry.name if before is None else before.id,
        name=entry.name,
        cluster=cluster,
        priority=entry.priority,
        vms_rule=rule_of(entry.vms_rule, enforcing=entry.vms_enforcing),
        hosts_rule=rule_of(entry.hosts_rule, enforcing=entry.hosts_enforcing),
        **{name: _entry_members(entry, name, cluster, before, snapshot) for name in MEMBERS},
    )
    was = "" if before is None else descriptions.get(before.id, "")
    if before is not None:
        after = replace(after, vms_rule=_same(before.vms_rule, after.vms_rule))
        after = replace(after, hosts_rule=_same(before.hosts_rule, after.hosts_rule))
    return MeantGroup(after, before, was, description_to_be(entry.description, was))


def _same(before: AffinityRule, after: AffinityRule) -> AffinityRule:
    """Of rules that are both disabled nothing else counts."""
    return after if before.enabled or after.enabled else before


def _entry_members(
    entry: GroupEntry, name: str, cluster: str, before: AffinityGroup | None, snapshot: Snapshot
) -> tuple[str, ...]:
    """The ids that an entry's words mean; in the order that they have, where they are the same."""
    try:
        found = tuple(dict.fromkeys(member_ids(getattr(entry, name), name, cluster, snapshot)))
    except UserError as error:
        raise UserError(f"affinity group {entry.name}: {error}") from None
    there: tuple[str, ...] = () if before is None else getattr(before, name)
    return there if sorted(there) == sorted(found) else found


def _carry_out_all(
    args: argparse.Namespace,
    connection: EngineConnection,
    todo: Sequence[MeantGroup],
    snapshot: Snapshot,
) -> dict[str, str]:
    """Ask the engine, one group after another; the ids of the groups by their names."""
    ids: dict[str, str] = {}
    for done, one in enumerate(todo):
        try:
            ids[one.group.name] = carry_out(args, connection, one, snapshot)
        except UserError as error:
            raise UserError(
                f"{done} of {len(todo)} groups are done; {one.group.name} failed: {error}."
                " Repair that and run it again: it goes on where it stopped"
            ) from None
    return ids
