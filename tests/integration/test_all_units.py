"""All our units at work: an engine that starts, migrates and drains, asks the proxy, and the proxy the rules.

The stories are those of Nova's soft affinity, reported with oVirt's words, and a host that goes into
maintenance.
"""

from collections.abc import Iterator

import ovirtsdk4
import pytest

from ovirt_placement.model import AffinityRule, SchedulingPolicy, Snapshot
from tests import builders as build
from tests.builders import SOFT_APART, SOFT_TOGETHER, TOGETHER
from tests.integration.world import World, running

POLICY = SchedulingPolicy(
    filters=("AffinityFilter", "HostAffinityFilter"),
    weights={"SoftAffinityWeight": 10, "HostAffinityWeight": 20, "HaReservationWeight": 1},
    balance="HaReservationBalance",
)
#: Weighs neither kind of soft rule between VMs, and VMs that have one are not to be started then.
LACKING = SchedulingPolicy(filters=("AffinityFilter",), weights={"HostAffinityWeight": 20})
REJECT = {"affinity_missing_unit": "reject"}
EXTERNAL_SCHEDULER_PLUGIN_ERROR = 10500

#: One engine serves all of them.
pytestmark = pytest.mark.xdist_group("all-units")


def small_cluster(
    name: str,
    rule: AffinityRule,
    hosts: list[dict[str, object]],
    vms: list[dict[str, object]],
    **policy: object,
) -> list[build.Part]:
    """A cluster with its hosts (NAME-h1 ...), its VMs (NAME-a, NAME-b) and one group of these."""
    names = [f"{name}-{letter}" for letter, _ in zip("abcd", vms, strict=False)]
    return [
        build.cluster(name, **{"scheduling_policy": POLICY, **policy}),
        *(build.host(f"{name}-h{at}", cluster=name, **fields) for at, fields in enumerate(hosts, 1)),
        *(build.vm(vm, cluster=name, **fields) for vm, fields in zip(names, vms, strict=True)),
        build.group(f"{name}-group", rule, " ".join(names), cluster=name),
    ]


def state() -> Snapshot:
    big = {"memory_mb": 4096, "guaranteed_mb": 4096}
    running = {"status": "up"}
    return build.snapshot(
        *small_cluster("together", SOFT_TOGETHER, [{}, {}, {}], [{}, {}, {}]),
        *small_cluster("overflow", SOFT_TOGETHER, [{"free_mb": 6000}, {"free_mb": 6000}], [big, big]),
        *small_cluster("apart", SOFT_APART, [{}, {}], [{}, {}]),
        *small_cluster("one-left", SOFT_APART, [{}, {"status": "maintenance"}], [{}, {}]),
        *small_cluster("leave", SOFT_TOGETHER, [{}, {}], [{"on": "leave-h1", **running}] * 2),
        *small_cluster("rejoin", SOFT_APART, [{}, {}], [{"on": f"rejoin-h{at}", **running} for at in (1, 2)]),
        *small_cluster(
            "fail", SOFT_TOGETHER, [{}, {}], [{"on": "fail-h1", "ha": ha, **running} for ha in (True, False)]
        ),
        *small_cluster(
            "crowd", SOFT_APART, [{}, {}], [{"on": f"crowd-h{at}", "ha": True, **running} for at in (1, 2)]
        ),
        *small_cluster(
            "alone",
            SOFT_TOGETHER,
            [{}, {}],
            [{}, {}],
            scheduling_policy=LACKING,
            policy={"vm_affinity_weight": 0},
            scheduling_properties=REJECT,
        ),
        *small_cluster(
            "mirror",
            SOFT_APART,
            [{}, {}],
            [{}, {}],
            scheduling_policy=LACKING,
            policy={"vm_affinity_weight": 0},
            scheduling_properties=REJECT,
        ),
        *small_cluster("drain", TOGETHER, [{}, {}, {}], [{"on": "drain-h1", **running}] * 2),
    )


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with running(tmp_path_factory.mktemp("world"), state()) as world:
        yield world


@pytest.mark.system
def test_soft_affinity_starts_vms_on_one_host(engine: World) -> None:
    assert len({engine.start(f"together-{letter}") for letter in "abc"}) == 1
    engine.until_called("runCostFunctions", 1, "together-a", "together-b", "together-c")


@pytest.mark.system
def test_soft_affinity_overflows_to_another_host_rather_than_fail(engine: World) -> None:
    assert engine.start("overflow-a") != engine.start("overflow-b")


@pytest.mark.system
def test_soft_anti_affinity_starts_vms_on_different_hosts(engine: World) -> None:
    assert engine.start("apart-a") != engine.start("apart-b")


@pytest.mark.system
def test_soft_anti_affinity_shares_the_one_host_that_is_left(engine: World) -> None:
    assert engine.start("one-left-a") == engine.start("one-left-b") == "one-left-h1"


def test_migration_leaves_its_peers_where_it_must(engine: World) -> None:
    assert engine.migrate("leave-a") == "leave-h2"
    assert engine.host_of("leave-b") == "leave-h1"


def test_migration_joins_a_vm_that_it_should_stay_away_from_where_no_other_host_is(engine: World) -> None:
    assert engine.migrate("rejoin-a") == "rejoin-h2" == engine.host_of("rejoin-b")


def test_host_with_a_hard_positive_group_can_be_drained(engine: World) -> None:
    engine.drain("drain-h1")
    assert engine.host_of("drain-a") == engine.host_of("drain-b") != "drain-h1"


@pytest.mark.system
def test_vm_of_a_failed_host_restarts_elsewhere_without_the_peer_it_should_join(engine: World) -> None:
    engine.fail("fail-h1")
    engine.until_on("fail-a", "fail-h2")


@pytest.mark.system
def test_vm_of_a_failed_host_restarts_alongside_the_peer_it_should_stay_away_from(engine: World) -> None:
    engine.fail("crowd-h1")
    engine.until_on("crowd-a", "crowd-h2")
    assert engine.host_of("crowd-b") == "crowd-h2"


def test_vm_is_refused_loudly_where_the_policy_lacks_the_unit_that_its_rule_asks_for(engine: World) -> None:
    for name in ("alone", "mirror"):
        with pytest.raises(ovirtsdk4.Error):
            engine.start(f"{name}-a")
        assert engine.is_down(f"{name}-a")
    for name in ("alone", "mirror"):
        words = "AffinityFilter", f"{name}-group", f"{name}-a", "SoftAffinityWeight", "no host"
        engine.until_reported(EXTERNAL_SCHEDULER_PLUGIN_ERROR, *words)
