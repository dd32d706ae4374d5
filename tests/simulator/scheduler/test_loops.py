"""The engine's own loops: load balancing that asks the proxy, and affinity enforcement."""

from msgspec.structs import replace

from ovirt_placement.model import SchedulingPolicy
from ovirt_simulator.core.backend import PROMPT
from ovirt_simulator.core.engine import Engine
from tests.builders import APART, TOGETHER, Part, cluster, group, host, vm
from tests.simulator.core import engines
from tests.simulator.scheduler.proxy import Proxy, reply

BALANCING = replace(PROMPT, load_balancing_seconds=60.0)
ENFORCING = replace(PROMPT, affinity_enforcement_seconds=60.0)
POLICY = SchedulingPolicy(balance="HaReservationBalance")


def balancing(proxy: Proxy, *more: Part) -> Engine:
    return engines.engine(
        cluster(scheduling_policy=POLICY, scheduling_properties={"k": "v"}),
        host("h1"),
        host("h2"),
        host("h3", status="maintenance"),
        vm("v", "h1"),
        *more,
        proxy=proxy.url,
        settings=BALANCING,
    )


def test_the_balance_moves_the_vm_that_it_names(proxy: Proxy) -> None:
    proxy.run_load_balancing = lambda *_: reply(["v", ["h2"]])
    engine = balancing(proxy)
    engine.advance(59)
    assert [call[0] for call in proxy.calls] == ["discover"]
    engine.advance(1)
    assert proxy.calls[1:] == [("runLoadBalancing", "HaReservationBalance", ["h1", "h2"], {"k": "v"})]
    assert engines.where(engine, "v") == ("migrating", "h1")
    engine.advance(30)
    assert engines.where(engine, "v") == ("up", "h2")
    started = engine.queries.events()[1]
    assert started.code == 67
    assert started.description.endswith("Reason: Load balancing).")


def test_hosts_with_a_migrating_vm_are_not_offered(proxy: Proxy) -> None:
    engine = balancing(proxy, host("h4"), host("h5", free_mb=40000), vm("m", "h4", memory_mb=512 * 64))
    engine.advance(50)
    engine.vms.migrate("m", host_id="h5")
    engine.advance(10)
    assert proxy.calls[-1][2] == ["h1", "h2"]


def test_an_empty_answer_ends_the_cycle_for_every_cluster_after(proxy: Proxy) -> None:
    proxy.run_load_balancing = lambda *_: reply([])
    second = cluster("second", scheduling_policy=POLICY)
    engine = balancing(proxy, second, host("s1", cluster="second"))
    engine.advance(60)
    assert [call[0] for call in proxy.calls] == ["discover", "runLoadBalancing"]
    proxy.run_load_balancing = lambda *_: reply(["", []])
    engine.advance(60)
    assert [call[2] for call in proxy.calls[2:]] == [["h1", "h2"], ["s1"]]


def test_a_policy_without_balance_breaks_balancing(proxy: Proxy) -> None:
    engine = balancing(proxy)
    (policy,) = [p for p in engine.queries.state.policies.values() if not p.locked]
    assert policy.balance is not None
    engine.policies.remove_unit(policy.id, policy.balance)
    engine.advance(120)
    assert [call[0] for call in proxy.calls] == ["discover"]


def test_no_loop_runs_unasked(proxy: Proxy) -> None:
    parts = (host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1"), group("g", APART, "a b"))
    engine = engines.engine(cluster(scheduling_policy=POLICY), *parts, proxy=proxy.url)
    engine.advance(3600)
    assert [call[0] for call in proxy.calls] == ["discover"]
    assert engines.codes(engine) == []


def test_enforcement_repairs_one_vm_a_minute() -> None:
    engine = engines.engine(
        *map(host, ("h1", "h2", "h3")),
        *(vm(name, "h1") for name in "abcx"),
        *(vm(name, "h2") for name in "yz"),
        *(group("apart", APART, "a b c"), group("together", TOGETHER, "x y z")),
        settings=ENFORCING,
    )
    moves = []
    for _ in range(8):
        engine.advance(60)
        moves.append(engines.codes(engine).count(67))
    assert moves == [1, 2, 3, 3, 3, 3, 3, 3]
    assert not any(map(engine.queries.is_broken, engine.queries.state.groups_of("cluster1")))


def test_enforcement_goes_on_in_a_cluster_that_is_being_upgraded() -> None:
    engine = engines.engine(
        host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1"), group("apart", APART, "a b"), settings=ENFORCING
    )
    engine.policies.update_cluster("cluster1", policy_name="cluster_maintenance")
    engine.upgrades.start("cluster1")
    engine.advance(300)
    assert engine.snapshot().clusters[0].upgrade_mode
    assert 67 in engines.codes(engine)
