"""All that is compared, by name: the engine's units with our copies of them, and with our own units."""

from collections.abc import Iterator

from ovirt_placement.rules.affinity.filters import filter_by_hosts, filter_by_vms
from ovirt_placement.rules.affinity.weights import rank_by_hosts, rank_by_vms
from ovirt_placement.rules.built_in import affinity as built_in_affinity
from ovirt_placement.rules.built_in import filters as built_in_filters
from ovirt_placement.rules.built_in.weights import (
    score_by_cpu,
    score_by_ha_vms,
    score_by_host_groups,
    score_by_memory,
    score_by_preference,
    score_by_vm_groups,
)
from ovirt_placement.rules.ha import rank_hosts
from ovirt_simulator.scheduler import filters, weights
from tools.engine_conformance import comparing, product, questions, simulator, switches
from tools.engine_conformance.comparing import Agreement, Copy, Switch, Unit, same
from tools.engine_conformance.questions import Asking, placing, placing_with
from tools.engine_conformance.switches import MEMBERS_ELSEWHERE

_HOSTS, _TIERS = same(comparing.as_hosts), same(comparing.as_tiers)


def _both(
    name: str, kind: str, engine_class: str, asking: Asking, ours: Copy, theirs: Copy, agree: Agreement
) -> Unit:
    copies = {"product": ours, "simulator": theirs}
    return Unit(name, kind, asking, copies, agree, request={"unit": engine_class})


def _copies_of_units() -> Iterator[Unit]:
    """The units of which both the product and the simulator have a copy."""
    busy = Copy(product.accepted(built_in_filters.filter_by_cpu_load), (switches.OVERLOADED_SINCE,))
    yield _both(
        "cpu-overloaded",
        "filter",
        "CpuOverloadPolicyUnit",
        questions.overloading,
        busy,
        Copy(simulator.not_overloaded),
        _HOSTS,
    )
    yield _both(
        "rank-selector",
        "selector",
        "RankSelectorPolicyUnit",
        questions.selecting,
        Copy(product.best_by_rank),
        Copy(simulator.best_by_rank),
        same(comparing.as_is),
    )
    memory, crash = (switches.PHYSICAL_MEMORY_AS_TOLD,), (switches.CRASH_OF_A_HOST_ASIDE,)
    by_vms, by_hosts = built_in_affinity.filter_by_vm_groups, built_in_affinity.filter_by_host_groups
    none: tuple[Switch, ...] = ()
    for name, engine_class, ours, theirs, differing, both_differ in (
        ("memory", "MemoryPolicyUnit", built_in_filters.filter_by_memory, filters.memory, memory, none),
        ("cpu", "CPUPolicyUnit", built_in_filters.filter_by_cpus, filters.cpu, none, none),
        ("pin-to-host", "PinToHostPolicyUnit", built_in_filters.filter_by_pins, filters.pinned, none, none),
        ("vm-affinity", "VmAffinityFilterPolicyUnit", by_vms, filters.vm_affinity, none, crash),
        ("vm-to-host", "VmToHostAffinityFilterPolicyUnit", by_hosts, filters.vm_to_host, none, none),
    ):
        copy = Copy(product.accepted(ours), (*differing, *both_differ))
        simulated = Copy(simulator.accepted(theirs), both_differ)
        yield _both(name, "filter", engine_class, placing, copy, simulated, _HOSTS)
    ratio = placing_with(
        VCpuToPhysicalCpuRatio=lambda random: random.choice((None, None, None, "0.5", "1", "2"))
    )
    scale = placing_with(ScaleDown=lambda random: random.choice((None, None, "1", "3", "10", "100")))
    for name, engine_class, score, weigh, asking in (
        ("even-cpu", "EvenDistributionCPU", score_by_cpu, weights.even_cpu, ratio),
        ("even-memory", "EvenDistributionMemory", score_by_memory, weights.even_memory, placing),
        ("preferred-hosts", "PreferredHosts", score_by_preference, weights.preferred_hosts, placing),
        ("ha-weight", "HaReservation", score_by_ha_vms, weights.ha_reservation, scale),
        ("vm-affinity-weight", "VmAffinity", score_by_vm_groups, weights.vm_affinity, placing),
        ("vm-to-host-weight", "VmToHostAffinity", score_by_host_groups, weights.vm_to_host, placing),
    ):
        copy, simulated = Copy(product.scores(score)), Copy(simulator.scores(weigh))
        yield _both(name, "weight", f"{engine_class}WeightPolicyUnit", asking, copy, simulated, _TIERS)


