"""Keeps what VMs are to be remembered by: the customer keys that they started with, and their sticky copies.

It may be killed at any point: what is still to be recorded is seen again, and to record it twice is to record
it once. What the store holds is all its memory.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable

from ovirt_enforcer.attention import Attention
from ovirt_placement.errors import UserError
from ovirt_placement.explain import vm_name
from ovirt_placement.inventory.keys import with_keys
from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.rules.placement_keys.hierarchy import keys_by_resource, sticky_copies
from ovirt_placement.rules.placement_keys.levels import NODE
from ovirt_placement.rules.placement_keys.presence import present_set
from ovirt_placement.rules.placement_keys.property import NAME, is_readable
from ovirt_placement.rules.placement_keys.sticky import copies_after_start, sticky_keys
from ovirt_placement.state_check import RESTING_STATUSES, RUNNING_STATUSES
from ovirt_placement.store_keys import KeyStore, Run

#: On a host, but not for sure: a start that fails leaves nothing behind.
_STARTING = {"powering_up", "restoring_state"}
#: An engine may tell the beginning of one run a little differently; no VM stops and starts so quickly.
_SAME_RUN_SECONDS = 10.0

_log = logging.getLogger(__name__)


class Keeper:
    """Follows starts and stops through the snapshots that it is shown."""

    def __init__(self, store: KeyStore, clock: Callable[[], float], longest_pause: float) -> None:
        self._store = store
        self._clock = clock
        self._longest_pause = longest_pause
        self._all = Attention("placement keys")
        self._clusters: dict[str, Attention] = {}
        #: As of this revision of the store, since when the VMs that have a record were running.
        self._revision: int | None = None
        self._recorded: dict[str, float | None] = {}
        self._told: set[tuple[str, str]] = set()

    def glance(self, read: Callable[[], Snapshot]) -> None:
        """Look at what is known now, if it can be read."""
        try:
            snapshot = read()
        except UserError as error:
            self._all.fail(error, self._clock(), self._longest_pause)
        else:
            self.look(snapshot)

    def look(self, snapshot: Snapshot) -> None:
        """Record the starts and stops that a snapshot shows; what fails is logged and done later."""
        if self._all.due > self._clock():
            return
        try:
            self._tell_mistakes(snapshot)
            self._read_records()
            self._forget_stopped(snapshot)
            self._remember_started(snapshot)
        except Exception as error:  # the enforcer has other work, too
            self._all.fail(error, self._clock(), self._longest_pause)
        else:
            self._all.recover()

    def _read_records(self) -> None:
        revision = self._store.revision()
        if revision != self._revision:
            self._recorded = self._store.runs()
            self._revision = revision

    def _forget_stopped(self, snapshot: Snapshot) -> None:
        known = snapshot.vm_by_id
        self._store.end_runs([vm for vm in self._recorded if vm not in known or stopped(known[vm])])

    def _remember_started(self, snapshot: Snapshot) -> None:
        """Record each cluster by itself: one cluster's failure never ends another's."""
        started = defaultdict(list)
        for vm in snapshot.vms:
            if runs(vm) and (vm.id not in self._recorded or other_run(vm, self._recorded[vm.id])):
                started[vm.cluster].append(vm)
        if not started:
            return
        # Not as the snapshot has them: what this store holds is newer.
        keyed = with_keys(snapshot, self._store.records())
        for cluster, vms in started.items():
            attention = self._clusters.setdefault(cluster, Attention(f"placement keys of cluster {cluster}"))
            if attention.due > self._clock():
                continue
            try:
                self._store.begin_runs(begun(keyed, vms))
            except Exception as error:
                attention.fail(error, self._clock(), self._longest_pause)
            else:
                attention.recover()

    def _tell_mistakes(self, snapshot: Snapshot) -> None:
        """Say once of each property that it is ignored: it must stop no start."""
        for vm in snapshot.vms:
            text = vm.custom_properties.get(NAME, "")
            if not is_readable(text) and (vm.id, text) not in self._told:
                self._told.add((vm.id, text))
                _log.warning(
                    "VM %s: custom property %s is ignored: %r is not of the form NAME:VALUE:WEIGHT,...",
                    vm_name(vm.id, snapshot),
                    NAME,
                    text,
                )


def runs(vm: Vm) -> bool:
    """Whether its start has succeeded."""
    return vm.host is not None and vm.status in RUNNING_STATUSES - _STARTING


def stopped(vm: Vm) -> bool:
    """Whether its run is over. One whose host does not respond may run still."""
    return vm.status in RESTING_STATUSES


def other_run(vm: Vm, since: float | None) -> bool:
    """Whether a VM has stopped and started since its record was made, with nobody looking."""
    if vm.running_since is None or since is None:
        return False
    return abs(vm.running_since - since) > _SAME_RUN_SECONDS


def begun(snapshot: Snapshot, vms: Iterable[Vm]) -> tuple[Run, ...]:
    """What running VMs are to be remembered by, as if they had started just now."""
    return tuple(_run(snapshot, vm) for vm in vms)


def _run(snapshot: Snapshot, vm: Vm) -> Run:
    own = keys_by_resource(snapshot).get((NODE, vm.host or ""), ())
    copies = copies_after_start(vm.id, sticky_copies(snapshot).get(vm.id, ()), sticky_keys(own))
    return Run(vm.id, vm.running_since, present_set(snapshot, vm), copies)
