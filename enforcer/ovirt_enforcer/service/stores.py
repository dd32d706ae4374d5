"""The parts of the store that the enforcer's loop writes to."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from ovirt_placement.config import Config
from ovirt_placement.store.approvals import ApprovalStore
from ovirt_placement.store.cycles import CycleStore
from ovirt_placement.store.database import Database, StoreAway
from ovirt_placement.store.enforcer_settings import EnforcerSettingsStore
from ovirt_placement.store.ha_announcements import HaAnnouncementStore
from ovirt_placement.store.history import HistoryStore
from ovirt_placement.store.intents import Store
from ovirt_placement.store.keys import KeyStore
from ovirt_placement.store.leases import LeaseStore
from ovirt_placement.store.maintenance import MaintenanceStore
from ovirt_placement.store.memberships import MembershipStore
from ovirt_placement.store.samples import SampleStore
from ovirt_placement.store.user_actions import UserActionStore

#: The store is not in anybody's way here: wait for it as long as a person would.
STORE_PATIENCE_SECONDS: Final = 5.0

_log = logging.getLogger(__name__)


class Stores:
    """Opened once, and closed together."""

    def __init__(self, config: Config, epoch: Callable[[], int]) -> None:
        url, engine, patience = config.store.url, config.engine.name, STORE_PATIENCE_SECONDS
        self.intents = Store(url, engine=engine, patience_seconds=patience)
        self.keys = KeyStore(url, engine=engine, patience_seconds=patience, epoch=epoch)
        self.memberships = MembershipStore(url, engine=engine, patience_seconds=patience, epoch=epoch)
        self.history = HistoryStore(url, engine=engine, patience_seconds=patience, epoch=epoch)
        self.samples = SampleStore(url, engine=engine, patience_seconds=patience, epoch=epoch)
        self.approvals = ApprovalStore(url, engine=engine, patience_seconds=patience, epoch=epoch)
        self.actions = UserActionStore(url, engine=engine, patience_seconds=patience, epoch=epoch)
        self.maintenance = MaintenanceStore(url, engine=engine, patience_seconds=patience, epoch=epoch)
        self.cycles = CycleStore(url, engine=engine, patience_seconds=patience, epoch=epoch)
        self.settings = EnforcerSettingsStore(url, engine=engine, patience_seconds=patience, epoch=epoch)
        self.leases = LeaseStore(url, engine=engine, patience_seconds=patience)
        self.ha_announcements = HaAnnouncementStore(
            url, engine=engine, patience_seconds=patience, epoch=epoch
        )

    def close(self) -> None:
        parts = self.intents, self.keys, self.memberships, self.history, self.approvals, self.leases
        others = self.samples, self.ha_announcements, self.actions, self.maintenance, self.cycles
        for part in (*parts, *others, self.settings):
            part.close()


def check_store(config: Config) -> None:
    """Find out now what a person must set right; a store that was lost is waited for."""
    database = Database(config.store.url, patience_seconds=STORE_PATIENCE_SECONDS, create=True)
    try:
        database.check_writable()
    except StoreAway as passing:
        _log.warning("%s", passing)
    finally:
        database.close()
