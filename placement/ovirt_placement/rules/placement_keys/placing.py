"""Places a VM of a snapshot, and answers as a filter and as a weight do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from math import lcm
from typing import TypeAlias

from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.rules.placement_keys.capacity import Shortage
from ovirt_placement.rules.placement_keys.compile import CompiledKeys, compile_keys
from ovirt_placement.rules.placement_keys.decision import Decision, HostDecision, decide
from ovirt_placement.rules.placement_keys.exact import ZERO, total
from ovirt_placement.rules.placement_keys.hierarchy import keys_of
from ovirt_placement.rules.placement_keys.host_states import host_states
from ovirt_placement.rules.placement_keys.settings import DEFAULTS, Settings
from ovirt_placement.rules.verdict import Kind, Reason, Request, Verdict, Weight

#: What speaks against a host, the smallest is best: refused, kept free, rounds, the customer's score negated.
_Burden: TypeAlias = tuple[bool, bool, int, Fraction]


def compiled_keys(snapshot: Snapshot, vm: str) -> CompiledKeys:
    """Step 2 for a VM of the snapshot; no keys for one that is not in it."""
    known = snapshot.vm_by_id.get(vm)
    return compile_keys(keys_of(snapshot, known)) if known else CompiledKeys()


def decide_vm(snapshot: Snapshot, vm: Vm, hosts: Iterable[str], settings: Settings = DEFAULTS) -> Decision:
    """All steps for a VM of the snapshot and these hosts, as if it were on none of them.

    For a migration leave the source out; with it, the answer tells whether the VM is well placed. Hosts
    that are not in the snapshot are left out. With local storage, whatever the engine offers is the
    host of the disk, and is taken.
    """
    keys = compile_keys(keys_of(snapshot, vm))
    asked = tuple(host for host in map(snapshot.host_by_id.get, hosts) if host is not None)
    if _storage_is_local(snapshot, vm.cluster):
        ids = tuple(host.id for host in asked)
        return Decision(keys, candidates=ids, choice=ids, local_storage=True)
    states = host_states(snapshot, asked, settings, vm.id)
    return decide(keys, vm.memory_mb, states, settings)


def filter_hosts(snapshot: Snapshot, request: Request, settings: Settings = DEFAULTS) -> tuple[Verdict, ...]:
    """Refuse the hosts that lack room for a requested VM, or whose score does not exceed the last threshold.

    Hosts of a worse round than the best are accepted: another filter may refuse the better ones.
    """
    judgements = _judgements(snapshot, request, settings)
    return tuple(
        Verdict.of(host, tuple(reason for judged in judgements for reason in _vetoes(judged.get(host))))
        for host in request.candidate_hosts
    )


def rank_hosts(
    snapshot: Snapshot,
    request: Request,
    settings: Settings = DEFAULTS,
    *,
    tie_order: Sequence[str] = (),
    explained: bool = True,
) -> tuple[Weight, ...]:
    """Rank each candidate host by its round, then by the customer's score.

    Hosts in `tie_order` that tie are ranked as they stand there: give them in a random order to draw,
    as the original does, or nothing to leave ties to other units. Dedicated failover hosts come after
    all acceptable ones, and refused hosts come last. For several VMs, rounds and scores add up. Reasons cost
    a good part of the time: without `explained` there are none.
    """
    judgements = _judgements(snapshot, request, settings)
    burdens = _in_whole_numbers([_burden(snapshot, judgements, host) for host in request.candidate_hosts])
    place = {host: at for at, host in enumerate(tie_order)}
    keys = [
        (burden, place.get(host, -1)) for host, burden in zip(request.candidate_hosts, burdens, strict=True)
    ]
    ranks = {key: rank for rank, key in enumerate(sorted(set(keys)))}
    told = judgements if explained else ()
    return tuple(
        Weight(host, ranks[key], tuple(note for judged in told for note in _notes(judged.get(host))))
        for host, key in zip(request.candidate_hosts, keys, strict=True)
    )


def _judgements(
    snapshot: Snapshot, request: Request, settings: Settings
) -> tuple[dict[str, HostDecision], ...]:
    """For each VM that keys have a say about, how far the hosts came; nothing for a VM that is not known."""
    known = (vm for vm in map(snapshot.vm_by_id.get, request.vms) if vm is not None)
    decisions = (decide_vm(snapshot, vm, request.candidate_hosts, settings) for vm in known)
    return tuple(
        {one.host: one for one in decision.hosts} for decision in decisions if not decision.local_storage
    )


def _vetoes(judged: HostDecision | None) -> Iterator[Reason]:
    if judged is None:
        yield Reason(Kind.HOST_NOT_UP)
        return
    room = judged.room
    for shortage in room.shortages:
        match shortage:
            case Shortage.NOT_UP:
                yield Reason(Kind.HOST_NOT_UP, host=judged.host)
            case Shortage.UNCONTENDED:
                yield Reason(Kind.MEMORY_HANDED_OUT, host=judged.host, number=float(room.uncontended_mb))
            case Shortage.CONTENDED:
                yield Reason(Kind.MEMORY_IN_USE, host=judged.host, number=room.contended_mb)
    if judged.system is not None and judged.round is None:
        yield Reason(Kind.KEYS_REFUSE, host=judged.host, number=float(judged.system.total))


def _notes(judged: HostDecision | None) -> Iterator[Reason]:
    if judged is None or judged.system is None or judged.customer is None or judged.round is None:
        yield from _vetoes(judged)
        return
    yield Reason(Kind.KEYS_ROUND, host=judged.host, number=judged.round)
    if next(judged.customer.matches, None):
        yield Reason(Kind.KEYS_CUSTOMER_SCORE, host=judged.host, number=float(judged.customer.total))


def _burden(snapshot: Snapshot, judgements: Sequence[dict[str, HostDecision]], host: str) -> _Burden:
    judged = [judgement.get(host) for judgement in judgements]
    if any(one is None or one.round is None for one in judged):
        return True, False, 0, ZERO
    known = snapshot.host_by_id.get(host)
    rounds = sum(one.round for one in judged if one is not None and one.round is not None)
    wanted = total(
        one.customer.total.as_integer_ratio()
        for one in judged
        if one is not None and one.customer is not None
    )
    return False, known is not None and known.failover, rounds, -wanted


def _in_whole_numbers(burdens: Sequence[_Burden]) -> list[tuple[bool, bool, int, int]]:
    """The same order in integers, which sort much faster than fractions."""
    unit = lcm(*{score.denominator for *_, score in burdens})
    return [
        (refused, kept_free, rounds, score.numerator * (unit // score.denominator))
        for refused, kept_free, rounds, score in burdens
    ]


def _storage_is_local(snapshot: Snapshot, cluster: str) -> bool:
    data_center = snapshot.cluster_by_id[cluster].data_center
    return any(one.local_storage for one in snapshot.data_centers if one.id == data_center)
