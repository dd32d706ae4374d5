"""What the store shows of an enforcer that leads, with other settings than the configuration here has."""

from contextlib import closing
from pathlib import Path

from ovirt_enforcer.settings import EnforcerSettings, recorded_settings
from ovirt_placement.store.enforcer.leader import EnforcerSettingsStore, LeaseStore


def lead(folder: Path, settings: EnforcerSettings) -> None:
    """Take the lease in this folder's store, for longer than any test, and write down the settings."""
    url = f"sqlite:///{folder}/store.db"
    with (
        closing(LeaseStore(url, engine="default", patience_seconds=5)) as leases,
        closing(EnforcerSettingsStore(url, engine="default", patience_seconds=5)) as store,
    ):
        epoch = leases.take_lease("one", 600.0)
        assert epoch is not None
        store.record(epoch, recorded_settings(settings))
