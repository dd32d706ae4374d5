"""The parts of the store that the enforcer uses: opened together, and closed together."""

import logging
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, TypeVar

from ovirt_placement.config import Config
from ovirt_placement.store.enforcer.history import HistoryStore
from ovirt_placement.store.enforcer.intents import Store
from ovirt_placement.store.enforcer.leader import (
    CycleStore,
    EnforcerSettingsStore,
    HaAnnouncementStore,
    LeaseStore,
    ViolatedRuleStore,
)
from ovirt_placement.store.enforcer.maintenance import MaintenanceStore
from ovirt_placement.store.enforcer.observations import MembershipStore, SampleStore
from ovirt_placement.store.keys import KeyStore
from ovirt_placement.store.orders import ApprovalStore, PauseStore
from ovirt_placement.store.sql.access import PERSON_SECONDS, StoreAccess
from ovirt_placement.store.sql.database import Database, StoreAway
from ovirt_placement.store.user_actions import UserActionStore

_log = logging.getLogger(__name__)

_Part = TypeVar("_Part", bound=StoreAccess)


class Stores:
    """All of them, on one database, which is waited for as long as a person would wait."""

    def __init__(
        self, config: Config, epoch: Callable[[], int] | None = None, *, create: bool = True
    ) -> None:
        """`epoch` gives that of the lease: what a leader alone may write raises `LeaseLost` once it is over.

        With `create` false nothing is written: a store that does not exist is `StoreAway`.
        """
        self._closing = ExitStack()

        def opened(kind: Callable[..., _Part], **more: Any) -> _Part:
            given = {"engine": config.engine.name, "patience_seconds": PERSON_SECONDS, "create": create}
            part = kind(config.store.url, **given, **more)
            self._closing.callback(part.close)
            return part

        self.intents = opened(Store)
        self.leases = opened(LeaseStore)
        self.pauses = opened(PauseStore)
        self.keys = opened(KeyStore, epoch=epoch)
        self.memberships = opened(MembershipStore, epoch=epoch)
        self.history = opened(HistoryStore, epoch=epoch)
        self.samples = opened(SampleStore, epoch=epoch)
        self.approvals = opened(ApprovalStore, epoch=epoch)
        self.actions = opened(UserActionStore, epoch=epoch)
        self.maintenance = opened(MaintenanceStore, epoch=epoch)
        self.cycles = opened(CycleStore, epoch=epoch)
        self.violated = opened(ViolatedRuleStore, epoch=epoch)
        self.settings = opened(EnforcerSettingsStore, epoch=epoch)
        self.ha_announcements = opened(HaAnnouncementStore, epoch=epoch)

    def close(self) -> None:
        self._closing.close()


def check_store(config: Config) -> None:
    """Find out now what a person must set right; a store that was lost is waited for."""
    database = Database(config.store.url, patience_seconds=PERSON_SECONDS, create=True)
    try:
        database.check_writable()
    except StoreAway as passing:
        _log.warning("%s", passing)
    finally:
        database.close()
