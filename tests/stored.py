"""Writes to a store, and finds in it, what a test is about, through what production calls."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy

from ovirt_placement.model import PlacementKey
from ovirt_placement.store.enforcer.intents import IntendedMigration, Intent, Store
from ovirt_placement.store.enforcer.maintenance import HostProgress, MaintenanceRun
from ovirt_placement.store.keys import KeyChange, KeyStore
from tests.builders import CLUSTER


@contextmanager
def listening(**listeners: Callable[..., None]) -> Iterator[None]:
    """Have SQLAlchemy call these at its events of these names, of any database."""
    for name, listener in listeners.items():
        sqlalchemy.event.listen(sqlalchemy.Engine, name, listener)
    try:
        yield
    finally:
        for name, listener in listeners.items():
            sqlalchemy.event.remove(sqlalchemy.Engine, name, listener)


def put_keys(store: KeyStore, keys: Iterable[PlacementKey], *, set_by: str = "ann") -> None:
    """Set keys, whatever stands there."""
    change = KeyChange(put=tuple(keys))
    store.change(lambda placement: change, set_by=set_by)


def intent_of(store: Store, correlation_id: str) -> Intent:
    """The one intent of a correlation id, whether or not its end is known."""
    every = (*store.open_intents(), *store.history(within_seconds=1e12))
    (found,) = (intent for intent in every if intent.correlation_id == correlation_id)
    return found


def prepared(
    store: Store, vm: str = "vm", correlation_id: str = "one", *, epoch: int | None = None, **fields: Any
) -> Intent:
    """An intent that was written down for a request about one VM, from h1 to h2 of cluster c if unsaid."""
    values = {"cluster": "c", "source": "h1", "target": "h2", **fields}
    migration = IntendedMigration(vm=vm, correlation_id=correlation_id, **values)
    (intent,) = store.prepare([migration], epoch=epoch)
    return intent


def run_of(*hosts: str | HostProgress, **fields: Any) -> MaintenanceRun:
    """A maintenance run that is under way; what is not said of a host is its id."""
    numbered = enumerate(hosts)
    known = (
        HostProgress(host=one, name=one, position=at) if isinstance(one, str) else one for at, one in numbered
    )
    given = {"id": "run", "cluster": CLUSTER, "cluster_name": CLUSTER, "requested_by": "ada"}
    return MaintenanceRun(hosts=tuple(known), **{**given, **fields})
