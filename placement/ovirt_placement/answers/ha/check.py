"""Whether highly available VMs would be started again if hosts or failure domains failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Annotated

from msgspec.structs import replace

from ovirt_placement.answers.document import Document
from ovirt_placement.answers.placement import NotWaiting, PriorityClass, not_waited, priority_classes
from ovirt_placement.config import HaSettings
from ovirt_placement.forecast.outages import UnplacedVm, why_unplaced
from ovirt_placement.lookups.names import WILDCARD, called
from ovirt_placement.model import Cluster, Snapshot
from ovirt_placement.model.names import (
    Named,
    NamedCluster,
    NamedHost,
    NamedVm,
    be,
    choices,
    counted,
    host_name,
    named_host,
    named_vm,
    vm_name,
    with_names,
)
from ovirt_placement.model.record import Record
from ovirt_placement.rules.elements.verdict import sentence
from ovirt_placement.rules.failover.check import DEFAULT_BUDGET, HaCheck, Spread, by_engine, check
from ovirt_placement.rules.failover.outcomes import (
    Domain,
    Loss,
    Lost,
    Outside,
    Proven,
    Size,
    protected,
    tagged_domains,
)
from ovirt_service.decoding import nearest
from ovirt_service.errors import UserError

# -- The failure domains that the configuration names, by a list of hosts or by their tags.
Domains = tuple[Domain, ...]


def configured_domains(snapshot: Snapshot, settings: HaSettings) -> Domains:
    """Those that are listed, then those that tags name.

    Raises `UserError` if a host that is listed is not known, or if a name means two domains.
    """
    listed = tuple(
        Domain(one.name, frozenset(host for word in one.hosts for host in _hosts(word, one.name, snapshot)))
        for one in settings.domains
    )
    found = (*listed, *tagged_domains(snapshot, settings.domain_tags))
    twice = [name for name, count in Counter(domain.name for domain in found).items() if count > 1]
    if twice:
        raise UserError(f'[ha] domains: "{twice[0]}" is the name of two failure domains')
    return found


def asked_domains(snapshot: Snapshot, settings: HaSettings, words: Iterable[str] | None) -> Domains:
    """The domains of these names, or all. Raises `UserError` where there are none."""
    known = configured_domains(snapshot, settings)
    if not known and settings.domain_tags:
        begins = " or ".join(f'"{tag}"' for tag in settings.domain_tags)
        raise UserError(
            f"no failure domains: no host is known to have a tag that begins with {begins}; an inventory that"
            " runs reads the tags of hosts once it is restarted (docs/ha.md)"
        )
    if not known:
        raise UserError("no failure domains: set domains or domain_tags under [ha] (docs/ha.md)")
    by_name = {domain.name: domain for domain in known if domain.name is not None}
    for word in words or ():
        if word not in by_name:
            raise UserError(
                f'no failure domain "{word}"{nearest(word, list(by_name))}: see [ha] in docs/ha.md'
            )
    return known if words is None else tuple(by_name[word] for word in words)


def _hosts(word: str, domain: str, snapshot: Snapshot) -> list[str]:
    """The host of an id or a name, or those of a pattern."""
    hosts = snapshot.hosts
    found = called(word, hosts)
    if len(found) == 1 or (found and WILDCARD in word):
        return [host.id for host in found]
    if found:
        raise UserError(f'[ha] domain "{domain}": host "{word}" is ambiguous: say {choices(found, snapshot)}')
    hint = nearest(word, [host.name for host in hosts])
    raise UserError(f'[ha] domain "{domain}": no host "{word}"{hint}')


# -- Whether highly available VMs would be started again if hosts failed.
#: How much work a check does by each measure, by default.
DEFAULT_STEPS = DEFAULT_BUDGET

#: Of this many failures of a cluster it is reported why VMs cannot restart,
_MOST_EXPLAINED = 10
#: and of this many VMs of each.
_MOST_VMS = 5
_NOT_FOR_ALL = "takes it alone, but not with all that must restart"


class Failing(Record, frozen=True, omit_defaults=False):
    """Hosts that fail together, and the failure domains, where whole ones do."""

    hosts: tuple[NamedHost, ...]
    domains: tuple[str, ...]


class HostRefusal(Record, frozen=True, omit_defaults=False):
    """A host that is left, and why it refuses a VM, as sentences."""

    host: Named
    because: tuple[str, ...]


class UnplacedRecord(Record, frozen=True, omit_defaults=False):
    """A VM that cannot restart once all others have."""

    vm: Named
    refused: tuple[HostRefusal, ...]


class Home(Record, frozen=True, omit_defaults=False):
    vm: NamedVm
    host: NamedHost


class LostSet(Failing, frozen=True, omit_defaults=False):
    """Hosts that must not fail together, and VMs that would have no home then."""

    unplaced: tuple[NamedVm, ...]
    #: Why; only of the first failures of a cluster.
    because: tuple[UnplacedRecord, ...] = ()
    #: Where the order of the restarts alone is to blame: another order, in which every VM has a home.
    in_another_order: tuple[Home, ...] = ()


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


class RestingVm(Record, frozen=True, omit_defaults=False):
    """A highly available VM that is down by intent: the check is not about it."""

    vm: NamedVm
    status: str
    sentence: str


class LostVm(Record, frozen=True, omit_defaults=False):
    """A highly available VM that crashed, is unknown, or is on a host that does not answer; until it runs."""

    vm: NamedVm
    status: str
    host: NamedHost | None
    host_status: str | None
    #: Where it could be started now; null where no host takes it, or where that is not known.
    home: NamedHost | None
    #: Whether a host takes it, together with all others that are lost; null where that is not known.
    could_start: bool | None
    sentence: str


class FailingUnit(Record, frozen=True, omit_defaults=False):
    """Hosts that fail whole, and the name of their failure domain; null for hosts that were named."""

    hosts: tuple[NamedHost, ...]
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

    cluster: NamedCluster
    #: How many hosts, or domains, fail together.
    failures: int
    #: Why nothing is known now, whatever the numbers say; empty as a rule.
    doubt: str
    #: What fails whole; nothing where every host fails by itself.
    units: tuple[FailingUnit, ...]
    #: By the engine's own, softer check.
    by_engine: CheckVerdict
    #: While any is lost, the cluster is not safe.
    lost: tuple[Annotated[LostVm, lost_vm], ...]
    outside: tuple[Annotated[RestingVm, resting_vm], ...]
    #: The order of the restarts, if all hosts failed, by which failures were judged: the highest priority
    #: first.
    restart_order: tuple[PriorityClass, ...]
    #: Rules of the restart order that the engine's priorities do not bring about.
    not_waiting: tuple[NotWaiting, ...]


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
    checked = []
    for cluster in left:
        found = check(snapshot, cluster.id, failures, steps, domains=domains, spread=spread)
        softer = by_engine(snapshot, cluster.id, found.failures, steps, domains=domains, spread=spread)
        checked.append(_of_cluster(found, softer, snapshot))
    return HaCheckDocument(
        clusters=tuple(checked),
        not_checked=tuple(Named(one.id, one.name) for one in clusters if one not in left),
    )


def _check_number(snapshot: Snapshot, cluster: Cluster, failures: int) -> None:
    """Raise `UserError` if more is to fail than there is."""
    count = sum(host.up for host in snapshot.hosts_of_cluster.get(cluster.id, ()))
    if failures > count:
        up = f"{counted(count, 'host')} that {be(count)} up"
        raise UserError(f"--failures {failures}: cluster {cluster.name} has {up}")


def _of_cluster(found: HaCheck, softer: Proven, snapshot: Snapshot) -> CheckedCluster:
    return with_names(
        CheckedCluster,
        found,
        snapshot,
        losses=tuple(
            _lost(one, snapshot, explained=number < _MOST_EXPLAINED)
            for number, one in enumerate(found.losses)
        ),
        by_engine=with_names(
            CheckVerdict,
            softer,
            snapshot,
            losses=tuple(_lost(one, snapshot, explained=False) for one in softer.losses),
        ),
        restart_order=priority_classes(snapshot, _restarting(found.cluster, snapshot)),
        not_waiting=tuple(not_waited(snapshot, found.cluster)),
    )


def _restarting(cluster: str, snapshot: Snapshot) -> list[str]:
    """All VMs of a cluster that restart after the failure of some host."""
    up = [host.id for host in snapshot.hosts_of_cluster.get(cluster, ()) if host.up]
    return [vm for vms in protected(snapshot, up).values() for vm in vms]


def _lost(one: Loss, snapshot: Snapshot, *, explained: bool) -> LostSet:
    because: tuple[UnplacedRecord, ...] = ()
    if explained:
        found = why_unplaced(snapshot, replace(one, unplaced=one.unplaced[:_MOST_VMS]))
        because = tuple(_unplaced(vm, snapshot) for vm in found)
    return with_names(LostSet, one, snapshot, because=because, in_another_order=one.otherwise)


def _unplaced(one: UnplacedVm, snapshot: Snapshot) -> UnplacedRecord:
    refused = (
        HostRefusal(
            named_host(host, snapshot),
            tuple(dict.fromkeys(sentence(reason, snapshot) for reason in reasons)) or (_NOT_FOR_ALL,),
        )
        for host, reasons in one.refused
    )
    return UnplacedRecord(named_vm(one.vm, snapshot), tuple(refused))


def lost_vm(one: Lost, snapshot: Snapshot) -> LostVm:
    """Give it names, and say what becomes of it."""
    crashed = snapshot.vm_by_id[one.vm].crashed
    what = "has crashed" if crashed else f"is {one.status}"
    place = "" if one.host is None else f" on {host_name(one.host, snapshot)}, which is {one.host_status}"
    if one.home is not None:
        fate = f"could start on {host_name(one.home, snapshot)}"
    else:
        fate = "whether a host takes it is not known" if one.unjudged else "finds no host"
    said = f"{vm_name(one.vm, snapshot)} {what}{place}: {fate}"
    could_start = None if one.unjudged else one.home is not None
    return with_names(LostVm, one, snapshot, could_start=could_start, sentence=said)


def resting_vm(one: Outside, snapshot: Snapshot) -> RestingVm:
    """Give it a name, and say what it is."""
    return with_names(RestingVm, one, snapshot, sentence=f"{vm_name(one.vm, snapshot)} is {one.status}")
