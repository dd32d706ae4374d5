"""Scheduling policies and units, with the engine's bugs; and the policy and properties of a cluster.

Source: reference/engine-api.md 7.4 and 7.5.
"""

from __future__ import annotations

from collections.abc import Mapping

from .backend import Backend
from .entities import ADMIN, Caller, Cluster, PolicyFilter, PolicyWeight, SchedulingPolicy


class PolicyCommands:
    """Commands on scheduling policies; all raise `Rejected` with HTTP 400."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def update_cluster(
        self,
        cluster_id: str,
        *,
        policy_id: str | None = None,
        policy_name: str | None = None,
        properties: Mapping[str, str] | None = None,
        ha_reservation: bool | None = None,
        description: str | None = None,
        caller: Caller = ADMIN,
    ) -> Cluster:
        """Assign a policy (if unknown, the default), and merge properties into the present ones.

        Properties that no unit of the policy knows are dropped; the others must match their expression.
        """
        raise NotImplementedError

    def add(
        self,
        name: str,
        *,
        description: str = "",
        properties: Mapping[str, str] | None = None,
        caller: Caller = ADMIN,
    ) -> SchedulingPolicy:
        """Add a policy; it has the mandatory filters only, and no balance."""
        raise NotImplementedError

    def edit(
        self,
        policy_id: str,
        *,
        name: str | None = None,
        description: str | None = None,
        properties: Mapping[str, str] | None = None,
        caller: Caller = ADMIN,
    ) -> SchedulingPolicy:
        raise NotImplementedError

    def remove(self, policy_id: str, *, caller: Caller = ADMIN) -> None:
        raise NotImplementedError

    def add_filter(
        self, policy_id: str, unit_id: str, *, position: int = 0, caller: Caller = ADMIN
    ) -> PolicyFilter:
        """Attach a filter. A refused one stays in the engine's memory until it restarts: the engine's bug."""
        raise NotImplementedError

    def add_weight(
        self, policy_id: str, unit_id: str, *, factor: int = 1, caller: Caller = ADMIN
    ) -> PolicyWeight:
        """Attach a weight; with the same bug as `add_filter`."""
        raise NotImplementedError

    def set_balance(self, policy_id: str, unit_id: str, *, caller: Caller = ADMIN) -> None:
        """Put the unit in place of the policy's balance."""
        raise NotImplementedError

    def remove_unit(self, policy_id: str, unit_id: str, *, caller: Caller = ADMIN) -> None:
        """Detach a filter, weight or balance."""
        raise NotImplementedError

    def delete_unit(self, unit_id: str, *, caller: Caller = ADMIN) -> None:
        """Forget an external unit that no policy uses."""
        raise NotImplementedError
