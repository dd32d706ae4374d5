"""The units that lead a policy: of placement keys, and the weight of hard groups that the engine cannot see.

VMs whose placement keys refuse the host that they run on are constraints, too: on a host that these accept.
What keys accept hangs on where all other VMs are, so such a constraint is satisfied for the moment only.

VMs are tied together through others that are down: the engine's filter knows the peers of a VM, not the
peers of its peers (docs/rules.md, F2). Our filter does, but never refuses a host for a placement that the
engine has not confirmed. So in a burst that weight leads.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import lcm
from typing import ClassVar, Final

from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.model.snapshot import HOST_STATISTICS, STORED, VM_DETAILS
from ovirt_placement.rules.affinity.constraints import OnHosts
from ovirt_placement.rules.affinity.groups import chained_peers, groups_of, members, parting_hosts, peers_on
from ovirt_placement.rules.elements.placement import destinations, occupied, why_immovable
from ovirt_placement.rules.elements.ranks import ranked
from ovirt_placement.rules.elements.resources import promised_mb
from ovirt_placement.rules.elements.rule import Allowed, Dependence, Rule, Scope, UnitKind
from ovirt_placement.rules.elements.verdict import (
    NOT_KNOWN_YET,
    Reason,
    ReasonKind,
    Request,
    Verdict,
    Weight,
    unread,
)
from ovirt_placement.rules.engine_filters import HOST_NOT_UP, MEMORY_HANDED_OUT
from ovirt_placement.rules.placement_keys.capacity import Shortage, host_places
from ovirt_placement.rules.placement_keys.hierarchy import CompiledKeys, compile_keys, keys_of
from ovirt_placement.rules.placement_keys.host_table import host_table, host_table_without
from ovirt_placement.rules.placement_keys.judgement import (
    HostDecision,
    KeyDecision,
    KeyFailure,
    KeyJudgement,
    judge,
    thresholds,
)
from ovirt_placement.rules.placement_keys.keys import (
    DEFAULTS,
    KeySettings,
    is_special,
    read_settings,
    settings_of,
)

#: Without these the filter refuses no host.
NEEDED: Final = (STORED, VM_DETAILS, HOST_STATISTICS)
MEMORY_IN_USE = ReasonKind(
    "memory_in_use", "only {number:g} MiB of its memory are physically free", veto=True
)
KEYS_REFUSE = ReasonKind(
    "keys_refuse", "the placement keys give it {number:g}, which is not above the last threshold", veto=True
)
#: The first round is best.
KEYS_ROUND = ReasonKind("keys_round", "found in round {number:g} of the operator's placement keys")
#: It counts within a round.
KEYS_CUSTOMER_SCORE = ReasonKind("keys_customer_score", "the customer's placement keys give it {number:g}")


def vetoes(judged: HostDecision | None) -> Iterator[Reason]:
    """What keeps a VM off a host; None is a host that is not known."""
    if judged is None:
        yield Reason(HOST_NOT_UP)
        return
    for shortage in judged.shortages:
        match shortage:
            case Shortage.NOT_UP:
                yield Reason(HOST_NOT_UP, host=judged.host)
            case Shortage.UNCONTENDED:
                yield Reason(MEMORY_HANDED_OUT, host=judged.host, number=float(judged.uncontended_mb))
            case Shortage.CONTENDED:
                yield Reason(MEMORY_IN_USE, host=judged.host, number=judged.contended_mb)
    if judged.system is not None and judged.round is None:
        yield Reason(KEYS_REFUSE, host=judged.host, number=float(judged.system.total))


def notes(judged: HostDecision | None) -> Iterator[Reason]:
    """What makes the rank of a host that a VM may have; else what keeps it off."""
    if judged is None or judged.system is None or judged.customer is None or judged.round is None:
        yield from vetoes(judged)
        return
    yield Reason(KEYS_ROUND, host=judged.host, number=judged.round)
    if next(judged.customer.matches, None):
        yield Reason(KEYS_CUSTOMER_SCORE, host=judged.host, number=float(judged.customer.total))


def compiled_keys(snapshot: Snapshot, vm: str) -> CompiledKeys:
    """Step 2 for a VM of the snapshot; no keys for one that is not in it."""
    known = snapshot.vm_by_id.get(vm)
    return compile_keys(keys_of(snapshot, known)) if known else CompiledKeys()


def draws_lots(snapshot: Snapshot, vm: str, parameters: Mapping[str, str]) -> bool:
    """Whether the weight draws lots where hosts tie: not for a VM of which no key says anything."""
    keys = compiled_keys(snapshot, vm)
    return parameters.get("placement_tie") != "engine" and bool(keys.system or keys.customer)


def decide_vm(
    snapshot: Snapshot, vm: Vm, hosts: Iterable[str], settings: KeySettings = DEFAULTS
) -> KeyDecision:
    """All steps for a VM of the snapshot and these hosts, as if it were on none of them.

    For a migration leave the source out; with it, the answer shows whether the VM is well placed. Hosts
    that are not in the snapshot are left out. With local storage, whatever the engine offers is the
    host of the disk, and is taken.
    """
    asked = tuple(hosts)
    judged = _judged(snapshot, vm, asked, settings)
    if judged is None:
        choice = tuple(host for host in asked if host in snapshot.host_by_id)
        return KeyDecision(candidates=choice, choice=choice, local_storage=True)
    first = min((number for number, _ in judged.passed.values()), default=None)
    candidates = {host: part for host, (number, part) in judged.passed.items() if number == first}
    highest = max(candidates.values(), default=None)
    largest_mb = max((judged.table.capacities[place].largest_vm_mb for place in judged.places), default=-1)
    failed = KeyFailure.CONSTRAINT if vm.memory_mb > largest_mb else KeyFailure.THRESHOLD
    return KeyDecision(
        judged,
        thresholds(settings),
        first,
        tuple(candidates),
        tuple(host for host, part in candidates.items() if part == highest),
        None if candidates else failed,
    )


def filter_hosts(snapshot: Snapshot, request: Request) -> tuple[Verdict, ...]:
    """Refuse the hosts that lack room for a requested VM, or whose score does not exceed the last threshold.

    Hosts of a worse round than the best are accepted: another filter may refuse the better ones. Reasons
    cost a good part of the time.
    """
    if late := unread(snapshot, *NEEDED):
        reasons = tuple(Reason(NOT_KNOWN_YET, status=why) for why in late)
        return tuple(Verdict(host, accepted=True, reasons=reasons) for host in request.candidate_hosts)
    judgements = _judgements(snapshot, request)
    reported = [judged.by_host for judged in judgements] if request.explained else ()
    return tuple(
        Verdict(
            host,
            all(host in judged.accepted for judged in judgements),
            tuple(reason for one in reported for reason in vetoes(one.get(host))) if reported else (),
        )
        for host in request.candidate_hosts
    )


def rank_hosts(snapshot: Snapshot, request: Request) -> tuple[Weight, ...]:
    """Rank each candidate host by its round, then by the customer's score.

    Hosts that tie are ranked by the lots that the request holds, as the original does, unless `placement_tie`
    leaves them to the engine or no key says anything of the VM: this unit usually leads, and a lot would
    outvote all other weights. For the same reason hosts that would tear a chain of hard affinity groups come
    last of all. Dedicated failover hosts come after all acceptable ones, then refused hosts. For several VMs,
    rounds and scores add up. Reasons cost a good part of the time.
    """
    draws = any(draws_lots(snapshot, vm, request.parameters) for vm in request.vms)
    last = {host for vm in request.vms for host in parting_hosts(snapshot, vm, request.candidate_hosts)}
    judgements = _judgements(snapshot, request)
    drawn = {host: at for at, host in enumerate(request.drawn if draws else (), start=1)}
    penalties = _penalties(snapshot, request, judgements, last)
    keys = [
        penalty * (len(drawn) + 1) + drawn.get(host, 0)
        for host, penalty in zip(request.candidate_hosts, penalties, strict=True)
    ]
    ranks = {key: rank for rank, key in enumerate(sorted(set(keys)))}
    reported = [judged.by_host for judged in judgements] if request.explained else ()
    return tuple(
        Weight(
            host,
            ranks[key],
            tuple(note for one in reported for note in notes(one.get(host))) if reported else (),
        )
        for host, key in zip(request.candidate_hosts, keys, strict=True)
    )


def ranked_first(snapshot: Snapshot, vm: str, accepted: Sequence[str]) -> list[str]:
    """Of hosts that accept a VM, those that no others come before regardless of its keys."""
    last = parting_hosts(snapshot, vm, accepted)
    places = [(host in last, snapshot.host_by_id[host].failover) for host in accepted]
    return [host for host, place in zip(accepted, places, strict=True) if place == min(places)]


def _judgements(snapshot: Snapshot, request: Request) -> list[KeyJudgement]:
    """For each VM that keys have a say about, how far the hosts came; nothing for a VM that is not known."""
    settings, hosts = settings_of(request.parameters), request.candidate_hosts
    found = (_judged(snapshot, vm, hosts, settings) for vm in request.known_vms(snapshot))
    return [judged for judged in found if judged is not None]


def _judged(snapshot: Snapshot, vm: Vm, hosts: Iterable[str], settings: KeySettings) -> KeyJudgement | None:
    """How far those of the hosts came that are known; None where the storage is local."""
    if storage_is_local(snapshot, vm.cluster):
        return None
    places = host_places(snapshot)
    asked = {host: places[host] for host in hosts if host in places}
    if any(host in asked for host in occupied(snapshot, vm.id)):
        table = host_table_without(snapshot, settings, vm)
    else:
        table = host_table(snapshot, settings)
    keys = compile_keys(keys_of(snapshot, vm))
    return judge(keys, vm.memory_mb, table, tuple(asked.values()), settings)


def _penalties(
    snapshot: Snapshot, request: Request, judgements: Sequence[KeyJudgement], last: Collection[str]
) -> list[int]:
    """What speaks against each candidate host; the least is best.

    First whether it is to be last, then whether it is refused, then whether it is to be kept free, then
    the rounds, then the customer's scores: all in one number, since those sort several times as fast.
    """
    unit = lcm(*(judged.customer.unit for judged in judgements))
    passed = [(judged.passed, unit // judged.customer.unit) for judged in judgements]
    # Each of what comes first weighs more than all that follows together.
    a_round = 1 + 2 * sum(
        finer * max((abs(score) for _, score in found.values()), default=0) for found, finer in passed
    )
    kept_free = a_round * (
        1 + sum(max((number for number, _ in found.values()), default=0) for found, _ in passed)
    )
    failover = {host.id for host in snapshot.hosts if host.failover}

    def penalty(host: str) -> int:
        comes_last = 4 * kept_free if host in last else 0
        found = comes_last + (kept_free if host in failover else 0)
        for hosts, finer in passed:
            if host not in hosts:
                return comes_last + 2 * kept_free
            number, score = hosts[host]
            found += number * a_round - score * finer
        return found

    return [penalty(host) for host in request.candidate_hosts]


def storage_is_local(snapshot: Snapshot, cluster: str) -> bool:
    data_center = snapshot.cluster_by_id[cluster].data_center
    return any(one.local_storage for one in snapshot.data_centers if one.id == data_center)


class OnAcceptedHosts(OnHosts, frozen=True, kw_only=True):
    """One VM, and the hosts that its keys accept as things stand."""

    family: ClassVar[str] = "placement_keys"
    asks: ClassVar[str] = "on a host that its placement keys accept"


def on_accepted_hosts(snapshot: Snapshot, cluster: str) -> Iterator[OnAcceptedHosts]:
    """One for each VM that may be migrated and would not be let in again where it runs.

    None where the cluster's policy has no filter by keys.
    """
    if not KEY_FILTER.enabled_in(snapshot.cluster_by_id[cluster]):
        return
    hosts = tuple(host.id for host in snapshot.hosts_of_cluster.get(cluster, ()) if host.up)
    parameters = snapshot.cluster_by_id[cluster].scheduling_properties
    for vm in snapshot.vms:
        if vm.cluster == cluster and vm.host in hosts and why_immovable(snapshot, vm) is None:
            request = Request((vm.id,), hosts, parameters=parameters, explained=False)
            accepted = frozenset(one.host for one in filter_hosts(snapshot, request) if one.accepted)
            if vm.host not in accepted:
                form = Allowed(accepted)
                yield OnAcceptedHosts(groups=(), vms=(vm.id,), hard=True, priority=0.0, form=form)


def complaints(parameters: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with parameters that are fine each by itself: a placement must not fail by them."""
    try:
        settings = read_settings(parameters)
    except ValueError as error:
        yield f"the policy's placement parameters are not used: {error}"
        return
    if settings.refuses_keyless_vms:
        yield f"placement_final is {float(settings.final):g}: VMs without placement keys find no host"


