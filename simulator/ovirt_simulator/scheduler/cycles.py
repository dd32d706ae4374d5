"""The engine's load balancing: once a minute it asks the external balance of each cluster's policy.

Source: the engine's SchedulingManager (performLoadBalancing, externalRunBalance), as it behaves. The engine's
own balance units do nothing here.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Protocol

from ..core.backend import Backend
from ..core.entities import Cluster, Host, Job
from ..core.rejections import Rejected
from ..core.state import State
from .external import ExternalUnits, Malformed


class MigrateBySystem(Protocol):
    """Begins a migration that the engine itself wants. Raises `Rejected`."""

    def __call__(self, vm_id: str, reason: str, *, hosts: Collection[str] = ()) -> Job: ...


def is_migrating(state: State, host: Host) -> bool:
    """Return whether a VM is on its way from or to the host."""
    there = (*state.vms_on(host.id), *state.incoming(host.id))
    return any(vm.status == "migrating" for vm in there)


_REASON = "Load balancing"

_log = logging.getLogger(__name__)


class LoadBalancing:
    """Asks, and migrates what it is ordered to."""

    def __init__(self, backend: Backend, external: ExternalUnits, migrate: MigrateBySystem) -> None:
        self._backend = backend
        self._external = external
        self._migrate = migrate

    def cycle(self) -> None:
        """Balance every cluster once; a policy without balance, or a malformed answer, ends it for all."""
        with self._backend.lock:
            clusters = tuple(self._backend.state.clusters.values())
        for cluster in clusters:
            try:
                self._balance(cluster)
            except (Malformed, LookupError) as error:
                _log.warning("load balancing ends at cluster %s: %s", cluster.name, error)
                return

    def _balance(self, cluster: Cluster) -> None:
        state = self._backend.state
        with self._backend.lock:
            balance = state.policies[cluster.policy_id].balance
            if balance is None:
                raise LookupError("its policy has no balance")
            unit = state.units[balance]
            hosts = [h for h in state.hosts_of(cluster.id) if h.up and not is_migrating(state, h)]
        if unit.internal or not hosts:
            return
        move = self._external.balance(cluster, unit, hosts)
        if move is None:
            return
        vm_id, targets = move
        try:
            self._migrate(vm_id, _REASON, hosts=targets)
        except Rejected as refusal:
            _log.info("load balancing of %s: %s", vm_id, refusal.detail)
