"""`ovirt-placement groups import`, `apply` and `export`: affinity groups as YAML files have them."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from ovirt_placement.answers.document import find
from ovirt_placement.answers.groups.change import MEMBERS, change_lines, groups_change, member_ids, table_of
from ovirt_placement.answers.groups.check import in_order
from ovirt_placement.cli.asking import clusters_of, show_file
from ovirt_placement.cli.changing import connected, show_change, stops
from ovirt_placement.cli.groups.change import (
    MeantGroup,
    carry_out,
    description_to_be,
    intended,
)
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.topology import read_descriptions, read_snapshot
from ovirt_placement.model import AffinityGroup, AffinityRule, Snapshot
from ovirt_placement.model.files import group_file
from ovirt_placement.model.files.group_file import GroupEntry, GroupFile, Polarity
from ovirt_service.errors import UserError


# -- `ovirt-placement groups import` and `apply`: make affinity groups what a YAML file says.
def load(args: argparse.Namespace, *, removing: bool) -> int:
    """Run `groups import`; or `apply`, which removes what else there is in the clusters of the file."""
    file = group_file.load(args.file)
    with connected(args) as connection:
        snapshot = read_snapshot(connection)
        clusters = _clusters(file, snapshot)
        descriptions = _descriptions(connection, clusters)
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
            ids = _carry_out(args, connection, todo, snapshot)
    outcomes = [one.described(snapshot, ids.get(one.group.name, "")) for one in (*gone, *meant)]
    answer = groups_change(outcomes, order.warnings, dry_run=args.dry_run)
    show_change(args, answer, change_lines(answer), answer.warnings)
    return 0


def _clusters(file: GroupFile, snapshot: Snapshot) -> tuple[str, ...]:
    words = (*file.clusters, *(entry.cluster for entry in file.groups))
    return tuple(dict.fromkeys(find(word, "cluster", snapshot.clusters).id for word in dict.fromkeys(words)))


def _descriptions(connection: EngineConnection, clusters: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for cluster in clusters:
        found |= read_descriptions(connection, cluster)
    return found


def _meant(entry: GroupEntry, snapshot: Snapshot, descriptions: dict[str, str]) -> MeantGroup:
    cluster = find(entry.cluster, "cluster", snapshot.clusters).id
    there = (one for one in snapshot.affinity_groups if (one.cluster, one.name) == (cluster, entry.name))
    before = next(there, None)
    after = AffinityGroup(
        id=entry.name if before is None else before.id,
        name=entry.name,
        cluster=cluster,
        priority=entry.priority,
        vms_rule=_rule(entry.vms_rule, enforcing=entry.vms_enforcing),
        hosts_rule=_rule(entry.hosts_rule, enforcing=entry.hosts_enforcing),
        **{name: _members(entry, name, cluster, before, snapshot) for name in MEMBERS},
    )
    was = "" if before is None else descriptions.get(before.id, "")
    if before is not None:
        after = replace(after, vms_rule=_same(before.vms_rule, after.vms_rule))
        after = replace(after, hosts_rule=_same(before.hosts_rule, after.hosts_rule))
    return MeantGroup(after, before, was, description_to_be(entry.description, was))


def _rule(polarity: Polarity, *, enforcing: bool) -> AffinityRule:
    return AffinityRule(enabled=polarity != "disabled", positive=polarity == "positive", enforcing=enforcing)


def _same(before: AffinityRule, after: AffinityRule) -> AffinityRule:
    """Of rules that are both disabled nothing else counts."""
    return after if before.enabled or after.enabled else before


def _members(
    entry: GroupEntry, name: str, cluster: str, before: AffinityGroup | None, snapshot: Snapshot
) -> tuple[str, ...]:
    """The ids that an entry's words mean; in the order that they have, where they are the same."""
    try:
        found = tuple(dict.fromkeys(member_ids(getattr(entry, name), name, cluster, snapshot)))
    except UserError as error:
        raise UserError(f"affinity group {entry.name}: {error}") from None
    there: tuple[str, ...] = () if before is None else getattr(before, name)
    return there if sorted(there) == sorted(found) else found


def _carry_out(
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


# -- `ovirt-placement groups export`: all affinity groups as YAML, as `import` and `apply` read them.
def export(args: argparse.Namespace) -> int:
    with connected(args) as connection:
        snapshot = read_snapshot(connection)
        entries = []
        for cluster in clusters_of(args, snapshot):
            descriptions = read_descriptions(connection, cluster.id)
            entries += [
                _entry(group, snapshot, descriptions)
                for group in snapshot.affinity_groups
                if group.cluster == cluster.id
            ]
    return show_file(args, group_file.described("groups", entries))


def _entry(group: AffinityGroup, snapshot: Snapshot, descriptions: Mapping[str, str]) -> GroupEntry:
    return GroupEntry(
        name=group.name,
        cluster=snapshot.cluster_by_id[group.cluster].name,
        description=descriptions.get(group.id) or None,
        priority=group.priority,
        vms_rule=_polarity(group.vms_rule),
        vms_enforcing=group.vms_rule.enforcing,
        hosts_rule=_polarity(group.hosts_rule),
        hosts_enforcing=group.hosts_rule.enforcing,
        **{name: tuple(_words(getattr(group, name), name, snapshot)) for name in MEMBERS},
    )


def _polarity(rule: AffinityRule) -> Polarity:
    if not rule.enabled:
        return "disabled"
    return "positive" if rule.positive else "negative"


def _words(ids: tuple[str, ...], name: str, snapshot: Snapshot) -> Iterator[str]:
    """Names, and ids of what shares its name with another."""
    table = table_of(name, snapshot)
    names = [one.name for one in table.values()]
    for one in ids:
        known = table.get(one)
        yield known.name if known is not None and names.count(known.name) == 1 else one
