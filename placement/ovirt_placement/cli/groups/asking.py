"""What commands that change affinity groups ask the engine, and how they report."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from ovirt_placement import config, inventory
from ovirt_placement.answers.groups.change import differences
from ovirt_placement.cli.groups.now import with_groups_of_now
from ovirt_placement.cli.question import PATIENCE_SECONDS
from ovirt_placement.cli.recorded import recorded
from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_service.errors import UserError

if TYPE_CHECKING:
    from ovirt_placement.engine.connection.client import EngineConnection


def connected(args: argparse.Namespace) -> EngineConnection:
    # The SDK takes long to load: not for `--help`.
    from ovirt_placement.engine.connection.client import connect

    return connect(config.load(args.config).engine)


def known(args: argparse.Namespace, connection: EngineConnection) -> Snapshot:
    """What is known of the engine, with the groups of this moment."""
    found = inventory.known(
        config=config.load(args.config), deadline=PATIENCE_SECONDS, measured=inventory.Measured.NOTHING
    )
    return with_groups_of_now(found.snapshot, connection) or read(connection)


def read(connection: EngineConnection) -> Snapshot:
    from ovirt_placement.engine.reading.topology import read_snapshot

    return read_snapshot(connection)


def refuse(verb: str, name: str, reasons: Sequence[str]) -> None:
    if reasons:
        raise UserError(f"the engine would not {verb} {name}: {'; '.join(reasons)}")


def recorded_change(
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
