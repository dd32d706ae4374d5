"""Writes under an epoch of the lease, or not at all: what a process that lost the lease would still write."""

from __future__ import annotations

from sqlalchemy import ColumnElement

from ovirt_placement.store.clock import now
from ovirt_placement.store.rows import EngineRows
from ovirt_placement.store.schema import leases
from ovirt_service.errors import UserError


class LeaseLost(UserError):
    """The epoch that something was to be written under is over: another enforcer may have taken over."""


def fence(rows: EngineRows, epoch: int) -> None:
    """Let a transaction pass only if this epoch lasts until its end; else raise `LeaseLost`.

    It must be the first statement. It locks the lease, so no other takes it before what follows is written.
    """
    locked = rows.execute(rows.update(leases).where(*lasts(epoch)).values(epoch=epoch))
    if locked.rowcount != 1:
        raise LeaseLost(f"epoch {epoch} of the lease of engine {rows.engine} is over: another may lead now")


def hold_back_writers(rows: EngineRows) -> None:
    """Wait for what is being written under the lease, and let nothing more be until this transaction ends.

    It must be the first statement. Without a lease nothing is written under one.
    """
    rows.execute(rows.update(leases).values(epoch=leases.c.epoch))


def lasts(epoch: int) -> tuple[ColumnElement[bool], ...]:
    """Conditions on the lease: that it is in this epoch, and has not expired."""
    return leases.c.epoch == epoch, leases.c.expires > now()
