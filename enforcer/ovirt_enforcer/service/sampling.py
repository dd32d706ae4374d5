"""Writes down what clusters are like, a row an hour: what `ovirt-enforcer history` makes trends of."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Final

from ovirt_enforcer.ha_monitor.verdict import ReservationState, ReservationVerdict
from ovirt_placement.rules.violations import Violation
from ovirt_placement.store.samples import SampleStore

#: What is no worse than before is written again after this, so that no hour stays empty.
_AGAIN_SECONDS: Final = 900.0

#: Numbers that are the worse the higher they are.
_Badness = tuple[int, ...]


class Sampler:
    """Writes at once what is worse than what it wrote last, and the rest every 15 minutes; for one thread."""

    def __init__(self, store: SampleStore, clock: Callable[[], float], epoch: Callable[[], int]) -> None:
        """`epoch` is that of the lease in which is written."""
        self._store = store
        self._clock = clock
        self._epoch = epoch
        #: What was written last of what, in which epoch, and when by the clock.
        self._written: dict[tuple[str, str], tuple[_Badness, int, float]] = {}

    def looked_at(self, cluster: str, name: str, violations: Iterable[Violation]) -> None:
        """Take the rules that a cluster violates. Raises what stores raise."""
        hard = [violation.hard for violation in violations]
        badness = hard.count(True), hard.count(False)
        if self._is_due("rules", cluster, badness):
            self._store.record_violations(cluster, name, hard=badness[0], soft=badness[1])
            self._note("rules", cluster, badness)

    def judged(self, verdicts: Iterable[ReservationVerdict]) -> None:
        """Take verdicts on HA reservations, those that say something. Raises what stores raise."""
        for one in verdicts:
            if one.state not in (ReservationState.SAFE, ReservationState.UNSAFE):
                continue
            badness = one.failures - one.failures_survived, one.vms_without_home
            if self._is_due("ha", one.cluster, badness):
                self._store.record_reservation(
                    one.cluster,
                    one.name,
                    failures=one.failures,
                    survived=one.failures_survived,
                    not_restarted=one.vms_without_home,
                )
                self._note("ha", one.cluster, badness)

    def _is_due(self, what: str, cluster: str, badness: _Badness) -> bool:
        before, epoch, at = self._written.get((what, cluster), ((), 0, -math.inf))
        if epoch != self._epoch() or self._clock() - at >= _AGAIN_SECONDS:
            return True
        return any(now > then for now, then in zip(badness, before, strict=True))

    def _note(self, what: str, cluster: str, badness: _Badness) -> None:
        self._written[what, cluster] = badness, self._epoch(), self._clock()
