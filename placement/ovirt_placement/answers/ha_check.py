"""Whether highly available VMs would be started again if hosts failed."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from ovirt_placement.answers.document import Document
from ovirt_placement.answers.ha_check_domains import Domains
from ovirt_placement.model import Cluster, Snapshot
from ovirt_placement.model.names import Named, named_cluster, named_host, named_hosts, named_vm, named_vms
from ovirt_placement.model.record import Record
from ovirt_placement.rules.failover.check import DEFAULT_BUDGET, HaCheck, Spread, check
from ovirt_placement.rules.failover.outcomes import Loss, Proven, Size, Survival, Tight, Unknown
from ovirt_placement.rules.failover.protection import Outside
from ovirt_service.errors import UserError

HEADERS = (
    "cluster",
    "failures",
    "starts are",
    "by the engine's own check",
    "if these fail",
    "these have no home",
)
#: How much work a check does by each measure, where nobody says.
DEFAULT_STEPS = DEFAULT_BUDGET

#: The verdict on a cluster.
_WORDS = {True: "safe", False: "unsafe", None: "unknown"}
#: How many of the worst sets are reported where not all could be judged; JSON has them all.
_TIGHTEST = 3


class Failing(Record, frozen=True, omit_defaults=False):
    """Hosts that fail together, and the failure domains, where whole ones do."""

    hosts: tuple[Named, ...]
    domains: tuple[str, ...]


class LostSet(Failing, frozen=True, omit_defaults=False):
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


class CheckVerdict(Record, frozen=True, omit_defaults=False):
    """What is proven by one measure."""

    #: Whether every such failure is survived; null if that is not known.
    safe: bool | None
    #: The smallest sets of hosts whose failure is not survived.
    losses: tuple[LostSet, ...]
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


class CheckedCluster(CheckVerdict, frozen=True, omit_defaults=False):
    """What is proven about one cluster: that all starts pass every filter."""

    cluster: Named
    #: How many hosts, or domains, fail together.
    failures: int
    #: What fails whole; nothing where every host fails by itself.
    units: tuple[FailingUnit, ...]
    #: By the engine's own, softer check.
    by_engine: CheckVerdict
    outside: tuple[Unprotected, ...]


class HaCheckDocument(Document, frozen=True, kw_only=True, tag="ha_check"):
    """Whether highly available VMs would be started again if hosts failed."""

    clusters: tuple[CheckedCluster, ...]
    #: Clusters that were not judged, since they reserve nothing and were not named.
    not_checked: tuple[Named, ...]

    @property
    def safe(self) -> bool:
        """Whether all clusters are known to be safe."""
        return all(one.safe is True for one in self.clusters)


def ha_check(
    snapshot: Snapshot,
    clusters: Collection[Cluster],
    *,
    failures: int | None = None,
    steps: int = DEFAULT_STEPS,
    domains: Domains | None = None,
    chosen: bool = False,
    reserving: bool = True,
    spread: Spread | None = None,
) -> HaCheckDocument:
    """Check clusters: with `reserving` those with HA reservation, the others are named as not checked.

    This many `failures` at once, of hosts, or of `domains` that fail whole; where these were `chosen` out of
    all, only clusters that have hosts of theirs are checked. Raises `UserError` if no cluster is.
    """
    named = frozenset[str]().union(*(domain.hosts for domain in domains or ()))

    def asked(cluster: Cluster) -> bool:
        if not chosen:
            return cluster.ha_reservation or not reserving
        return any(host.id in named for host in snapshot.hosts_of_cluster.get(cluster.id, ()))

    left = [cluster for cluster in clusters if asked(cluster)]
    if not left:
        raise UserError("nothing was checked: no cluster has HA reservation; name one with --cluster")
    for cluster in left:
        _check_number(snapshot, cluster, failures or 0)
    found = [check(snapshot, cluster.id, failures, steps, domains=domains, spread=spread) for cluster in left]
    return HaCheckDocument(
        clusters=tuple(_of_cluster(one, snapshot) for one in found),
        not_checked=tuple(Named(one.id, one.name) for one in clusters if one not in left),
    )


def _check_number(snapshot: Snapshot, cluster: Cluster, failures: int) -> None:
    """Raise `UserError` if more is to fail than there is."""
    count = sum(host.up for host in snapshot.hosts_of_cluster.get(cluster.id, ()))
    if failures > count:
        raise UserError(f"--failures {failures}: cluster {cluster.name} has {count} hosts that are up")


def _of_cluster(found: HaCheck, snapshot: Snapshot) -> CheckedCluster:
    return CheckedCluster(
        **_proven(found, snapshot),
        cluster=named_cluster(found.cluster, snapshot),
        failures=found.failures,
        units=tuple(FailingUnit(named_hosts(unit.hosts, snapshot), unit.domain) for unit in found.units),
        by_engine=CheckVerdict(**_proven(found.by_engine, snapshot)),
        outside=tuple(_outside(one, snapshot) for one in found.outside),
    )


def _proven(found: Proven, snapshot: Snapshot) -> dict[str, Any]:
    """The fields of a verdict."""
    return {
        "safe": found.safe,
        "losses": tuple(
            LostSet(*_failure(one, snapshot), named_vms(one.homeless, snapshot)) for one in found.losses
        ),
        "unknown": tuple(Failing(*_failure(one, snapshot)) for one in found.unknown),
        "survived": found.survived,
        "unjudged": found.unjudged,
        "sizes": found.sizes,
        "survivals": tuple(_survived(one, snapshot) for one in found.survivals),
        "tightest": tuple(
            Tightest(*_failure(one, snapshot), one.room_for, one.memory_mb, one.survived)
            for one in found.tightest
        ),
    }


def _failure(
    one: Loss | Unknown | Survival | Tight, snapshot: Snapshot
) -> tuple[tuple[Named, ...], tuple[str, ...]]:
    return named_hosts(one.hosts, snapshot), one.domains


def _survived(one: Survival, snapshot: Snapshot) -> Survived:
    homes = (Home(named_vm(vm, snapshot), named_host(host, snapshot)) for vm, host in one.homes.items())
    return Survived(*_failure(one, snapshot), homes=tuple(homes))


def _outside(one: Outside, snapshot: Snapshot) -> Unprotected:
    host = None if one.host is None else named_host(one.host, snapshot)
    vm = named_vm(one.vm, snapshot)
    place = "" if host is None else f" on {host.name}, which is {one.host_status}"
    return Unprotected(vm, one.status, host, one.host_status, f"{vm.name} is {one.status}{place}")


# -- in words


def rows(answer: HaCheckDocument) -> list[tuple[str, ...]]:
    """In words: cluster, failures, both verdicts, hosts that must not fail together, VMs without a home then.

    Below stand sets that only the engine's own check finds unsafe, what was not judged with the tightest
    sets that were looked for, and VMs that the check is not about.
    """
    return [row for one in answer.clusters for row in _rows(one)]


def _rows(found: CheckedCluster) -> list[tuple[str, ...]]:
    head = (found.cluster.name, str(found.failures), _WORDS[found.safe], _WORDS[found.by_engine.safe])
    told = [
        *_losses(found),
        *_losses_by_engine(found),
        *_open(found, _what_fails(found), ""),
        *_tightest(found),
        *_open(found.by_engine, _what_fails(found), " by the engine's own check"),
    ]
    if found.outside:
        told.append(("not counted", "\n".join(one.sentence for one in found.outside)))
    return [(*head, *one) for one in told] or [(*head, "", "")]


def _what_fails(found: CheckedCluster) -> str:
    return "domains" if any(unit.domain is not None for unit in found.units) else "hosts"


def _losses(found: CheckVerdict) -> Iterator[tuple[str, str]]:
    for loss in found.losses:
        yield _failing(loss), "\n".join(vm.name for vm in loss.homeless)


def _losses_by_engine(found: CheckedCluster) -> Iterator[tuple[str, str]]:
    """What is lost by the engine's own check alone: there, idle CPU counts."""
    lost = {loss.hosts for loss in found.losses}
    for loss in found.by_engine.losses:
        if loss.hosts not in lost:
            homeless = (f"{vm.name} (by the engine's own check)" for vm in loss.homeless)
            yield _failing(loss), "\n".join(homeless)


