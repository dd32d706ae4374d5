"""The answer of `ovirt-placement ha-check` as data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ovirt_placement.answers.document import Document
from ovirt_placement.answers.ha_check import placement
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import Named, named_cluster, named_host, named_hosts, named_vm, named_vms
from ovirt_placement.model.record import Record
from ovirt_placement.rules.failover.check import HaCheck
from ovirt_placement.rules.failover.outcomes import Loss, Proven, Size, Survival, Tight, Unknown
from ovirt_placement.rules.failover.protection import Outside


class Failing(Record, frozen=True, omit_defaults=False):
    """Hosts that fail together, and the failure domains, where whole ones do."""

    hosts: tuple[Named, ...]
    domains: tuple[str, ...]


class Lost(Failing, frozen=True, omit_defaults=False):
    """Hosts that must not fail together, and VMs that would have no home then."""

    homeless: tuple[Named, ...]


class Home(Record, frozen=True, omit_defaults=False):
    vm: Named
    host: Named


class Survived(Failing, frozen=True, omit_defaults=False):
    """Hosts whose failure is survived, and where each VM would start, in the order of the starts."""

    homes: tuple[Home, ...]


class Tightest(Failing, frozen=True, omit_defaults=False):
    """Hosts whose failure leaves little room."""

    #: For how many more VMs of this size there is room then at most; below 0 there is too little.
    room_for: int
    memory_mb: int
    #: Null where the work budget ended before an answer.
    survived: bool | None


class Unprotected(Record, frozen=True, omit_defaults=False):
    """A highly available VM that the check is not about: it is down, or on a host that is not up."""

    vm: Named
    status: str
    host: Named | None
    host_status: str | None
    sentence: str


class FailingUnit(Record, frozen=True, omit_defaults=False):
    """Hosts that fail whole, and the name of their failure domain; null for hosts that were named."""

    hosts: tuple[Named, ...]
    domain: str | None


class Verdict(Record, frozen=True, omit_defaults=False):
    """What is proven by one measure."""

    #: Whether every such failure is survived; null if that is not known.
    safe: bool | None
    #: The smallest sets of hosts whose failure is not survived.
    losses: tuple[Lost, ...]
    #: Sets that were too hard.
    unknown: tuple[Failing, ...]
    #: How many sets are proven to be survived.
    survived: int
    #: How many sets the work budget left unjudged.
    unjudged: int
    #: The same counts by the size of the sets.
    sizes: tuple[Size, ...]
    #: Of each single failure that is survived, where everything goes.
    survivals: tuple[Survived, ...]
    #: The worst sets that were looked for where not all could be judged.
    tightest: tuple[Tightest, ...]


class CheckedCluster(Verdict, frozen=True, omit_defaults=False):
    """What is proven about one cluster: that all starts pass every filter."""

    cluster: Named
    #: How many hosts, or domains, fail together.
    failures: int
    #: What fails whole; nothing where every host fails by itself.
    units: tuple[FailingUnit, ...]
    #: By the engine's own, softer check.
    by_engine: Verdict
    outside: tuple[Unprotected, ...]


class HaCheckDocument(Document, frozen=True, kw_only=True, tag="ha_check"):
    """Whether highly available VMs would be started again if hosts failed."""

    clusters: tuple[CheckedCluster, ...]
    #: Clusters that were not judged, since they reserve nothing and were not named.
    not_checked: tuple[Named, ...]


def ha_check_document(
    found: Iterable[HaCheck], not_checked: Iterable[str], snapshot: Snapshot
) -> HaCheckDocument:
    return HaCheckDocument(
        clusters=tuple(_of_cluster(one, snapshot) for one in found),
        not_checked=tuple(named_cluster(cluster, snapshot) for cluster in not_checked),
    )


def _of_cluster(found: HaCheck, snapshot: Snapshot) -> CheckedCluster:
    return CheckedCluster(
        **_proven(found, snapshot),
        cluster=named_cluster(found.cluster, snapshot),
        failures=found.failures,
        units=tuple(FailingUnit(named_hosts(unit.hosts, snapshot), unit.domain) for unit in found.units),
        by_engine=Verdict(**_proven(found.by_engine, snapshot)),
        outside=tuple(_outside(one, snapshot) for one in found.outside),
    )


def _proven(found: Proven, snapshot: Snapshot) -> dict[str, Any]:
    """The fields of a verdict."""
    return {
        "safe": found.safe,
        "losses": tuple(
            Lost(*_failing(one, snapshot), named_vms(one.homeless, snapshot)) for one in found.losses
        ),
        "unknown": tuple(Failing(*_failing(one, snapshot)) for one in found.unknown),
        "survived": found.survived,
        "unjudged": found.unjudged,
        "sizes": found.sizes,
        "survivals": tuple(_survived(one, snapshot) for one in found.survivals),
        "tightest": tuple(
            Tightest(*_failing(one, snapshot), one.room_for, one.memory_mb, one.survived)
            for one in found.tightest
        ),
    }


def _failing(
    one: Loss | Unknown | Survival | Tight, snapshot: Snapshot
) -> tuple[tuple[Named, ...], tuple[str, ...]]:
    return named_hosts(one.hosts, snapshot), one.domains


def _survived(one: Survival, snapshot: Snapshot) -> Survived:
    homes = (Home(named_vm(vm, snapshot), named_host(host, snapshot)) for vm, host in one.homes.items())
    return Survived(*_failing(one, snapshot), homes=tuple(homes))


def _outside(one: Outside, snapshot: Snapshot) -> Unprotected:
    host = None if one.host is None else named_host(one.host, snapshot)
    return Unprotected(
        named_vm(one.vm, snapshot), one.status, host, one.host_status, placement(one, snapshot)
    )
