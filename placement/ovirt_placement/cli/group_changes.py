"""Adds, changes and removes affinity groups: reads the engine, judges what is meant, and only then asks."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

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
from ovirt_placement.cli.changes import connected, fresh_state, one_by_one, recorded, show_change, stops
from ovirt_placement.cli.questions import PATIENCE_SECONDS
from ovirt_placement.engine import actions as engine
from ovirt_placement.engine.actions import EDITABLE, Members
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.topology import read_descriptions, read_groups, read_snapshot
from ovirt_placement.forecast import Change, changed_groups
from ovirt_placement.inventory import client as inventory
from ovirt_placement.inventory.publication import Measured
from ovirt_placement.model import AffinityGroup, AffinityRule, Snapshot, yaml_files
from ovirt_placement.model.state_file import consistent
from ovirt_placement.model.yaml_files import GroupEntry, stored_priority, stored_text
from ovirt_placement.store.user_actions import UserActionKind
from ovirt_service.errors import UserError
from ovirt_service.text import unbroken

_DISABLED = AffinityRule(enabled=False, positive=False, enforcing=False)


def with_groups_of_now(known: Snapshot, connection: EngineConnection) -> Snapshot | None:
    """What is known with all groups and labels of now; None if they have members not known yet."""
    groups, labels = read_groups(connection)
    found = consistent(replace(known, affinity_groups=groups, affinity_labels=labels))
    return found if (found.affinity_groups, found.affinity_labels) == (groups, labels) else None


class _GroupChange(NamedTuple):
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
        group = replace(self.group, id=new_id if self.before is None else self.before.id)
        after = described_group(group, snapshot, self.was if self.gone else self.description)
        return GroupOutcome(after, before, None if self.gone else after)


class _Engine(NamedTuple):
    """The engine that a command changes."""

    args: argparse.Namespace
    connection: EngineConnection

    def known(self) -> Snapshot:
        """What is known of it, with the groups of this moment."""
        found = config.load(self.args.config)
        known = inventory.known(config=found, deadline=PATIENCE_SECONDS, measured=Measured.NOTHING)
        return with_groups_of_now(known.snapshot, self.connection) or read_snapshot(self.connection)

    def description(self, group: AffinityGroup) -> str:
        return read_descriptions(self.connection, group.cluster).get(group.id, "")

    def stops(self, changes: Sequence[_GroupChange], against: Sequence[str]) -> int | None:
        """Preview a change by what is read now with all that rules need."""

        def intended() -> tuple[Snapshot, Change]:
            state = fresh_state(self.args)
            gone, desired = ([one.group for one in changes if one.gone is it] for it in (True, False))
            return state, changed_groups(state, gone, desired, against)

        return stops(self.args, intended)

    def carry_out(self, change: _GroupChange, snapshot: Snapshot, *, unchecked: bool = False) -> str:
        """Ask for what differs, or with `unchecked` for its members one by one; return the group's id."""
        before, group, cluster = change.before, change.group, snapshot.cluster_by_id[change.group.cluster]
        kind = UserActionKind("group_remove" if change.gone else "group_edit" if before else "group_add")
        details = tuple(differences(before, group, snapshot)) if before else ()
        name, of_cluster = (before or group).name, {"cluster": cluster.id, "cluster_name": cluster.name}
        with recorded(self.args, kind, name, details, **of_cluster):
            if change.gone:
                engine.remove_group(self.connection, cluster.id, group.id)
            elif unchecked and before:
                self._send_members(before, group)
            else:
                description = change.description if change.description != change.was else None
                return engine.save_group(self.connection, before, group, description)
        return group.id

    def _send_members(self, before: AffinityGroup, after: AffinityGroup) -> None:
        place = self.connection, before.cluster, before.id
        for members in Members:
            old, new = getattr(before, members), getattr(after, members)
            for member in (member for member in old if member not in new):
                engine.remove_member(*place, members, member)
            for member in (member for member in new if member not in old):
                engine.add_member(*place, members, member)

    def judged(
        self, desired: Callable[[Snapshot], AffinityGroup]
    ) -> tuple[Snapshot, AffinityGroup, GroupJudgement]:
        """Judge by what is known; what speaks against a group is believed of this moment alone."""
        state = self.known()
        with suppress(UserError):
            group = desired(state)
            judgement = judge(state, group)
            if not (judgement.refusals or judgement.unchecked):
                return state, group, judgement
        snapshot = read_snapshot(self.connection)
        group = desired(snapshot)
        return snapshot, group, judge(snapshot, group)

    def change(
        self, one: _GroupChange, snapshot: Snapshot, judgement: GroupJudgement, *, unchecked: bool = False
    ) -> int:
        """Preview the change of a group, or make it, and report it."""
        if (status := self.stops([one], judgement.all)) is not None:
            return status
        refused, warnings = (*judgement.refusals, *judgement.unchecked), judgement.warnings
        if unchecked:  # what the engine would refuse of the whole group becomes a warning
            refused = judgement.refusals
            not_seen = (f"the engine does not check this: {text}" for text in judgement.unchecked)
            warnings = (*not_seen, *warnings)
        if refused and one.changes:
            verb, name = ("add", one.group.name) if one.before is None else ("change", one.before.name)
            raise UserError(f"the engine would not {verb} {name}: {'; '.join(refused)}")
        identity = ""
        if one.changes and not self.args.dry_run:
            identity = self.carry_out(one, snapshot, unchecked=unchecked)
        answer = group_change(one.described(snapshot, identity), warnings, dry_run=self.args.dry_run)
        show_change(self.args, answer, [change_text(answer)], answer.warnings)
        return 0