def _only_narrows(snapshot: Snapshot, vm: str, others: frozenset[str]) -> bool:
    """A host's special keys change with what it runs; what VMs bring does not matter to the filter."""
    return not any(map(is_special, compiled_keys(snapshot, vm).system))


KEY_FILTER = Rule(
    name="PlacementKeyFilter",
    kind=UnitKind.FILTER,
    complaints=complaints,
    on_request=True,
    reads=frozenset((HOST_STATISTICS,)),
    filter=filter_hosts,
    depends_on=Dependence(scope=Scope.HOST, only_narrows=_only_narrows),
)
#: More than all usual weights together can give in a cluster of 600 hosts.
_USUAL_FACTOR = 100_000
KEY_WEIGHT = Rule(
    name="PlacementKeyWeight",
    kind=UnitKind.WEIGHT,
    complaints=complaints,
    on_request=True,
    usual_factor=_USUAL_FACTOR,
    draws=True,
    reads=frozenset((HOST_STATISTICS,)),
    weight=rank_hosts,
)
CHAIN_HERE = ReasonKind("chain_here", "VMs of its hard affinity groups that are here or expected: {number:g}")
CHAIN_BEGINS = ReasonKind(
    "chain_begins", "the first VM of hard affinity groups that share VMs which are down"
)


