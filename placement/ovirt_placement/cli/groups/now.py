"""The affinity groups of this moment among what is known of the rest: who has just changed one sees that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from ovirt_placement.engine.reading.consistency import consistent
from ovirt_placement.model import Snapshot

if TYPE_CHECKING:
    from ovirt_placement.engine.connection.client import EngineConnection


def with_groups_of_now(known: Snapshot, connection: EngineConnection) -> Snapshot | None:
    """Read all affinity groups and labels, and lay them over what is known.

    None if they have members that are not known yet. Raises what `EngineConnection.get` raises.
    """
    # The SDK takes long to load: not for `--help`.
    from ovirt_placement.engine.reading.topology import read_groups

    groups, labels = read_groups(connection)
    found = consistent(replace(known, affinity_groups=groups, affinity_labels=labels))
    return found if (found.affinity_groups, found.affinity_labels) == (groups, labels) else None
