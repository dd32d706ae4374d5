"""Reads the engine in threads: VMs and other objects again, and all of a kind."""

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any

from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.failures import EngineFault
from ovirt_placement.engine.policies import PolicyReader
from ovirt_placement.engine.requests import RULES, Doubts, Kinds, kinds_of
from ovirt_placement.engine.topology import (
    read_as_reported,
    read_hosts,
    read_labels,
    read_networks,
    reread_cluster,
    reread_hosts,
    reread_vms,
)
from ovirt_placement.engine.vms import Detail
from ovirt_placement.inventory.on_demand import Demands, read_details, read_searches, read_statistics
from ovirt_placement.inventory.service.schedule import ReconciliationScope, SubjectKind
from ovirt_placement.inventory.service.view import Reading
from ovirt_placement.model import Vm

_log = logging.getLogger(__name__)


def reread(
    connection: EngineConnection,
    policies: PolicyReader,
    kind: SubjectKind,
    ids: Sequence[str],
    wanted: Detail,
) -> tuple[Mapping[str, Any], bool]:
    """Read these of a kind, by their ids; whether VMs have the details that are wanted."""
    match kind:
        case SubjectKind.VM:
            return _reread_vms(connection, ids, wanted)
        case SubjectKind.HOST:
            return reread_hosts(connection, ids), True
        case SubjectKind.CLUSTER:
            return {one: reread_cluster(connection, one, policies) for one in ids}, True
        case SubjectKind.LABELS:
            return {"": read_labels(connection)}, True
    return {"": read_networks(connection)}, True


def _reread_vms(
    connection: EngineConnection, ids: Sequence[str], wanted: Detail
) -> tuple[Mapping[str, Vm], bool]:
    """A disk that is removed at this moment is enough for the engine to fail on all that it is to follow."""
    try:
        return reread_vms(connection, ids, wanted), True
    except EngineFault as fault:
        if not wanted or fault.code != HTTPStatus.INTERNAL_SERVER_ERROR:
            raise
        _log.info("reads VMs without what hangs on them, for now: %s", fault)
    return reread_vms(connection, ids), False


def read_plausible(
    doubts: Doubts, connection: EngineConnection, scope: ReconciliationScope, needs: Demands, began: float
) -> Reading:
    """Make one, doubting what suddenly lacks most of what was there; raises `Implausible` besides."""
    reading = partial(read, connection, scope, needs, began)
    return doubts.confirm(reading, _kinds, lambda doubt: doubt.kinds <= RULES)


def _kinds(found: Reading) -> Kinds:
    if found.whole is not None:
        return kinds_of(found.whole)
    return {} if found.hosts is None else {"hosts": [host.id for host in found.hosts]}


def read(connection: EngineConnection, scope: ReconciliationScope, needs: Demands, began: float) -> Reading:
    """Make one of the larger readings; raises what `EngineConnection.get` raises."""
    match scope:
        case ReconciliationScope.WHOLE:
            # Policies that were remembered would undo what the follower has read since.
            return Reading(began, whole=read_as_reported(connection, policies=PolicyReader()))
        case ReconciliationScope.HOSTS:
            return Reading(began, hosts=read_hosts(connection))
        case ReconciliationScope.DETAILS:
            return Reading(began, details=read_details(connection, needs.details))
        case ReconciliationScope.SEARCHES:
            return Reading(began, searches=read_searches(connection, needs.searches))
    return Reading(began, statistics=read_statistics(connection, needs.statistics))
