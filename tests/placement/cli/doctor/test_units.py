"""What `ovirt-placement doctor` says of units, of placement keys, and of names that match nothing."""

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any
from xmlrpc.server import SimpleXMLRPCServer

import pytest
import trustme
from msgspec.structs import replace

from ovirt_placement.answers.doctor import policies
from ovirt_placement.answers.proxy import NoDiscovery, discover
from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.model import PlacementKey, Snapshot
from ovirt_placement.model import SchedulingPolicy as Units
from ovirt_placement.store.keys import KeyStore
from ovirt_simulator.core.engine import Engine
from tests.builders import cluster, host, snapshot, vm
from tests.paths import PLUGINS
from tests.placement.cli.doctor.examining import EMPTY, findings
from tests.placement.cli.live_engine import LiveEngine, Starting
from tests.placement.engine_server import PASSWORD, EngineServer, serving
from tests.placement.sockets import refusing_port
from tests.plugins.proxy_process import proxy_url
from tests.stored import put_keys


# -- What `ovirt-placement doctor` says of units that engine and proxy do not know alike.
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


@contextmanager
def answering(answer: Any, context: ssl.SSLContext | None = None) -> Iterator[str]:
    """Something that answers `discover` so; the address where, over TLS with a context."""
    with SimpleXMLRPCServer(("localhost", 0), logRequests=False, bind_and_activate=True) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        server.register_function(lambda: answer, "discover")
        thread = Thread(target=server.handle_request)
        thread.start()
        yield f"{'http' if context is None else 'https'}://127.0.0.1:{server.server_address[1]}/"
        thread.join()


def test_a_proxy_with_tls_is_asked_whatever_name_its_certificate_bears() -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert("engine.example.com").configure_cert(context)
    with answering({"filters": {"Rack": ["", "rack=.*"]}, "scores": {}, "balance": {}}, context) as url:
        assert discover(url) == {("filter", "Rack"): {"rack": ".*"}}


@pytest.mark.parametrize(
    "answer",
    [
        [],
        {"filters": {}, "scores": {}},
        {"filters": [], "scores": {}, "balance": {}},
        {"filters": {"Rack": ["of another version"]}, "scores": {}, "balance": {}},
    ],
)
def test_what_answers_something_else_is_no_proxy(answer: Any) -> None:
    with answering(answer) as url, pytest.raises(NoDiscovery, match="does not answer filters, scores and"):
        discover(url)


@pytest.mark.parametrize("url", ["http://exa mple/", "http://[::1", "http://127.0.0.1:x/", "localhost"])
def test_what_is_no_address_has_no_proxy(url: str) -> None:
    with pytest.raises(NoDiscovery):
        discover(url)


def test_a_unit_that_was_asked_for_and_is_disabled(starting: Starting) -> None:
    units = Units(filters=("HaAdmissionFilter", "AffinityFilter"))
    state = snapshot(cluster("c1", name="blue", scheduling_policy=units))
    with refusing_port() as port, starting(state, proxy=f"http://127.0.0.1:{port}/") as live:
        what = "has disabled HaAdmissionFilter of the policy blue-placement, and places VMs without it"
        assert f"the engine {what}" in findings(live)


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


# -- What `ovirt-placement doctor` says of placement keys: units, parameters, factors, and the VM property.
KEY = PlacementKey(level="node", resource="h1", key_class="system", name="ssd", value=1.0)


def by_keys(factor: int = 100_000, **properties: str) -> Snapshot:
    """A cluster of three hosts whose policy weighs by keys."""
    units = Units(filters=("PlacementKeyFilter",), weights={"PlacementKeyWeight": factor})
    return snapshot(
        cluster("c1", name="blue", scheduling_policy=units, scheduling_properties=properties),
        *(host(f"h{number}", cluster="c1") for number in (1, 2, 3)),
    )


def set_key(folder: Path) -> None:
    keys = KeyStore(f"sqlite:///{folder}/store.db", engine="default")
    put_keys(keys, [KEY], set_by="me")
    keys.close()


def about_keys(live: LiveEngine) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = live.data(1, "doctor")["findings"]
    return [
        each for each in found if "lacement" in each["sentence"] and "no inventory" not in each["sentence"]
    ]


def test_keys_that_the_policy_has_no_units_for(starting: Starting, tmp_path: Path) -> None:
    state = replace(by_keys(factor=0), clusters=(*by_keys(factor=0).clusters, cluster("c2", name="red")))
    with starting(state, proxy=None) as live:
        set_key(tmp_path)
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
        set_key(tmp_path)
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
        remedy = found["remedy"].removeprefix("run ovirt-placement ").partition(" (")[0]
        live.run(0, *remedy.replace("KEY=VALUE", "placement_initial=10").split())
        assert about_keys(live) == []


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


SAP = "sap_agent=^(true|false)$"


@pytest.mark.parametrize(
    ("declared", "what", "remedy"),
    [
        (SAP, "custom property placement_keys is not declared for clusters of version 4.7", SAP),
        ("placement_keys=.*;other=x=y", "is declared with another pattern", "other=x=y"),
    ],
)
def test_property_that_is_not_declared_or_otherwise(declared: str, what: str, remedy: str) -> None:
    ((found, carried_out),) = property_findings({"4.6": "", "4.7": declared, "general": ""}, "4.7", "4.7")
    assert what in found
    option = f"engine-config -s UserDefinedVMProperties='{remedy};placement_keys={PATTERN}' --cver=4.7"
    assert carried_out.startswith(option)


@pytest.mark.parametrize(
    ("declared", "version"),
    [
        *(
            ({"4.7": f"{SAP};placement_keys={one}"}, "4.7")
            for one in (PATTERN, f"^{PATTERN}$", f"({PATTERN})?")
        ),
        # An engine that does not report is not asked to.
        (None, "4.7"),
        ({"4.6": ""}, "4.7"),
        ({"4.7": ""}, None),
    ],
)
def test_property_of_which_nothing_is_said(declared: dict[str, str] | None, version: str | None) -> None:
    assert property_findings(declared, *([version] if version else [])) == []


# -- What `ovirt-placement doctor` says of names of the configuration that match nothing.
STATE = snapshot(
    cluster("c1", name="blue"),
    host("h1", cluster="c1", tags=("rack-1",)),
    vm("v1", "h1", cluster="c1", name="web", tags=("leave-alone",)),
)
SETTINGS = """
[ha]
domain_tags = ["rack-", "room-"]
[enforcer]
exclude_vms = ["web", "wbe", "pbs-*"]
exclude_tag = "{tag}"
"""


def test_each_is_a_finding_with_what_it_is_like(serving: Starting) -> None:
    with serving(STATE) as live:
        before = live.config.read_text()
        live.config.write_text(before + SETTINGS.format(tag="leave-alone"))
        found = [one for one in findings(live) if one.startswith(("[enforcer]", "[ha]"))]
        assert found == [
            "[ha] domain_tags: there is no tag of a host room-",
            '[enforcer] exclude_vms: there is no VM wbe; did you mean "web"?',
            "[enforcer] exclude_vms: pbs-* names no VM",
        ]
        live.config.write_text(before + SETTINGS.format(tag="leave-alon"))
        assert any(
            one.startswith("[enforcer] exclude_tag: there is no tag leave-alon") for one in findings(live)
        )
