"""MAC pools: added, changed, removed, and given to clusters. NICs take their addresses from the default one.

Source: the engine's AddMacPoolCommand, UpdateMacPoolCommand, RemoveMacPoolCommand and MacPoolValidator.
"""

from __future__ import annotations

from msgspec.structs import replace

from .backend import Backend
from .entities import ADMIN, Caller
from .event_codes import EventCode, EventType
from .mac_pool import DEFAULT_POOL, MacPool
from .refusals import bad_parameters, conflict
from .rejections import existing


class MacPoolCommands:
    """Commands on MAC pools; all raise `Rejected` or `NotFound`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._state = backend.state

    def add(self, pool: MacPool, *, caller: Caller = ADMIN) -> MacPool:
        """Add a pool, whose id it gets here."""
        with self._backend.lock:
            if pool.default:
                raise bad_parameters(
                    "ACTION_TYPE_FAILED_SETTING_DEFAULT_MAC_POOL_IS_NOT_SUPPORTED",
                    "Cannot add MAC Pool. Setting default MAC Pool is not supported.",
                )
            return self._kept(
                replace(pool, id=self._backend.new_id()), "add", EventCode.MAC_POOL_ADD_SUCCESS, caller
            )

    def edit(self, pool: MacPool, *, caller: Caller = ADMIN) -> MacPool:
        """Put this in the place of the pool with the same id."""
        with self._backend.lock:
            before = self._known(pool.id)
            self._check_name(pool, "edit")
            if pool.default != before.default:
                raise bad_parameters(
                    "ACTION_TYPE_FAILED_CHANGING_DEFAULT_MAC_POOL_IS_NOT_SUPPORTED",
                    "Cannot edit MAC Pool. Changing default MAC Pool is not supported.",
                )
            return self._kept(pool, "edit", EventCode.MAC_POOL_EDIT_SUCCESS, caller)

    def remove(self, pool_id: str, *, caller: Caller = ADMIN) -> None:
        """Remove a pool that no cluster has, and that is not the default one."""
        with self._backend.lock:
            pool = self._known(pool_id)
            if pool_id == DEFAULT_POOL.id:
                raise conflict(
                    "ACTION_TYPE_FAILED_CANNOT_REMOVE_DEFAULT_MAC_POOL",
                    "Cannot remove MAC Pool. Default MAC Pool cannot be removed.",
                )
            users = [cluster.name for cluster in self._state.clusters.values() if cluster.mac_pool == pool_id]
            if users:
                names = "\n".join(f"\t{name}" for name in users)
                raise conflict(
                    "ACTION_TYPE_FAILED_CANNOT_REMOVE_STILL_USED_MAC_POOL",
                    f"Cannot remove MAC Pool. Several clusters ({len(users)}) are using this MAC Pool:"
                    f"\n{names}\n - Please remove it from all clusters that are using it and try again.",
                )
            self._state.drop(self._state.mac_pools, pool_id)
            self._log(EventCode.MAC_POOL_REMOVE_SUCCESS, pool, caller)

    def _check_name(self, pool: MacPool, action: str) -> None:
        if any(known.name == pool.name and known.id != pool.id for known in self._state.mac_pools.values()):
            raise conflict(
                "ACTION_TYPE_FAILED_NAME_ALREADY_USED",
                f"Cannot {action} MAC Pool."
                " The MAC Pool name is already in use, please choose a unique name and try again.",
            )

    def _kept(self, pool: MacPool, action: str, code: EventType, caller: Caller) -> MacPool:
        self._check_name(pool, action)
        if not pool.ranges:
            raise bad_parameters(
                "ACTION_TYPE_FAILED_MAC_POOL_MUST_HAVE_RANGE",
                f"Cannot {action} MAC Pool. MAC Pool must contain at least one MAC address range.",
            )
        self._state.put(self._state.mac_pools, pool)
        self._log(code, pool, caller)
        return pool

    def _known(self, pool_id: str) -> MacPool:
        return existing(self._state.mac_pools, pool_id)

    def _log(self, code: EventType, pool: MacPool, caller: Caller) -> None:
        self._backend.audit_log.log(code, caller, words={"pool": pool.name, "id": pool.id})
