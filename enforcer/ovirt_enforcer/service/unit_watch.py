"""Notices policy units that the engine has disabled, though a cluster uses them: no event says so.

While an engine starts, all external units are disabled until the proxy has been asked: that is over soon.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from ovirt_enforcer.notifications.kinds import NoticeKind
from ovirt_enforcer.notifications.notifications import Notifications
from ovirt_placement.model import Cluster, Snapshot

#: An engine that starts has the proxy's answer by then: it waits for no more than 120 s.
START_SECONDS: Final = 150.0
_DAY_SECONDS: Final = 24 * 3600.0

_log = logging.getLogger(__name__)


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