def rank_by_chains(snapshot: Snapshot, request: Request) -> tuple[Weight, ...]:
    """Rank first the host with most VMs that must run with this one, be it through others.

    It speaks only for a VM whose unified group goes beyond its own groups; for all others hosts tie. Where
    no member is anywhere yet, the host with most free memory comes first: so the next VM knows.
    """
    (vm, *_) = request.vms
    peers = chained_peers(snapshot, vm)
    burdens = {host: -count for host, count in peers_on(snapshot, request.candidate_hosts, peers).items()}
    reasons = {host: (Reason(CHAIN_HERE, number=-burden),) for host, burden in burdens.items()}
    if not burdens and _begins_chain(snapshot, request, peers):
        first = _roomiest(snapshot, request.candidate_hosts)
        burdens, reasons = ({}, {}) if first is None else ({first: -1}, {first: (Reason(CHAIN_BEGINS),)})
    return ranked(snapshot, request.candidate_hosts, burdens, reasons, unburdened=0)


def _begins_chain(snapshot: Snapshot, request: Request, peers: tuple[str, ...]) -> bool:
    """Whether a VM is the first of such a group that starts, or that leaves the host of its peers.

    One that runs alone while these are down needs no such lead. Not if the engine alone knows by now where
    peers of its own groups are: let it choose. Nor where the weight of its placement keys, which leads as
    well, puts hosts in an order: two orders add up to a tie.
    """
    (vm, *_) = request.vms
    unconfirmed = snapshot.unconfirmed - {vm}
    return (
        any(snapshot.vm_by_id[vm].host is None or destinations(snapshot, peer) for peer in peers)
        and unconfirmed.isdisjoint(
            peer
            for group in groups_of(snapshot).get(vm, ())
            if group.vms_rule.enabled
            for peer in members(snapshot)[group.id]
        )
        and not (
            (policy := snapshot.cluster_by_id[snapshot.vm_by_id[vm].cluster].scheduling_policy) is not None
            and KEY_WEIGHT.name in policy.weights
            and draws_lots(snapshot, vm, request.parameters)
        )
    )


def _roomiest(snapshot: Snapshot, hosts: Sequence[str]) -> str | None:
    """The host with most memory that is not expected to be taken; one for failover only if all are."""
    free = {host: known.free_mb for host in hosts if (known := snapshot.host_by_id.get(host)) is not None}
    for entry in snapshot.pending:
        if entry.expected and entry.host in free:
            free[entry.host] -= promised_mb(snapshot.vm_by_id[entry.vm], entry)
    return max(
        free, key=lambda host: (not snapshot.host_by_id[host].failover, free[host], host), default=None
    )


CHAIN_WEIGHT = Rule(
    name="HardAffinityWeight", kind=UnitKind.WEIGHT, usual_factor=_USUAL_FACTOR, weight=rank_by_chains
)
