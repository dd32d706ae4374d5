"""The policy that `ovirt-placement setup` makes, at work: the engine places a VM by it, through the proxy."""

from pathlib import Path

import pytest

from tests.builders import SOFT_APART, cluster, group, host, snapshot, vm
from tests.placement.cli.live_engine import live_engine
from tests.plugins.proxy_process import proxy_url
from tests.plugins.published import Publisher

#: All else speaks for the host that the first VM is on: the other one is busy.
STATE = snapshot(
    cluster("c1", name="blue"),
    host("idle", cluster="c1", cpu_percent=1, free_mb=60000),
    host("busy", cluster="c1", cpu_percent=90, free_mb=2000),
    vm("v1", "idle", cluster="c1"),
    vm("v2", cluster="c1"),
    group("g", SOFT_APART, "v1 v2", cluster="c1", name="apart"),
)


@pytest.mark.parametrize(("factor", "chosen"), [(0, "idle"), (1000, "busy")])
def test_our_weight_decides_as_much_as_its_factor_says(
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
        live_engine(STATE, tmp_path, capsys, monkeypatch, proxy=proxy) as live,
    ):
        live.run(0, "setup", "--cluster", "blue", "--factor", f"SoftAffinityWeight={factor}")
        publisher.publish(live.engine.snapshot())
        live.engine.vms.start("v2")
        live.engine.advance(30)
        started = live.engine.queries.state.vms.get("v2")
    assert started.host == chosen
