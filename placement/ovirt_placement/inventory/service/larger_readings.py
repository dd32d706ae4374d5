"""Makes the larger readings: everything, all hosts, statistics, details of all VMs, searches."""

from __future__ import annotations

from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.reading.doubts import Doubts, kinds_of
from ovirt_placement.engine.reading.policies import PolicyReader
from ovirt_placement.engine.reading.requests import whole_answers
from ovirt_placement.engine.reading.topology import read_as_reported, read_hosts
from ovirt_placement.inventory.on_demand.details import read_details
from ovirt_placement.inventory.on_demand.needs import Needs
from ovirt_placement.inventory.on_demand.searches import read_searches
from ovirt_placement.inventory.on_demand.statistics import read_statistics
from ovirt_placement.inventory.service.reconciliation import ReconciliationScope
from ovirt_placement.inventory.service.view import Reading


class LargerReadings:
    """Remembers what an engine had, from one reading to the next."""

    def __init__(self) -> None:
        self._doubts = Doubts()

    def read(
        self, connection: EngineConnection, scope: ReconciliationScope, needs: Needs, began: float
    ) -> Reading:
        """Make one of them; raises what `EngineConnection.get` raises, and `Implausible`."""
        found = read(connection, scope, needs, began)
        if found.whole is not None:
            self._doubts.check(kinds_of(found.whole))
        elif found.hosts is not None:
            self._doubts.check({"hosts": [host.id for host in found.hosts]})
        return found


def read(connection: EngineConnection, scope: ReconciliationScope, needs: Needs, began: float) -> Reading:
    """Make one of the larger readings; raises what `EngineConnection.get` raises."""
    if scope is ReconciliationScope.WHOLE:
        # Policies that were remembered would undo what the follower has read since.
        return Reading(began, whole=read_as_reported(connection, policies=PolicyReader()))
    if scope is ReconciliationScope.HOSTS:
        with whole_answers(connection):
            return Reading(began, hosts=read_hosts(connection))
    if scope is ReconciliationScope.DETAILS:
        return Reading(began, details=read_details(connection, needs.details))
    if scope is ReconciliationScope.SEARCHES:
        return Reading(began, searches=read_searches(connection, needs.searches))
    return Reading(began, statistics=read_statistics(connection, needs.statistics))
