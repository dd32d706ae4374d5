"""Data centers: added without storage, changed, and removed.

Source: the engine's AddEmptyStoragePoolCommand, UpdateStoragePoolCommand and RemoveStoragePoolCommand.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict, replace

from . import cluster_refusals, compatibility, data_center_version
from .backend import Backend
from .entities import ADMIN, Caller, DataCenter, Record
from .event_codes import EventCode, EventType
from .refusals import conflict
from .rejections import existing


class DataCenterEdit(Record, frozen=True):
    """What a client says of a data center; what is None stays as it is."""

    name: str | None = None
    description: str | None = None
    comment: str | None = None
    local_storage: bool | None = None
    compatibility: str | None = None

    @property
    def given(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


class DataCenterCommands:
    """Commands on data centers; all raise `Rejected` or `NotFound`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._state = backend.state

    def add(self, edit: DataCenterEdit, *, caller: Caller = ADMIN) -> DataCenter:
        """Add a data center that nothing belongs to yet."""
        with self._backend.lock:
            plain = DataCenter(
                id=self._backend.new_id(),
                name="",
                status="uninitialized",
                compatibility=compatibility.LATEST,
            )
            added = replace(plain, **edit.given)
            self._check_name(added, "create")
            if added.compatibility not in compatibility.LEVELS:
                raise compatibility.unsupported("create", "Data Center")
            return self._kept(added, EventCode.USER_ADD_STORAGE_POOL, caller)

    def edit(self, data_center_id: str, edit: DataCenterEdit, *, caller: Caller = ADMIN) -> DataCenter:
        with self._backend.lock:
            before = self._known(data_center_id)
            changed = replace(before, **edit.given)
            self._check_name(changed, "edit")
            data_center_version.check_changed(self._state, before, changed)
            return self._kept(changed, EventCode.USER_UPDATE_STORAGE_POOL, caller)

    def remove(self, data_center_id: str, *, caller: Caller = ADMIN) -> None:
        """Remove a data center that is not active; its clusters stay, and belong to none."""
        with self._backend.lock:
            data_center = self._known(data_center_id)
            if data_center.status == "up":
                raise conflict(
                    "ERROR_CANNOT_REMOVE_ACTIVE_STORAGE_POOL", "Cannot remove an active Data Center."
                )
            for cluster in tuple(self._state.clusters.values()):
                if cluster.data_center == data_center_id:
                    self._state.put(self._state.clusters, replace(cluster, data_center=None))
            for permission in tuple(self._state.permissions.values()):
                if permission.data_center == data_center_id:
                    self._state.drop(self._state.permissions, permission.id)
            self._state.drop(self._state.data_centers, data_center_id)
            self._log(EventCode.USER_REMOVE_STORAGE_POOL, data_center, caller)

    def _check_name(self, data_center: DataCenter, action: str) -> None:
        known = self._state.data_centers.values()
        if any(each.name == data_center.name and each.id != data_center.id for each in known):
            raise cluster_refusals.data_center_name_used(action)

    def _kept(self, data_center: DataCenter, code: EventType, caller: Caller) -> DataCenter:
        self._state.put(self._state.data_centers, data_center)
        self._log(code, data_center, caller)
        return data_center

    def _known(self, data_center_id: str) -> DataCenter:
        return existing(self._state.data_centers, data_center_id)

    def _log(self, code: EventType, data_center: DataCenter, caller: Caller) -> None:
        words = {"data_center": data_center.name, "version": data_center.compatibility}
        self._backend.audit_log.log(code, caller, data_center=data_center, words=words)
