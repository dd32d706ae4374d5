"""What `ovirt-placement doctor` says of units that engine and proxy do not know alike."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec.structs import replace

from ovirt_placement.model import SchedulingPolicy as Units
from ovirt_simulator.core.engine import Engine
from tests.builders import cluster, snapshot
from tests.paths import PLUGINS
from tests.placement.cli.doctor.examining import EMPTY, findings
from tests.placement.cli.live_engine import Starting
from tests.placement.sockets import refusing_port
from tests.plugins.proxy_process import proxy_url


def test_external_scheduler_that_is_off(starting: Starting) -> None:
    with starting(EMPTY, proxy=None) as live:
        (what,) = findings(live)
    assert what.startswith("the engine knows none of our policy units: its external scheduler is off")


def test_proxy_that_was_away_when_the_engine_started(starting: Starting) -> None:
    with refusing_port() as port, starting(EMPTY, proxy=f"http://127.0.0.1:{port}/") as live:
        unknown, lately = findings(live)
    assert unknown.startswith("the engine knows none of our policy units: it could not reach the proxy at ")
    assert lately.startswith("the engine could not reach the proxy at ")


def test_units_that_are_disabled(starting: Starting) -> None:
    ours = Units(
        filters=("AffinityFilter", "HostAffinityFilter"),
        weights={"SoftAffinityWeight": 1, "HostAffinityWeight": 1, "HaReservationWeight": 1},
        balance="HaReservationBalance",
    )
    state = snapshot(cluster("c1", scheduling_policy=ours))
    with refusing_port() as port, starting(state, proxy=f"http://127.0.0.1:{port}/") as live:
        disabled = findings(live)[0]
    assert disabled.startswith(
        "the engine has disabled all of our policy units: it could not reach the proxy"
    )


def test_units_lost_while_the_engine_started(starting: Starting, tmp_path: Path) -> None:
    """The proxy was away at some earlier start, and has answered since; what is disabled, it did report."""
    ours = Units(filters=("AffinityFilter",))
    state = snapshot(cluster("c1", name="blue", scheduling_policy=ours))

    def lose(engine: Engine) -> None:
        units = engine._backend.state.units
        units.update({one: replace(unit, enabled=False) for one, unit in units.items() if not unit.internal})

    with proxy_url(os.environ) as url, starting(state, proxy=url, prepare=lose) as live:
        lost, *_ = findings(live, "--proxy", url)
        status = live.data(1, "status")
    assert lost.startswith("the engine has disabled policy units that the proxy reported to it at 20")
    assert "AffinityFilter" in lost
    assert "could not reach" not in lost
    assert status["health"] == "unhealthy"
    assert status["reasons"][0] == (
        "cluster blue: the engine has disabled AffinityFilter of its policy, and places VMs without it"
        " (ovirt-placement doctor)"
    )
    assert status["clusters"][0]["disabled_units"] == ["AffinityFilter"]
    with starting(state, proxy=None) as live:
        assert "could not reach" not in findings(live)[0]


def test_some_units_unknown_and_some_disabled(starting: Starting, tmp_path: Path) -> None:
    folder = tmp_path / "some"
    folder.mkdir()
    plugins = PLUGINS
    (folder / "affinity.py").write_bytes((plugins / "affinity.py").read_bytes())
    state = snapshot(cluster("c1", scheduling_policy=Units(filters=("HostAffinityFilter",))))
    with proxy_url(os.environ, folder) as url, starting(state, proxy=url) as live:
        unknown, disabled, *_ = findings(live)
        assert unknown == (
            "the engine does not know these policy units:"
            " PlacementRuleFilter, HostAffinityWeight, PlacementRuleWeight, HaReservationWeight,"
            " HaReservationBalance"
        )
        assert disabled == (
            "the engine has disabled policy units that the proxy did not offer: HostAffinityFilter"
        )
        assert any(
            what.startswith(f"the proxy at {url.rstrip('/')} does not offer: ")
            for what in findings(live, "--proxy", url)
        )


def test_proxy_that_is_away_or_no_proxy(starting: Starting, proxy: str) -> None:
    with starting(EMPTY) as live:
        with refusing_port() as port:
            (what,) = findings(live, "--proxy", f"http://127.0.0.1:{port}/")
        assert what.startswith(f"the proxy at http://127.0.0.1:{port} does not answer as a scheduler proxy")
        (what,) = findings(live, "--proxy", live.server.url)
        assert "does not answer as a scheduler proxy" in what
        (what,) = findings(live, "--proxy", "localhost")
        assert "does not answer as a scheduler proxy" in what


def test_proxy_whose_units_changed_since_the_engine_started(starting: Starting, tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    folder.mkdir()
    for file in (PLUGINS).glob("*.py"):
        other_parameters = '"AffinityFilter_Lacking=(report|reject)"'
        text = file.read_text().replace('PARAMETERS["AffinityFilter"]', other_parameters)
        (folder / file.name).write_text(text)
    for name in ("Rack", "Row"):
        (folder / f"{name.lower()}.py").write_text(
            f"class {name}:\n    def do_filter(self, hosts, vm, args):\n        print(hosts)\n"
        )
    with starting(EMPTY) as live, proxy_url(os.environ, folder) as url:
        found = findings(live, "--proxy", url)
    new, changed = found
    assert new == "the engine does not know units that the proxy offers: Rack, Row"
    assert changed == (
        "units have other properties in the engine than in the proxy:"
        " AffinityFilter (AffinityFilter_Lacking, affinity_missing_unit)"
    )