# -- `ovirt-placement groups add`, `edit` and `remove`.
def add(args: argparse.Namespace) -> int:
    _keep_as_stored(args)

    def desired(snapshot: Snapshot) -> AffinityGroup:
        cluster = find(args.cluster, "cluster", snapshot.clusters).id
        new = AffinityGroup("", args.name, cluster, 1.0, _DISABLED, _DISABLED, (), (), (), ())
        return _with_options(args, new, "", snapshot)

    with connected(args) as connection:
        asked = _Engine(args, connection)
        snapshot, group, judgement = asked.judged(desired)
        return asked.change(
            _GroupChange(group, None, description=args.description or ""), snapshot, judgement
        )


def edit(args: argparse.Namespace) -> int:
    _keep_as_stored(args)

    def desired(snapshot: Snapshot) -> AffinityGroup:
        group = find(args.group, "affinity group", snapshot.affinity_groups, snapshot)
        return _with_options(args, group, "add_", snapshot)

    with connected(args) as connection:
        asked = _Engine(args, connection)
        snapshot, after, judgement = asked.judged(desired)
        before = snapshot.group_by_id[after.id]
        was = asked.description(before)
        change = _GroupChange(after, before, was, _description_to_be(args.description, was))
        others = (name for name in EDITABLE if name not in MEMBERS)
        alike = all(getattr(before, name) == getattr(after, name) for name in others)
        if args.unchecked and not (alike and change.description == was):
            raise UserError("--unchecked goes with members only: change the rest in a request of its own")
        return asked.change(change, snapshot, judgement, unchecked=args.unchecked)


def remove(args: argparse.Namespace) -> int:
    with connected(args) as connection:
        asked = _Engine(args, connection)
        snapshot = asked.known()
        group = find(args.group, "affinity group", snapshot.affinity_groups, snapshot)
        one = _GroupChange(group, group, asked.description(group), gone=True)
        return asked.change(one, snapshot, GroupJudgement((), (), ()))


def _description_to_be(given: str | None, was: str) -> str:
    """The one that is given, unless the engine would keep it as it is."""
    return was if given is None or unbroken(given) == was.strip() else given


