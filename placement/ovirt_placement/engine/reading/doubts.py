"""Doubts an answer that suddenly lacks most of what was known, until the next one says the same.

Engines, and what stands before them, have been known to list nothing for a moment.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from ovirt_placement.engine.connection.failures import EngineAway
from ovirt_placement.model import Snapshot

#: This many may go at once without a doubt, as long as not all of them do.
_FEW: Final = 2

#: What there is of each kind, by the word for it.
Kinds = Mapping[str, Collection[str]]


class Implausible(EngineAway):
    """What an answer lacks was there a moment ago; asking again shows which is true."""

    def __init__(self, text: str) -> None:
        super().__init__(text, request_sent=True)


class Doubts:
    """Looks at one answer after another; belongs to one thread at a time."""

    def __init__(self) -> None:
        self._known: dict[str, frozenset[str]] = {}
        self._doubted: frozenset[str] = frozenset()

    def check(self, found: Kinds) -> None:
        """Take an answer; kinds that it says nothing of stay as they were.

        Raises `Implausible` if most of a kind is missing, and was not missing in the last answer already.
        """
        lacking = {kind: text for kind in found if (text := self._lost(kind, found[kind]))}
        if lacking.keys() - self._doubted:
            self._doubted |= lacking.keys()
            raise Implausible(
                f"the engine suddenly lists but {', '.join(lacking.values())}: it is asked again before that"
                " is believed"
            )
        self._known |= {kind: frozenset(ids) for kind, ids in found.items()}
        self._doubted -= found.keys()

    def _lost(self, kind: str, ids: Collection[str]) -> str:
        known = self._known.get(kind, frozenset())
        left = len(known.intersection(ids))
        lost = len(known) - left
        most = bool(known) and (left == 0 or (lost > left and lost > _FEW))
        return f"{left} of {len(known)} {kind} that it had" if most else ""


def kinds_of(snapshot: Snapshot) -> Kinds:
    """What a reading of everything must not lose at once."""
    return {
        "clusters": [cluster.id for cluster in snapshot.clusters],
        "hosts": [host.id for host in snapshot.hosts],
        "VMs": [vm.id for vm in snapshot.vms],
        "affinity groups": [group.id for group in snapshot.affinity_groups],
        "affinity labels": [label.id for label in snapshot.affinity_labels],
    }
