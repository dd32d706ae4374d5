"""Shows a run in the engine as the upgrade of its cluster: a flag for people, that holds up nothing.

Nothing of it is remembered here. The flag bears the id of its run as correlation id, which the engine takes
with the flag or not at all: its reader knows whose it is, after any process has died at any point.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from ovirt_placement.engine.connection.client import EngineAway, EngineConnection
from ovirt_placement.engine.writing.clusters import finish_upgrade, read_upgrade, show_progress, start_upgrade
from ovirt_placement.model import Snapshot
from ovirt_placement.store.maintenance_run import (
    ENDED,
    UPGRADE_OF_RUN,
    MaintenanceRun,
    RunState,
    Work,
    upgrade_id,
)
from ovirt_service.errors import UserError

#: How often what failed is tried again, in looks at the engine.
_LOOKS_BETWEEN: Final = 30

_log = logging.getLogger(__name__)


class UpgradeFlags:
    """The flags of all runs; for one thread."""

    def __init__(self, connection: EngineConnection) -> None:
        self._connection = connection
        #: What was shown last of each run, in percent.
        self._shown: dict[str, int] = {}
        #: For how many looks nothing is tried of a run, or of a flag that stays.
        self._rests: dict[str, int] = {}

    def show(self, run: MaintenanceRun) -> None:
        """Have the engine show how far a run is, unless an upgrade by somebody else is under way."""
        if run.request.work is Work.NOTHING or run.state is RunState.STOPPING:
            return
        percent = 100 * sum(host.phase in ENDED for host in run.hosts) // max(1, len(run.hosts))
        if self._shown.get(run.id) == percent or self._is_resting(run.id):
            return
        try:
            shown = self._show(run.cluster, upgrade_id(run.id), percent)
        except EngineAway:
            return
        except UserError as error:
            self._failed(run.id, f"maintenance run {run.id}: is not shown as an upgrade: {error}")
        else:
            if shown:
                self._shown[run.id] = percent

    def finish(self, cluster: str, run: str) -> None:
        """Take the flag of a run away, if it is still its own."""
        self._shown.pop(run, None)
        if self._is_resting(run):
            return
        try:
            state = read_upgrade(self._connection, cluster)
            if state.running and state.correlation_id == upgrade_id(run):
                finish_upgrade(self._connection, cluster, upgrade_id(run))
        except EngineAway:
            return
        except UserError as error:
            self._failed(run, f"maintenance run {run}: has ended and is still shown as an upgrade: {error}")

    def _show(self, cluster: str, correlation_id: str, percent: int) -> bool:
        """Begin it where none is under way, as after a restart of the engine, which forgets them all.

        False while an upgrade by somebody else is under way. An engine that does not say whose an upgrade is
        is shown none: nobody could distinguish it from those of others.
        """
        state = read_upgrade(self._connection, cluster)
        if not state.attributed:
            return True
        if state.running and state.correlation_id != correlation_id:
            return False
        if not state.running:
            start_upgrade(self._connection, cluster, correlation_id)
        if percent:
            show_progress(self._connection, cluster, correlation_id, percent)
        return True

    def _failed(self, run: str, message: str) -> None:
        _log.warning("%s", message)
        self._rests[run] = _LOOKS_BETWEEN

    def _is_resting(self, run: str) -> bool:
        left = self._rests.pop(run, 0)
        if left > 1:
            self._rests[run] = left - 1
        return left > 0


def flags_without_run(snapshot: Snapshot, runs: Iterable[MaintenanceRun]) -> list[tuple[str, str]]:
    """Clusters with the flag of a run that is none of these, with the id that it bears."""
    under_way = {run.id for run in runs}
    flags = (
        (cluster.id, (cluster.upgrade_correlation_id or "").removeprefix(UPGRADE_OF_RUN))
        for cluster in snapshot.clusters
        if cluster.upgrade_mode and (cluster.upgrade_correlation_id or "").startswith(UPGRADE_OF_RUN)
    )
    return [(cluster, run) for cluster, run in flags if run not in under_way]