def _our_units() -> Iterator[Unit]:
    elsewhere = (MEMBERS_ELSEWHERE,)
    by_vms = (switches.UNIFIED_GROUPS, switches.LEFT_BEHIND, switches.CRASH_OF_A_HOST_ASIDE)
    by_hosts, at_rest = (switches.EMPTY_HOST_GROUP,), (switches.PENDING_AS_IT_IS,)
    reserved = (switches.NOT_ITSELF, switches.PENDING_HA)
    accepted, ranks = product.accepted, product.ranks
    for name, kind, engine_class, copy, agree in (
        ("AffinityFilter", "filter", "VmAffinityFilter",
         Copy(accepted(filter_by_vms), by_vms, elsewhere), _HOSTS),
        ("HostAffinityFilter", "filter", "VmToHostAffinityFilter",
         Copy(accepted(filter_by_hosts), by_hosts, elsewhere), _HOSTS),
        ("SoftAffinityWeight", "weight", "VmAffinityWeight",
         Copy(ranks(rank_by_vms), at_rest, elsewhere), comparing.refined),
        ("HostAffinityWeight", "weight", "VmToHostAffinityWeight",
         Copy(ranks(rank_by_hosts), (), elsewhere), _TIERS),
        ("HaReservationWeight", "weight", "HaReservationWeight", Copy(ranks(rank_hosts), reserved), _TIERS),
    ):  # fmt: skip
        request = {"unit": f"{engine_class}PolicyUnit"}
        yield Unit(name, kind, questions.placing_one, {"product": copy}, agree, request=request)


def _about_clusters() -> Iterator[Unit]:
    elsewhere, as_is = (MEMBERS_ELSEWHERE,), same(comparing.as_is)
    crash = (switches.CRASH_FOR_ALL,)
    once = (switches.PENDING_TWICE, switches.PERCENT_OF_CPUS, switches.NO_RULES)
    order = (switches.PHYSICAL_MEMORY_AS_TOLD, switches.ONLY_WHAT_IS_UP, *crash)
    unknown = (switches.UNKNOWN_USE_OF_A_HOST, switches.UNKNOWN_USE_OF_A_VM)
    moves = (*unknown, switches.ONLY_WHAT_IS_UP, switches.HOSTED_ENGINE_STAYS)
    of_cluster = questions.of_cluster
    for name, kind, asking, whose, copy, agree in (
        ("ha-check", "ha_check", of_cluster, "product",
         Copy(product.ha_check, (switches.NOTHING_TO_PROTECT,), once), comparing.exact),
        ("conflicts", "conflicts", of_cluster, "simulator",
         Copy(simulator.conflicts), same(comparing.as_conflicts)),
        ("conflicts-alike", "conflicts", of_cluster, "product",
         Copy(product.conflicts, (), elsewhere), comparing.conflicts_alike),
        ("unified", "unified", of_cluster, "product",
         Copy(product.unified, elsewhere), same(comparing.as_sets)),
        ("closure", "closure", questions.closing, "simulator",
         Copy(simulator.closure), same(comparing.as_closure)),
        ("broken", "broken", of_cluster, "simulator", Copy(simulator.broken), as_is),
        ("enforcement", "enforcement", questions.enforcing, "product",
         Copy(product.enforcement, order, elsewhere), comparing.same_order),
        ("even-distribution", "balance", questions.balancing, "product",
         Copy(product.even_distribution_move, moves), comparing.first_move),
        ("schedule", "schedule", questions.moving, "simulator",
         Copy(simulator.schedule, crash), same(comparing.as_placed)),
        ("external-units", "external", questions.externally, "simulator",
         Copy(simulator.schedule_externally, crash), as_is),
    ):  # fmt: skip
        request = {"unit": "EvenDistributionBalancePolicyUnit"} if kind == "balance" else {}
        yield Unit(name, kind, asking, {whose: copy}, agree, comparing.FEWER, request)


UNITS = {unit.name: unit for unit in (*_copies_of_units(), *_about_clusters(), *_our_units())}
