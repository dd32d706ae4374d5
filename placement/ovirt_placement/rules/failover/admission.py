"""HA admission control: no start that would take the room which restarts need after a failure.

A start is refused after which a failure would not be survived that is survived as things are. A cluster that
is unsafe already refuses only what makes it worse so. Migrations are never refused, nor highly available VMs
that crashed, or while a host has failed: the reserve is there to be used then. They were counted when they
ran, and no restart is to fail by what is kept for restarts. The weight ranks hosts for those that crashed.
"""

from collections.abc import Iterator, Mapping
from functools import reduce

from msgspec.structs import replace

from ovirt_placement.model import Cluster, Snapshot
from ovirt_placement.rules.doubts import doubt
from ovirt_placement.rules.elements.assignment import Budget, BudgetSpentError
from ovirt_placement.rules.elements.placement import World
from ovirt_placement.rules.elements.ranks import ranked
from ovirt_placement.rules.elements.rule import Rule, UnitKind
from ovirt_placement.rules.elements.verdict import NOT_KNOWN_YET, Reason, ReasonKind, Request, Verdict, Weight
from ovirt_placement.rules.failover.outcomes import Domain, Loss, tagged_domains
from ovirt_placement.rules.failover.reserve import reserve_of

TAGS = "ha_admission_domain_tags"
LISTS = "ha_admission_domains"

UNKNOWN_HOST = ReasonKind(
    "admission_domain_host_unknown", f"{LISTS} names {{status}}, which is no host, or not one alone"
)


def domains_of(snapshot: Snapshot, parameters: Mapping[str, str]) -> tuple[Domain, ...]:
    """Those that are listed, with the hosts that there are, then those that tags name."""
    listed = tuple(
        Domain(name, frozenset(host for word in words for host in _called(snapshot, word)))
        for name, words in _lists(parameters)
    )
    return (*listed, *tagged_domains(snapshot, listed_tags(parameters)))


def listed_tags(parameters: Mapping[str, str]) -> tuple[str, ...]:
    """What the tags of hosts that name domains begin with."""
    return tuple(filter(None, parameters.get(TAGS, "").split(",")))


def listed_hosts(parameters: Mapping[str, str]) -> tuple[str, ...]:
    """The hosts of all lists, by name or id, each once."""
    return tuple(dict.fromkeys(word for _, some in _lists(parameters) for word in some))


def unknown_hosts(snapshot: Snapshot, vm: str) -> tuple[Reason, ...]:
    """What the lists of a VM's cluster name that is no host."""
    known = snapshot.vm_by_id.get(vm)
    if known is None:
        return ()
    words = listed_hosts(snapshot.cluster_by_id[known.cluster].scheduling_properties)
    return tuple(Reason(UNKNOWN_HOST, status=word) for word in words if not _called(snapshot, word))


def _lists(parameters: Mapping[str, str]) -> Iterator[tuple[str, list[str]]]:
    for one in filter(None, parameters.get(LISTS, "").split("/")):
        name, _, hosts = one.partition(":")
        yield name, [word for word in hosts.split(",") if word]


def _called(snapshot: Snapshot, word: str) -> list[str]:
    """The host of this id, or the one of this name."""
    if word in snapshot.host_by_id:
        return [word]
    found = [host.id for host in snapshot.hosts if host.name == word]
    return found if len(found) == 1 else []


RESERVE_NEEDED = ReasonKind(
    "reserve_needed", "with it there, {vm} could no longer restart if {status} failed", veto=True
)
RESERVE_USED = ReasonKind("reserve_used", "with it there, {vm} could no longer restart if {status} failed")
RESERVE_UNKNOWN = ReasonKind(
    "reserve_unknown",
    "accepted, since it would have taken too long to find out whether the HA reservation is satisfied then",
    warned=True,
)

#: Steps of all judgements for one question: about half a second, in which the engine waits.
_STEPS = 4_000
#: A host in another status has failed, or is on its way back.
_IN_ORDER = frozenset(
    {
        "up",
        "maintenance",
        "preparing_for_maintenance",
        "installing",
        "installing_os",
        "install_failed",
        "pending_approval",
    }
)


def filter_hosts(snapshot: Snapshot, request: Request) -> tuple[Verdict, ...]:
    """Refuse hosts on which the VMs would take the room that highly available VMs need to restart.

    The engine is answered about starts alone; who plans is answered about migrations, too. What is not known
    within the steps that a question may take is accepted, with a note.
    """
    found = {} if _restores(snapshot, request) else dict(_judged(snapshot, request))
    return tuple(
        Verdict.of_reasons(host, (found[host],) if host in found else ()) for host in request.candidate_hosts
    )


