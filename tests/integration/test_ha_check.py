"""What `ha-check` says of a failover is what comes of it: a host fails, and the engine starts VMs or cannot.

Each story has a cluster of its own with one highly available VM on its first host, on one living engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ovirt_placement.cli.main import main
from ovirt_placement.model import SchedulingPolicy, Snapshot
from tests import builders as build
from tests.builders import APART
from tests.integration.world import World, running
from tests.placement.cli.documents import plain

VDS_INITIATED_RUN_VM_FAILED = 507

POLICY = SchedulingPolicy(filters=("AffinityFilter", "HostAffinityFilter"))
KEYED = SchedulingPolicy(filters=(*POLICY.filters, "PlacementKeyFilter"))
IDLE = {"memory_mb": 8192, "guaranteed_mb": 1024, "usage_mem_percent": 10, "video_mb": build.VGA_MB}

#: One engine serves all of them.
pytestmark = pytest.mark.xdist_group("ha-check")


def story(
    name: str, vm: dict[str, Any], *homes: dict[str, Any], policy: SchedulingPolicy = POLICY
) -> list[build.Part]:
    """A cluster NAME with hosts NAME-h1 ..., of which the first runs the VM NAME-vm."""
    hosts = enumerate(({}, *homes), 1)
    return [
        build.cluster(name, ha_reservation=True, scheduling_policy=policy),
        *(build.host(f"{name}-h{at}", cluster=name, **fields) for at, fields in hosts),
        build.vm(f"{name}-vm", f"{name}-h1", cluster=name, ha=True, **vm),
    ]


def state() -> Snapshot:
    return build.snapshot(
        *story("room", IDLE, {"free_mb": 8304}),
        *story("memory", IDLE, {"free_mb": 3000}),
        *story("cores", {"vcpus": 8}, {"cores": 4}),
        *story("keys", {"memory_mb": 5500}, {"memory_mb": 6000}, policy=KEYED),
        *story("apart", {}, {}),
        build.vm("apart-foe", "apart-h2", cluster="apart"),
        build.group("apart-group", APART, "apart-vm apart-foe", cluster="apart"),
    )


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with running(tmp_path_factory.mktemp("world"), state()) as world:
        yield world


def ha_check(engine: World, capsys: pytest.CaptureFixture[str], cluster: str) -> Any:
    main(["ha-check", "--cluster", cluster, "--json", "--config", str(engine.config)])
    (found,) = plain(capsys.readouterr().out)["clusters"]
    return found


@pytest.mark.system
def test_safe_is_a_vm_that_starts_again(engine: World, capsys: pytest.CaptureFixture[str]) -> None:
    found = ha_check(engine, capsys, "room")
    assert found["safe"] is True
    homes = [{"vm": "room-vm", "host": "room-h2"}]
    assert {"hosts": ["room-h1"], "domains": [], "homes": homes} in found["survivals"]
    engine.fail("room-h1")
    engine.until_on("room-vm", "room-h2")


@pytest.mark.system
@pytest.mark.parametrize(
    ("name", "by_engine"), [("memory", True), ("cores", True), ("keys", True), ("apart", False)]
)
def test_unsafe_is_a_vm_that_stays_down(
    engine: World, capsys: pytest.CaptureFixture[str], name: str, *, by_engine: bool
) -> None:
    """The engine's own arithmetic, with hard affinity and pinning, sees but the last."""
    found = ha_check(engine, capsys, name)
    assert found["safe"] is False
    (loss,) = found["losses"]
    assert (loss["hosts"], loss["domains"], loss["unplaced"]) == ([f"{name}-h1"], [], [f"{name}-vm"])
    assert [one["vm"] for one in loss["because"]] == [f"{name}-vm"]
    assert found["by_engine"]["safe"] is by_engine
    engine.fail(f"{name}-h1")
    engine.until_reported(VDS_INITIATED_RUN_VM_FAILED, f"{name}-vm")
    assert engine.is_down(f"{name}-vm")

    def named() -> bool:
        outside = ha_check(engine, capsys, name)["outside"]
        return [(one["vm"], one["status"]) for one in outside] == [(f"{name}-vm", "down")]

    engine.until(named, f"{name}-vm to be named")
