"""Doubts an answer that suddenly lacks most of what was known, until the next one says the same.

Engines, and what stands before them, have been known to list nothing for a moment.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Final, TypeVar

from ovirt_placement.engine.connection.failures import EngineAway
from ovirt_placement.model import Snapshot

#: This many may go at once without a doubt, as long as not all of them do.
_FEW: Final = 2

#: What there is of each kind, by the word for it.
Kinds = Mapping[str, Collection[str]]
_GROUPS, _LABELS = "affinity groups", "affinity labels"
#: What a user may well remove all of: a second reading at once shows whether that is so.
RULES: Final = frozenset({_GROUPS, _LABELS})
_Found = TypeVar("_Found")
_log = logging.getLogger(__name__)


class Implausible(EngineAway):
    """What an answer lacks was there a moment ago; asking again shows which is true."""

    def __init__(self, text: str, kinds: Collection[str]) -> None:
        super().__init__(text, request_sent=True)
        #: What there was most of.
        self.kinds = frozenset(kinds)


class Doubts:
    """Compares each answer with the one before; for one thread at a time."""

    def __init__(self) -> None:
        self._known: dict[str, frozenset[str]] = {}
        self._doubted: frozenset[str] = frozenset()

    def confirm(
        self,
        read: Callable[[], _Found],
        kinds: Callable[[_Found], Kinds],
        at_once: Callable[[Implausible], bool] = lambda _: True,
    ) -> _Found:
        """Read, and where that is doubted, and `at_once` says so, read again. Raises as `check` does."""
        found = read()
        try:
            self.check(kinds(found))
        except Implausible as doubt:
            if not at_once(doubt):
                raise
            _log.info("%s", doubt)
            found = read()
            self.check(kinds(found))
        return found

    def check(self, found: Kinds) -> None:
        """Take an answer; kinds that it says nothing of stay as they were.

        Raises `Implausible` if most of a kind is missing, and was not missing in the last answer already.
        """
        lacking = {kind: text for kind in found if (text := self._lost(kind, found[kind]))}
        if lacking.keys() - self._doubted:
            self._doubted |= lacking.keys()
            raise Implausible(
                f"the engine suddenly lists but {', '.join(lacking.values())}: it is asked again before that"
                " is believed",
                lacking,
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
        _GROUPS: [group.id for group in snapshot.affinity_groups],
        _LABELS: [label.id for label in snapshot.affinity_labels],
    }
