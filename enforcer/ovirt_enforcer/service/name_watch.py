"""Says in the log, once for each change, which names match nothing in the engine."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from prometheus_client import Gauge

from ovirt_placement.answers.sections import ConfiguredName
from ovirt_placement.answers.unmatched_names import unmatched_names
from ovirt_placement.lookups.called import UnmatchedName
from ovirt_placement.model import Snapshot

_log = logging.getLogger(__name__)


class NameWatch:
    """A watcher of the daemon's readings."""

    def __init__(
        self,
        configured: Sequence[ConfiguredName],
        tagged: Callable[[], frozenset[str] | None],
        gauge: Gauge,
    ) -> None:
        """`tagged` gives the ids that bear the tag of the configuration; None while nobody knows."""
        self._configured = configured
        self._tagged = tagged
        self._gauge = gauge
        self._said: dict[UnmatchedName, None] = {}

    def look(self, snapshot: Snapshot) -> None:
        """Compare the names of the configuration, of rules, keys and policies with the engine."""
        found = dict.fromkeys(unmatched_names(snapshot, self._configured, self._tagged()))
        before, self._said = self._said, found
        self._gauge.set(len(found))
        known = {(one.where, one.word) for one in before}
        for one in found:
            if (one.where, one.word) not in known:
                _log.warning("%s: what it is to protect or to ask for is not heeded", one.sentence)
        for one in before:
            if not any((one.where, one.word) == (other.where, other.word) for other in found):
                _log.info("%s: %s matches something again, or is not named any more", one.where, one.word)