def _failing(one: Failing) -> str:
    """The domains that fail, or the hosts."""
    if one.domains:
        return "\n".join(f"domain {name}" for name in one.domains)
    return "\n".join(host.name for host in one.hosts)


def _open(found: CheckVerdict, what: str, by: str) -> Iterator[tuple[str, str]]:
    """What is not known, and what is proven nevertheless, for each size of sets."""
    sizes = found.sizes or (Size(1, found.survived, found.unjudged),)
    for size in sizes:
        unknown = sum(len(one.domains or one.hosts) == size.size for one in found.unknown)
        if size.unjudged + unknown:
            one = f"sets of {size.size} {what}" if len(sizes) > 1 else "sets"
            proven = f"{size.survived} sets of {what} are proven to be survived"
            yield f"{size.unjudged + unknown} {one} are not judged{by}", proven


def _tightest(found: CheckVerdict) -> Iterator[tuple[str, str]]:
    """The worst sets that were looked for, but those that are lost and told of already."""
    left = [one for one in found.tightest if one.survived is not False]
    for one in left[:_TIGHTEST]:
        outcome = "survived" if one.survived else "not judged"
        room = f"room for {max(0, one.room_for)} more VMs of {one.memory_mb} MiB at most"
        yield _failing(one), f"{outcome}, among the tightest: {room}"