def rank_hosts(snapshot: Snapshot, request: Request) -> tuple[Weight, ...]:
    """Rank hosts that the filter would refuse behind all others."""
    found = dict(_judged(snapshot, request))
    used = {host: 1 for host, reason in found.items() if reason.kind is RESERVE_NEEDED}
    reasons = {
        host: (replace(reason, kind=RESERVE_USED) if host in used else reason,)
        for host, reason in found.items()
    }
    return ranked(snapshot, request.candidate_hosts, used, reasons, unburdened=0)


def _judged(snapshot: Snapshot, request: Request) -> Iterator[tuple[str, Reason]]:
    """What speaks against hosts, and which are not known."""
    vms = tuple(vm for vm in request.vms if vm in snapshot.vm_by_id)
    cluster = _asked_about(snapshot, vms, request)
    if cluster is None:
        return
    if why := doubt(snapshot, cluster.id):
        yield from ((host, Reason(NOT_KNOWN_YET, status=why)) for host in request.candidate_hosts)
        return
    now = _with_expected(snapshot, vms)
    reserve = reserve_of(now, cluster.id, cluster.ha_failures, domains_of(now, request.parameters))
    starting = [now.vm_by_id[vm] for vm in vms if now.vm_by_id[vm].host is None]
    alone = starting[0] if len(vms) == len(starting) == 1 else None
    budget = Budget(_STEPS)
    for host in sorted(request.candidate_hosts, key=reserve.room_mb, reverse=True):
        if host not in now.host_by_id or (alone is not None and reserve.leaves_alone(alone, host)):
            continue
        try:
            if alone is not None and reserve.is_evacuated_around(alone, host, budget):
                continue
            lost = reserve.lost_by(vms, host, _come_to(now, vms, host), budget)
        except BudgetSpentError:
            yield host, Reason(RESERVE_UNKNOWN)
            continue
        if lost is not None:
            yield host, Reason(RESERVE_NEEDED, vm=min(lost.unplaced), status=_failing(now, lost))


def _restores(snapshot: Snapshot, request: Request) -> bool:
    """Whether all that starts was counted before it crashed."""
    known = [vm for vm in map(snapshot.vm_by_id.get, request.vms) if vm is not None]
    starting = [vm for vm in known if vm.host is None]
    return bool(starting) and all(vm.ha and vm.crashed for vm in starting)


def _asked_about(snapshot: Snapshot, vms: tuple[str, ...], request: Request) -> Cluster | None:
    """The cluster whose reserve is looked at; None if the question is none for this rule."""
    if not vms:
        return None
    known = [snapshot.vm_by_id[vm] for vm in vms]
    cluster = snapshot.cluster_by_id[known[0].cluster]
    if not cluster.ha_reservation:
        return None
    starting = [vm for vm in known if vm.host is None]
    if request.as_engine and not starting:
        return None
    failed = any(host.status not in _IN_ORDER for host in snapshot.hosts_of_cluster.get(cluster.id, ()))
    if failed and starting and all(vm.ha for vm in starting):
        return None
    return cluster


def _with_expected(snapshot: Snapshot, vms: tuple[str, ...]) -> Snapshot:
    """The state without what is pending of the VMs themselves, and with what is expected as if it ran.

    Memory of what the engine shows as pending is deducted already; of what is only expected it is not.
    """
    own = [entry for entry in snapshot.pending if entry.vm in vms]
    starting = {
        entry.vm: entry.host
        for entry in snapshot.pending
        if entry.expected and entry.vm in snapshot.vm_by_id and snapshot.vm_by_id[entry.vm].host is None
    }
    if not own and not starting:
        return snapshot
    left = tuple(one for one in snapshot.pending if one.vm not in vms and one.vm not in starting)
    begun = [(vm, host) for vm, host in starting.items() if vm not in vms]
    return _running(replace(snapshot, pending=left), begun)


def _come_to(snapshot: Snapshot, vms: tuple[str, ...], host: str) -> Snapshot:
    """The state once all of the VMs are on a host."""
    known = snapshot.vm_by_id
    moving = [vm for vm in vms if known[vm].host not in (None, host)]
    moved = World(snapshot).moved(moving, host).snapshot if moving else snapshot
    return _running(moved, [(vm, host) for vm in vms if known[vm].host is None])


def _running(snapshot: Snapshot, starts: list[tuple[str, str]]) -> Snapshot:
    return reduce(lambda world, one: world.running(*one), starts, World(snapshot)).snapshot


def _failing(snapshot: Snapshot, lost: Loss) -> str:
    return " and ".join(lost.domains or [snapshot.host_by_id[host].name for host in lost.hosts])


FILTER = Rule(
    name="HaAdmissionFilter",
    kind=UnitKind.FILTER,
    on_request=True,
    notes=unknown_hosts,
    filter=filter_hosts,
)
WEIGHT = Rule(
    name="HaAdmissionWeight",
    kind=UnitKind.WEIGHT,
    on_request=True,
    # It counts before what evens out load, and leaves hard affinity and placement keys first.
    usual_factor=1000,
    weight=rank_hosts,
)