def _with_options(
    args: argparse.Namespace, group: AffinityGroup, adding: str, snapshot: Snapshot
) -> AffinityGroup:
    """A group as the options say; `adding` is what those begin with that name members to come."""
    members: dict[str, tuple[str, ...]] = {}
    for name, (option, word) in MEMBERS.items():
        table, present = table_of(name, snapshot), getattr(group, name)
        there, going = [table[one] for one in present], getattr(args, f"remove_{option}", ())
        leaving = {find(text, f"{word} in the group", there).id for text in going}
        coming = member_ids(getattr(args, f"{adding}{option}"), name, group.cluster, snapshot)
        members[name] = (*(one for one in present if one not in leaving), *coming)
    return replace(
        group,
        name=group.name if args.name is None else args.name,
        priority=group.priority if args.priority is None else args.priority,
        vms_rule=_rule(args, "vms", group.vms_rule),
        hosts_rule=_rule(args, "hosts", group.hosts_rule),
        **members,
    )


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
        asked, snapshot = _Engine(args, connection), read_snapshot(connection)
        words = dict.fromkeys((*file.clusters, *(entry.cluster for entry in file.groups)))
        clusters = dict.fromkeys(find(word, "cluster", snapshot.clusters).id for word in words)
        descriptions: dict[str, str] = {}
        for cluster in clusters:
            descriptions |= read_descriptions(connection, cluster)
        desired = [_change_of(entry, snapshot, descriptions) for entry in file.groups]
        kept = {one.before.id for one in desired if one.before is not None}
        gone = [
            _GroupChange(group, group, descriptions.get(group.id, ""), gone=True)
            for group in snapshot.affinity_groups
            if removing and group.cluster in clusters and group.id not in kept
        ]
        changing = {one.group.id: one for one in desired if one.changes}
        wanted = [one.group for one in changing.values()]
        order = in_order(snapshot, [one.group for one in gone], wanted)
        against = (*order.refusals, *order.warnings)
        if (status := asked.stops((*gone, *changing.values()), against)) is not None:
            return status
        if order.refusals:
            raise UserError(f"the engine would not save, in any order, {'; '.join(order.refusals)}")
        ids: dict[str, str] = {}

        def carry_out(change: _GroupChange) -> None:
            ids[change.group.name] = asked.carry_out(change, snapshot)

        if not args.dry_run:
            todo = (*gone, *(changing[group.id] for group in order.groups))
            failed = "groups are done; {} failed".format
            one_by_one(todo, carry_out, lambda one: failed(one.group.name), "run it again")
    outcomes = [one.described(snapshot, ids.get(one.group.name, "")) for one in (*gone, *desired)]
    answer = groups_change(outcomes, order.warnings, dry_run=args.dry_run)
    show_change(args, answer, change_lines(answer), answer.warnings)
    return 0


def _change_of(entry: GroupEntry, snapshot: Snapshot, descriptions: dict[str, str]) -> _GroupChange:
    cluster = find(entry.cluster, "cluster", snapshot.clusters).id
    there = (one for one in snapshot.affinity_groups if (one.cluster, one.name) == (cluster, entry.name))
    before = next(there, None)

    def members(name: str) -> tuple[str, ...]:
        """The ids that the entry's words mean; in the order that they have, where they are the same."""
        try:
            found = tuple(dict.fromkeys(member_ids(getattr(entry, name), name, cluster, snapshot)))
        except UserError as error:
            raise UserError(f"affinity group {entry.name}: {error}") from None
        old: tuple[str, ...] = () if before is None else getattr(before, name)
        return old if sorted(old) == sorted(found) else found

    def rule(old: AffinityRule | None, desired: AffinityRule) -> AffinityRule:
        """Of rules that are both disabled nothing else counts."""
        return desired if old is None or old.enabled or desired.enabled else old

    vms_rule = rule_of(entry.vms_rule, enforcing=entry.vms_enforcing)
    hosts_rule = rule_of(entry.hosts_rule, enforcing=entry.hosts_enforcing)
    after = AffinityGroup(
        # A new one has none yet; that of another group may be its name.
        id=f"new {entry.name}" if before is None else before.id,
        name=entry.name,
        cluster=cluster,
        priority=entry.priority,
        vms_rule=rule(before.vms_rule if before else None, vms_rule),
        hosts_rule=rule(before.hosts_rule if before else None, hosts_rule),
        **{name: members(name) for name in MEMBERS},
    )
    was = "" if before is None else descriptions.get(before.id, "")
    return _GroupChange(after, before, was, _description_to_be(entry.description, was))
