"""What is written down besides decisions: cycles, settings, what people did, and disabled policy units."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from prometheus_client import Gauge

from ovirt_enforcer.log import audit
from ovirt_enforcer.notifications.kinds import NoticeKind
from ovirt_enforcer.notifications.notifications import Notifications
from ovirt_enforcer.service.reading import Reading
from ovirt_enforcer.settings import EnforcerSettings, recorded_settings
from ovirt_placement.answers.configured import ConfiguredName, unmatched_names
from ovirt_placement.lookups.called import UnmatchedName
from ovirt_placement.model import Cluster, Snapshot
from ovirt_placement.store.cycles import Cycle, CycleStore, OpenBreaker, RememberedRefusal
from ovirt_placement.store.enforcer_settings import EnforcerSettingsStore
from ovirt_placement.store.user_actions import UserAction, UserActionStore
from ovirt_service.errors import UserError

#: Of recorded refusals this many are written down.
_MOST_REFUSALS: Final = 200
_log = logging.getLogger(__name__)


class CycleLog:
    """The last cycle of this process while it leads."""

    def __init__(self, store: CycleStore, epoch: Callable[[], int]) -> None:
        self._store = store
        self._epoch = epoch
        #: What was written last.
        self._last: Cycle | None = None

    def ended(self, reading: Reading | None, error: Exception | None) -> None:
        """Write down a cycle that looked at the engine or failed, or the first one after one that failed.

        A store that does not answer is reported by the cycle itself.
        """
        last = self._last
        if reading is None and error is None and (last is None or last.error is None):
            return
        try:
            cycle = self._cycle(reading, error)
            self._store.record(cycle)
        except UserError as away:
            _log.debug("the cycle is not written down: %s", away)
        else:
            self._last = cycle

    def _cycle(self, reading: Reading | None, error: Exception | None) -> Cycle:
        said = None if error is None else str(error) or type(error).__name__
        if reading is None:
            last = self._last
            kept = ((), ()) if last is None else (last.breakers, last.refusals)
            return Cycle(epoch=self._epoch(), error=said, breakers=kept[0], refusals=kept[1])
        breakers = reading.gates.open_breakers(reading.snapshot)
        waiting = reading.backoff.refused_vms
        left_out = [RememberedRefusal(vm, None, one.reason) for vm, one in waiting.items()]
        left_out += [
            RememberedRefusal(vm, host, reason) for (vm, host), reason in reading.backoff.left_out.items()
        ]
        return Cycle(
            epoch=self._epoch(),
            error=said,
            breakers=tuple(OpenBreaker(*one) for one in breakers.items()),
            refusals=tuple(left_out[:_MOST_REFUSALS]),
        )


class SettingsLog:
    """The settings of this process while it leads."""

    def __init__(
        self, store: EnforcerSettingsStore, settings: EnforcerSettings, epoch: Callable[[], int]
    ) -> None:
        self._settings = recorded_settings(settings)
        self._store = store
        self._epoch = epoch
        #: The last epoch in which they were written down.
        self._recorded = 0

    def look(self) -> None:
        """Write them down once in each epoch; raises `StoreAway` and `LeaseLost`."""
        epoch = self._epoch()
        if epoch != self._recorded:
            self._store.record(epoch, self._settings)
            self._recorded = epoch


class PeopleLog:
    """The leader's part of what is recorded of people."""

    def __init__(self, store: UserActionStore) -> None:
        self._store = store

    def look(self) -> None:
        """Log what nobody has logged yet; raises `StoreAway` and `LeaseLost`."""
        with self._store.unlogged() as found:
            for action in found:
                _log.info("%s", action.sentence)
                audit("user_action", action.sentence, **_action_facts(action))


def _action_facts(action: UserAction) -> dict[str, object]:
    return {
        "action": action.kind,
        "id": action.id,
        "state": action.state,
        "at": datetime.fromtimestamp(action.created, UTC).isoformat(timespec="milliseconds"),
        "login": action.login,
        "machine": action.machine,
        "engine_user": action.engine_user,
        "cluster": action.cluster and {"id": action.cluster, "name": action.cluster_name},
        "plan": action.plan,
        "subject": action.subject,
        "details": action.details,
        "error": action.error,
    }


#: An engine that starts has the proxy's answer by then: it waits for no more than 120 s.
START_SECONDS: Final = 150.0
_DAY_SECONDS: Final = 24 * 3600.0


class UnitWatch:
    """A watcher of the daemon's readings."""

    def __init__(self, notifications: Notifications, clock: Callable[[], float]) -> None:
        self._notifications = notifications
        self._clock = clock
        #: Since when units have been disabled, by cluster; and when that was reported.
        self._since: dict[str, float] = {}
        self._reported: dict[str, float] = {}

    def look(self, snapshot: Snapshot) -> None:
        """Report clusters whose units stay disabled, once a day, and those whose units are enabled again."""
        for cluster in snapshot.clusters:
            disabled = cluster.scheduling_policy.disabled if cluster.scheduling_policy else ()
            if disabled:
                self._look_at(cluster, disabled)
            else:
                self._forget(cluster)
        for gone in self._since.keys() - snapshot.cluster_by_id.keys():
            del self._since[gone]
            self._reported.pop(gone, None)

    def _look_at(self, cluster: Cluster, disabled: tuple[str, ...]) -> None:
        now = self._clock()
        reported = self._reported.get(cluster.id)
        if now - self._since.setdefault(cluster.id, now) < START_SECONDS:
            return
        if reported is not None and now - reported < _DAY_SECONDS:
            return
        self._reported[cluster.id] = now
        units = ", ".join(disabled)
        _log.warning("cluster %s: the engine has disabled %s of its policy", cluster.name, units)
        self._notifications.report(
            NoticeKind.UNITS_DISABLED, cluster_id=cluster.id, cluster=cluster.name, units=units
        )

    def _forget(self, cluster: Cluster) -> None:
        self._since.pop(cluster.id, None)
        if self._reported.pop(cluster.id, None) is not None:
            _log.info("cluster %s: all units of its policy are enabled again", cluster.name)
            self._notifications.report(NoticeKind.UNITS_ENABLED, cluster_id=cluster.id, cluster=cluster.name)


class NameWatch:
    """A watcher of the daemon's readings."""

    def __init__(
        self, configured: Sequence[ConfiguredName], tagged: Callable[[], frozenset[str] | None], gauge: Gauge
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
