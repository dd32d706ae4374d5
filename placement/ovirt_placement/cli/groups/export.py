"""`ovirt-placement groups export`: all affinity groups as YAML, as `import` and `apply` read them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping

from ovirt_placement import config
from ovirt_placement.answers.groups.change import MEMBERS, table_of
from ovirt_placement.cli.question import clusters_of, show_json
from ovirt_placement.model import AffinityGroup, AffinityRule, Snapshot, group_file
from ovirt_placement.model.group_file import GroupEntry, Polarity


def run(args: argparse.Namespace) -> int:
    # The SDK takes long to load: not for `--help`.
    from ovirt_placement.engine.connection.client import connect
    from ovirt_placement.engine.reading.descriptions import read_descriptions
    from ovirt_placement.engine.reading.topology import read_snapshot

    with connect(config.load(args.config).engine) as connection:
        snapshot = read_snapshot(connection)
        entries = []
        for cluster in clusters_of(args, snapshot):
            descriptions = read_descriptions(connection, cluster.id)
            entries += [
                _entry(group, snapshot, descriptions)
                for group in snapshot.affinity_groups
                if group.cluster == cluster.id
            ]
    if args.json:
        show_json(group_file.described(entries))
    else:
        print(group_file.dumps(entries), end="")
    return 0


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
