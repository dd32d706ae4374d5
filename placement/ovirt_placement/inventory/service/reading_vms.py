"""Reads single VMs again: with what hangs on them, or without it while the engine fails on that."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from http import HTTPStatus

from ovirt_placement.engine.connection.client import EngineConnection, EngineFault
from ovirt_placement.engine.reading.by_id import reread_vms
from ovirt_placement.engine.reading.detail import Detail
from ovirt_placement.model import Vm

_log = logging.getLogger(__name__)


def read_vms(connection: EngineConnection, ids: Sequence[str], wanted: Detail) -> tuple[dict[str, Vm], bool]:
    """Read VMs by their ids; whether that was with the details that are wanted.

    A disk that is removed at this moment is enough for the engine to fail on all that it is to follow.
    """
    try:
        return reread_vms(connection, ids, wanted), True
    except EngineFault as fault:
        if not wanted or fault.code != HTTPStatus.INTERNAL_SERVER_ERROR:
            raise
        _log.info("reads VMs without what hangs on them, for now: %s", fault)
    return reread_vms(connection, ids), False
