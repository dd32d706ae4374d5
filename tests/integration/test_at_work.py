"""Our units at work: an engine that places, drains and fails over asks the proxy, and the proxy the rules."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ovirt_placement.model import SchedulingPolicy, Snapshot
from tests import builders as build
from tests.builders import SOFT_APART, SOFT_TOGETHER, TOGETHER
from tests.integration.world import World, running
from tests.placement.cli.live_engine import live_engine
from tests.plugins.proxy_process import proxy_url
from tests.plugins.published import Publisher

POLICY = SchedulingPolicy(
    filters=("AffinityFilter", "HostAffinityFilter"),
    weights={"SoftAffinityWeight": 10, "HostAffinityWeight": 20, "HaReservationWeight": 1},
    balance="HaReservationBalance",
)

#: One engine serves all that need one.
pytestmark = pytest.mark.xdist_group("at-work")


def pair(
    name: str, rule: build.AffinityRule, *vms: tuple[str, bool], hosts: tuple[str, ...] = ("h1", "h2")
) -> list[build.Part]:
    """A cluster with hosts NAME-h1 ..., and VMs NAME-a ... of one group, each on a host, HA or not."""
    names = [f"{name}-{letter}" for letter, _ in zip("ab", vms, strict=True)]
    return [
        build.cluster(name, scheduling_policy=POLICY),
        *(build.host(f"{name}-{host}", cluster=name) for host in hosts),
        *(
            build.vm(vm, f"{name}-{host}", cluster=name, ha=ha)
            for vm, (host, ha) in zip(names, vms, strict=True)
        ),
        build.group(f"{name}-group", rule, " ".join(names), cluster=name),
    ]


def state() -> Snapshot:
    return build.snapshot(
        *pair("fail", SOFT_TOGETHER, ("h1", True), ("h1", False)),
        *pair("crowd", SOFT_APART, ("h1", True), ("h2", True)),
        *pair("drain", TOGETHER, ("h1", False), ("h1", False), hosts=("h1", "h2", "h3")),
    )


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with running(tmp_path_factory.mktemp("world"), state()) as world:
        yield world


def test_host_with_a_hard_positive_group_can_be_drained(engine: World) -> None:
    engine.drain("drain-h1")
    assert engine.host_of("drain-a") == engine.host_of("drain-b") != "drain-h1"


@pytest.mark.system
@pytest.mark.parametrize("name", ["fail", "crowd"])
def test_vm_of_a_failed_host_restarts_without_or_alongside_its_peer(engine: World, name: str) -> None:
    """What only should be neither keeps it down."""
    engine.fail(f"{name}-h1")
    engine.until_on(f"{name}-a", f"{name}-h2")


#: All else speaks for the host that the first VM is on: the other one is busy.
BUSY = build.snapshot(
    build.cluster("c1", name="blue"), build.host("idle", cluster="c1", cpu_percent=1, free_mb=60000),
    build.host("busy", cluster="c1", cpu_percent=90, free_mb=2000), build.vm("v1", "idle", cluster="c1"),
    build.vm("v2", cluster="c1"), build.group("g", SOFT_APART, "v1 v2", cluster="c1", name="apart"),
)  # fmt: skip


@pytest.mark.parametrize(("factor", "chosen"), [(0, "idle"), (1000, "busy")])
def test_a_weight_that_setup_adds_decides_as_much_as_its_factor_says(
    factor: int,
    chosen: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "published"
    folder.mkdir()
    publisher = Publisher(folder)
    with (
        proxy_url(publisher.environment) as proxy,
        live_engine(BUSY, tmp_path, capsys, monkeypatch, proxy=proxy) as live,
    ):
        live.run(0, "setup", "--cluster", "blue", "--factor", f"SoftAffinityWeight={factor}")
        publisher.publish(live.engine.snapshot())
        live.engine.vms.start("v2")
        live.engine.advance(30)
        assert live.engine.queries.state.vms.get("v2").host == chosen
