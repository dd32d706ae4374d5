"""The settings by which orders are carried out: those of the leading enforcer, else this machine's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ovirt_enforcer.recorded_settings import recorded_settings
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.config import Config
from ovirt_placement.store.enforcer_settings import EnforcerSettingsStore
from ovirt_placement.store.opening import stored


def settings_in_force(config: Config) -> Mapping[str, Any]:
    """The settings by their names, in plain values. Raises `StoreAway`."""
    of_leader = stored(EnforcerSettingsStore, config, EnforcerSettingsStore.of_leader, None)
    if of_leader is not None:
        return of_leader
    return recorded_settings(config.section("enforcer", EnforcerSettings))
