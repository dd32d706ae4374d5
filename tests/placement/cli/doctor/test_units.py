"""What `ovirt-placement doctor` says of units, of placement keys, and of names that match nothing."""

import os
import shutil
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
from ovirt_placement.model import PlacementKey, Snapshot
from ovirt_placement.model import SchedulingPolicy as Units
from ovirt_placement.store.keys import KeyStore
from ovirt_simulator.core.engine import Engine
from tests.builders import SOFT_TOGETHER, Part, cluster, group, host, label, snapshot, vm
from tests.paths import PLUGINS
from tests.placement.cli.doctor.examining import EMPTY, RULED, findings
from tests.placement.cli.live_engine import LiveEngine, Starting
from tests.placement.engine_server import answering as engine_answering
from tests.plugins.proxy_process import proxy_url
from tests.stored import put_keys


# -- What `ovirt-placement doctor` says of units that engine and proxy do not know alike.
def blue(*parts: Part, **units: Any) -> Snapshot:
    """A cluster whose policy has these units, or the policy `none`."""
    policy = {"scheduling_policy": Units(**units), "policy": {"vm_affinity_weight": 0}} if units else {}
    return snapshot(cluster("c1", name="blue", **policy), *parts)


#: A proxy that nobody answers for.
AWAY = {"proxy": "http://127.0.0.1:9/"}
NEVER_REACHED = "the engine could not reach the proxy at "
DISABLED = ["the engine has disabled all of our policy units: it could not reach the proxy", NEVER_REACHED]
UNWEIGHED = {"vm_affinity_weight": 0, "vm_to_host_weight": 0}

#: Of a state and its engine, what is found.
FOUND: dict[str, tuple[Snapshot, dict[str, Any], list[str]]] = {
    "the external scheduler is off": (
        EMPTY, {"proxy": None}, ["the engine knows none of our policy units: its external scheduler is off"],
    ),
    "the proxy was away when the engine started": (
        EMPTY, AWAY, ["none of our policy units: it could not reach the proxy at ", NEVER_REACHED],
    ),
    "all units are disabled": (
        blue(filters=("AffinityFilter",), balance="HaReservationBalance"), AWAY, DISABLED,
    ),
    "a unit that was asked for is disabled": (
        blue(filters=("HaAdmissionFilter", "AffinityFilter")), AWAY,
        [*DISABLED, "has disabled HaAdmissionFilter of the policy blue-placement, and places VMs without it",
         "HaAdmissionFilter, which refuses nothing there"],
    ),
    "the unit of a rule is disabled": (
        blue(*RULED.hosts, *RULED.vms, RULED.affinity_groups[0], weights={"SoftAffinityWeight": 5}), AWAY,
        [*DISABLED, "the engine has disabled SoftAffinityWeight of its policy blue-placement"],
    ),
    "keys of users without units": (
        blue(vm("v1", cluster="c1", custom_properties={"placement_keys": "Repel1:1:-100"})), {},
        ["has no PlacementKeyFilter and no PlacementKeyWeight in effect"],
    ),
    "parameters that no unit knows any more": (
        snapshot(cluster("c1", name="blue", scheduling_properties={"Old_Key": "1"})), {},
        ["cluster blue has parameters that no unit of its policy none knows: Old_Key;"],
    ),
    # Of a soft group with one member of its own cluster, and a host rule without hosts.
    "groups that ask for nothing need no unit": (
        snapshot(
            cluster("c1", name="blue", policy=UNWEIGHED), cluster("c2", name="red"),
            vm("v1", cluster="c1"), vm("v2", cluster="c2"), label("l", "v2"),
            group("g", SOFT_TOGETHER, "v1", cluster="c1", vm_labels=("l",), hosts_rule=SOFT_TOGETHER),
        ), {}, [],
    ),
    "a user who may not read": (EMPTY, {"username": "user@internal"}, ["ReadOnlyAdmin"]),
}  # fmt: skip


@pytest.mark.parametrize(("state", "engine", "whats"), FOUND.values(), ids=FOUND)
def test_what_is_found(starting: Starting, state: Snapshot, engine: dict[str, Any], whats: list[str]) -> None:
    with starting(state, **engine) as live:
        found = findings(live)
    assert [what in one for what, one in zip(whats, found, strict=True)] == [True] * len(whats), found


