"""What `ovirt-placement doctor` says of placement keys: units, parameters, factors, and the VM property."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ovirt_placement.answers.doctor import policies
from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.model import PlacementKey, Snapshot
from ovirt_placement.model import SchedulingPolicy as Units
from ovirt_placement.store.keys import KeyStore
from tests.builders import cluster, host, snapshot, vm
from tests.placement.cli.doctor.examining import findings
from tests.placement.cli.live_engine import LiveEngine, Starting
from tests.placement.engine_server import PASSWORD, EngineServer, serving
from tests.stored import put_keys

KEY = PlacementKey(level="node", resource="h1", key_class="system", name="ssd", value=1.0)


def by_keys(factor: int = 100_000, **properties: str) -> Snapshot:
    """A cluster of three hosts whose policy weighs by keys."""
    units = Units(filters=("PlacementKeyFilter",), weights={"PlacementKeyWeight": factor})
    return snapshot(
        cluster("c1", name="blue", scheduling_policy=units, scheduling_properties=properties),
        *(host(f"h{number}", cluster="c1") for number in (1, 2, 3)),
    )


def about_keys(live: LiveEngine) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = live.data(1, "doctor")["findings"]
    return [
        each for each in found if "lacement" in each["sentence"] and "no inventory" not in each["sentence"]
    ]


def test_keys_that_the_policy_has_no_units_for(starting: Starting, tmp_path: Path) -> None:
    key_units = Units(filters=("PlacementKeyFilter",), weights={"PlacementKeyWeight": 0})
    state = snapshot(
        cluster("c1", name="blue", scheduling_policy=key_units),
        cluster("c2", name="red"),
        host("h1", cluster="c1"),
    )
    with starting(state, proxy=None) as live:
        keys = KeyStore(f"sqlite:///{tmp_path}/store.db", engine="default")
        put_keys(keys, [KEY], set_by="me")
        keys.close()
        (what,) = (what for what in findings(live) if what.startswith("cluster "))
    assert what.startswith("cluster blue: not all of its placement keys count")
    assert what.endswith("has no PlacementKeyWeight in effect")


def test_keys_of_users_that_the_policy_has_no_units_for(starting: Starting) -> None:
    theirs = vm("v1", cluster="c1", custom_properties={"placement_keys": "Repel1:1:-100"})
    with starting(snapshot(cluster("c1", name="blue"), theirs)) as live:
        (what,) = findings(live)
    assert what.endswith("has no PlacementKeyFilter and no PlacementKeyWeight in effect")


def test_mistakes_are_counted(starting: Starting, tmp_path: Path) -> None:
    with starting(by_keys()) as live:
        keys = KeyStore(f"sqlite:///{tmp_path}/store.db", engine="default")
        put_keys(keys, [KEY], set_by="me")
        keys.close()
        (found,) = about_keys(live)
    assert found["sentence"].startswith("2 mistakes in placement keys")  # two hosts lack it
    assert found["remedy"] == "ovirt-placement keys check lists them"


@pytest.mark.parametrize(
    ("properties", "what"),
    [
        (
            {"placement_initial": "-20"},
            "the parameters of placement keys cannot be together, and the defaults count",
        ),
        ({"placement_final": "0"}, "placement_final is 0, and VMs without placement keys find no host"),
    ],
)
def test_parameters_that_cannot_be_meant(starting: Starting, properties: dict[str, str], what: str) -> None:
    with starting(by_keys(**properties)) as live:
        (found,) = about_keys(live)
    assert found["sentence"].startswith(f"cluster blue: {what}")
    assert "setup --property" in found["remedy"]


def test_factor_that_other_weights_can_outvote(starting: Starting) -> None:
    """The usual other weights sum up to 134; on three hosts each can be two ranks apart."""
    for factor, reported in ((268, True), (269, False)):
        with starting(by_keys(factor)) as live:
            out = " ".join(each["sentence"] for each in live.data(1, "doctor")["findings"])
            assert ("PlacementKeyWeight has the factor 268, and with 3 hosts it takes 269" in out) is reported


def test_factor_of_setup_suffices(starting: Starting) -> None:
    hosts = (host(f"h{number}", cluster="c1") for number in range(500))
    with starting(snapshot(cluster("c1", name="blue"), *hosts)) as live:
        live.run(0, "setup", "--cluster", "blue", "--placement-keys")
        assert findings(live) == []


PATTERN = (
    r"[A-Za-z_][A-Za-z0-9_.-]{0,49}:-?[0-9]+(\.[0-9]+)?:-?[0-9]+(\.[0-9]+)?"
    r"(,[A-Za-z_][A-Za-z0-9_.-]{0,49}:-?[0-9]+(\.[0-9]+)?:-?[0-9]+(\.[0-9]+)?)*"
)


def property_findings(declared: dict[str, str] | None, *versions: str) -> list[tuple[str, str]]:
    """The answer where clusters of these versions weigh by keys; None if the engine has none."""
    values = "".join(
        f"<system_option_value><value>{value}</value><version>{version}</version></system_option_value>"
        for version, value in (declared or {}).items()
    )
    option = f'<system_option id="UserDefinedVMProperties"><values>{values}</values></system_option>'

    def answer(path: str) -> tuple[int, bytes] | None:
        if path != "/options/UserDefinedVMProperties":
            return None
        return (404, b"") if declared is None else (200, option.encode())

    with serving(EngineServer(answer=answer)) as server:
        settings = EngineSettings(url=server.url, username="admin@internal")
        with EngineConnection(settings, {"OVIRT_PASSWORD": PASSWORD}) as connection:
            clusters = [cluster(f"c{version}", compatibility=version) for version in versions]
            found = policies.examine_property(connection, clusters)
            return [(each.sentence, each.remedy) for each in found]


@pytest.mark.parametrize("declared", [PATTERN, f"^{PATTERN}$", f"({PATTERN})?"])
def test_property_that_is_declared_as_it_should_be(declared: str) -> None:
    assert property_findings({"4.7": f"sap_agent=^(true|false)$;placement_keys={declared}"}, "4.7") == []


def test_property_that_is_not_declared() -> None:
    ((what, remedy),) = property_findings(
        {"4.6": "", "4.7": "sap_agent=^(true|false)$", "general": ""}, "4.7", "4.7"
    )
    assert "custom property placement_keys is not declared for clusters of version 4.7" in what
    assert remedy.startswith(
        "engine-config -s UserDefinedVMProperties="
        f"'sap_agent=^(true|false)$;placement_keys={PATTERN}' --cver=4.7"
    )


def test_property_that_is_declared_otherwise() -> None:
    ((what, remedy),) = property_findings({"4.7": "placement_keys=.*;other=x=y"}, "4.7")
    assert "is declared with another pattern" in what
    assert f"='other=x=y;placement_keys={PATTERN}' --cver=4.7" in remedy


def test_an_engine_that_does_not_report_is_not_asked_to() -> None:
    assert property_findings(None, "4.7") == []
    assert property_findings({"4.7": ""}) == []
    assert property_findings({"4.6": ""}, "4.7") == []
