"""What is said of a cluster's upgrade while others carry it out: it began, how far it is, it is done.

Source: the engine's StartClusterUpgradeCommand, UpdateClusterUpgradeCommand and FinishClusterUpgradeCommand.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from .backend import Backend
from .entities import ADMIN, Caller, Cluster, Job
from .event_codes import EventCode, EventType
from .rejections import Message, Rejected, existing


class UpgradeCommands:
    """Commands on clusters; all raise `NotFound`, and `progress` also `Rejected`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._state = backend.state

    def start(self, cluster_id: str, *, caller: Caller = ADMIN) -> Job:
        """Mark the cluster, unless it is marked already."""
        with self._backend.lock:
            cluster = self._known(cluster_id)
            if cluster.upgrade_mode:
                self._backend.audit_log.log(
                    EventCode.USER_START_CLUSTER_UPGRADE_FAILED, caller, cluster=cluster
                )
                text = f"Failed to set upgrade running flag on cluster '{cluster_id}'."
                raise Rejected(Message("CLUSTER_UPGRADE_RUNNING", text))
            return self._change(
                cluster,
                EventCode.USER_START_CLUSTER_UPGRADE,
                caller,
                upgrade_mode=True,
                upgrade_percent=0,
                upgrade_correlation_id=caller.correlation_id,
            )

    def progress(self, cluster_id: str, percent: int, *, caller: Caller = ADMIN) -> Job:
        """Say how far it is; only who began it may, by the correlation id."""
        with self._backend.lock:
            cluster = self._known(cluster_id)
            if not cluster.upgrade_mode:
                raise _refused("NOT_STARTED", "Cannot update progress, cluster upgrade has not been started.")
            if not 0 <= percent <= 100:
                raise _refused(
                    "PERCENT_COMPLETE_INVALID",
                    "Cannot update upgrade percent complete, the value needs to be in the range of 0 to 100.",
                )
            if caller.correlation_id != cluster.upgrade_correlation_id:
                raise _refused(
                    "CORRELATION_MISMATCH",
                    "Cannot update progress, given correlation id does not match the current update"
                    " correlation id.",
                )
            code = EventCode.USER_UPDATE_CLUSTER_UPGRADE
            return self._change(cluster, code, caller, upgrade_percent=percent)

    def finish(self, cluster_id: str, *, caller: Caller = ADMIN) -> Job:
        """Take the mark away, also one that another made; whose it was stays."""
        with self._backend.lock:
            return self._change(
                self._known(cluster_id),
                EventCode.USER_FINISH_CLUSTER_UPGRADE,
                caller,
                upgrade_mode=False,
                upgrade_percent=0,
            )

    def _known(self, cluster_id: str) -> Cluster:
        return existing(self._state.clusters, cluster_id)

    def _change(self, cluster: Cluster, code: EventType, caller: Caller, **changes: Any) -> Job:
        self._state.put(self._state.clusters, replace(cluster, **changes))
        self._backend.audit_log.log(code, caller, cluster=cluster)
        job = self._backend.jobs.start(f"Upgrading Cluster {cluster.name}", caller)
        self._backend.jobs.end(job, "finished")
        return job


def _refused(key: str, text: str) -> Rejected:
    return Rejected(Message(f"ACTION_TYPE_FAILED_CLUSTER_UPGRADE_{key}", text))