def test_units_lost_while_the_engine_started(starting: Starting) -> None:
    """The proxy was away at some earlier start, and has answered since; what is disabled, it did report."""

    def lose(engine: Engine) -> None:
        units = engine._backend.state.units
        units.update({one: replace(unit, enabled=False) for one, unit in units.items() if not unit.internal})

    state = blue(filters=("AffinityFilter",))
    with proxy_url(os.environ) as url, starting(state, proxy=url, prepare=lose) as live:
        lost, *_ = findings(live, "--proxy", url)
        status = live.data(1, "status")
    assert lost.startswith("the engine has disabled policy units that the proxy reported to it at 20")
    assert ("AffinityFilter" in lost, "could not reach" in lost) == (True, False)
    reason = "cluster blue: the engine has disabled AffinityFilter of its policy, and places VMs without it"
    said = f"{reason} (ovirt-placement doctor)"
    assert (status["health"], status["reasons"][0]) == ("unhealthy", said)
    assert status["clusters"][0]["disabled_units"] == ["AffinityFilter"]
    with starting(state, proxy=None) as live:
        assert "could not reach" not in findings(live)[0]


def test_some_units_unknown_and_some_disabled(starting: Starting, tmp_path: Path) -> None:
    shutil.copy(PLUGINS / "affinity.py", tmp_path)
    state = blue(filters=("HostAffinityFilter",))
    with proxy_url(os.environ, tmp_path) as url, starting(state, proxy=url) as live:
        unknown = (
            "PlacementRuleFilter, HostAffinityWeight, PlacementRuleWeight, HaReservationWeight,"
            " HaReservationBalance"
        )
        assert findings(live)[:2] == [
            f"the engine does not know these policy units: {unknown}",
            "the engine has disabled policy units that the proxy did not offer: HostAffinityFilter",
        ]
        lacking = f"the proxy at {url.rstrip('/')} does not offer: "
        assert any(what.startswith(lacking) for what in findings(live, "--proxy", url))


def test_proxy_that_is_away_or_no_proxy(starting: Starting, proxy: str) -> None:
    with starting(EMPTY) as live:
        for address in (AWAY["proxy"], live.server.url, "localhost"):
            (what,) = findings(live, "--proxy", address)
            named = "an address that is none" if address == "localhost" else address.rstrip("/")
            assert what.startswith(f"the proxy at {named} does not answer as a scheduler proxy")


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


def test_proxy_whose_units_changed_since_the_engine_started(starting: Starting, tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    folder.mkdir()
    other = 'PARAMETERS["AffinityFilter"]', '"AffinityFilter_Lacking=(report|reject)"'
    for file in PLUGINS.glob("*.py"):
        (folder / file.name).write_text(file.read_text().replace(*other))
    for name in ("Rack", "Row"):
        (folder / f"{name.lower()}.py").write_text(
            f"class {name}:\n    def do_filter(self, hosts, vm, args):\n        print(hosts)\n"
        )
    with starting(EMPTY) as live, proxy_url(os.environ, folder) as url:
        changed = "AffinityFilter (AffinityFilter_Lacking, affinity_missing_unit)"
        assert findings(live, "--proxy", url) == [
            "the engine does not know units that the proxy offers: Rack, Row",
            f"units have other properties in the engine than in the proxy: {changed}",
        ]


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
    state = by_keys(factor=0)
    with starting(replace(state, clusters=(*state.clusters, cluster("c2", name="red"))), proxy=None) as live:
        set_key(tmp_path)
        (what,) = (what for what in findings(live) if what.startswith("cluster "))
    assert what.startswith("cluster blue: not all of its placement keys count")
    assert what.endswith("has no PlacementKeyWeight in effect")


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


@pytest.mark.parametrize(("factor", "reported"), [(268, True), (269, False)])
def test_factor_that_other_weights_can_outvote(starting: Starting, factor: int, reported: bool) -> None:
    """The usual other weights sum up to 134; on three hosts each can be two ranks apart."""
    with starting(by_keys(factor)) as live:
        out = " ".join(findings(live))
    assert ("PlacementKeyWeight has the factor 268, and with 3 hosts it takes 269" in out) is reported


def test_factor_of_setup_suffices(starting: Starting) -> None:
    hosts = (host(f"h{number}", cluster="c1") for number in range(500))
    with starting(snapshot(cluster("c1", name="blue"), *hosts)) as live:
        live.run(0, "setup --cluster blue --placement-keys")
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
    reply = (404, b"") if declared is None else (200, option.encode())
    with engine_answering(lambda path: reply if path == "/options/UserDefinedVMProperties" else None) as (
        _,
        asked,
    ):
        clusters = [cluster(f"c{version}", compatibility=version) for version in versions]
        return [(each.sentence, each.remedy) for each in policies.examine_property(asked, clusters)]


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
