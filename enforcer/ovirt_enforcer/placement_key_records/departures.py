"""Forgets what VMs were remembered by, once it is sure that the engine has them no more.

One reading may be partial, an engine may list nothing for a moment, and a VM whose storage domain is detached
comes back with it under the same id. So a VM must be missing for a week, and several readings of this process
must agree on that: one that has just started does not rely on what was seen before.
"""

from __future__ import annotations

import logging

from ovirt_placement.model import Snapshot
from ovirt_placement.store.keys import KeyStore

#: For so long the engine must not have had a VM, by the store's clock.
MISSING_SECONDS = 7 * 24 * 3600.0
#: In this many whole readings in a row, all of them by this process.
READINGS = 3

_log = logging.getLogger(__name__)


class Departures:
    """Looks for VMs that the store remembers and the engine does not have."""

    def __init__(self, store: KeyStore) -> None:
        self._store = store
        self._readings: dict[str, int] = {}

    def look(self, snapshot: Snapshot) -> None:
        """Take a whole reading of the engine; one without any VM says nothing about them."""
        if not snapshot.vms:
            return
        missing = self._store.remembered_vms() - snapshot.vm_by_id.keys()
        self._readings = {vm: self._readings.get(vm, 0) + 1 for vm in missing}
        ages = self._store.mark_missing(missing)
        gone = [
            vm
            for vm, readings in sorted(self._readings.items())
            if readings >= READINGS and ages[vm] >= MISSING_SECONDS
        ]
        self._store.forget_vms(gone)
        if gone:
            _log.info("forgot VMs that the engine has had no more for a week: %s", ", ".join(gone))
