"""`ovirt-placement keys` that changes keys, one by one or as files have them, on an engine and a store."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ovirt_placement.model import Disk, Network, Nic, Snapshot, VnicProfile
from tests import builders as build
from tests.builders import cluster, host, snapshot, vm
from tests.placement.cli.live_engine import LiveEngine, Starting

# -- A small state to set keys in, and what there is to see after a change of them.
TEMPLATE = "12345678-0000-4000-8000-000000000001"
STATE = snapshot(
    cluster("c1", name="blue"),
    cluster("c2", name="red"),
    host("h1", name="north", cluster="c1"),
    host("h2", name="south", cluster="c1"),
    host("h3", name="east", cluster="c2"),
    vm("v1", name="web", cluster="c1"),
    vm("v2", "h1", name="cache", cluster="c1"),
)


def listed(live: LiveEngine) -> list[tuple[Any, ...]]:
    """What is set: on what, whose, its name, value, weight and sticky flag."""
    fields = ("place", "class", "name", "value", "weight", "sticky")
    return [tuple(key[field] for field in fields) for key in live.data(0, "keys", "list")["keys"]]


def refused(live: LiveEngine, *arguments: str) -> str:
    """What is said of a change that must not be made."""
    before = listed(live)
    _, err = live.run(2, "keys", *arguments)
    assert err.count("\n") == 1
    assert listed(live) == before
    return err.removeprefix("ovirt-placement: ").strip()


# -- `ovirt-placement keys` that changes keys one by one, against a simulated engine and a store.
def test_key_is_set_with_who_and_when_and_replaced_and_removed(live: LiveEngine) -> None:
    out, _ = live.run(0, "keys", "set", "GEN", "0.5", "-60", "--on", "cluster", "blue")
    assert out.startswith(
        "set cluster blue: system key GEN: 0.5 (-60)\nnote: no effect: the policy of cluster"
    )
    (key,) = live.data(0, "keys", "list")["keys"]
    assert key["set_by"]
    assert key["set_at"].endswith("+00:00")
    live.run(0, "keys", "set", "GEN", "1", "20", "--on", "cluster", "c1")
    live.run(0, "keys", "set", "GEN", "2", "5", "--on", "server", "web", "--as", "customer")
    assert listed(live) == [
        ("cluster blue", "system", "GEN", 1.0, 20.0, False),
        ("server web", "customer", "GEN", 2.0, 5.0, False),
    ]
    reported = live.data(0, "keys", "unset", "GEN", "--on", "cluster", "blue")
    assert [key["place"] for key in reported["unset"]] == ["cluster blue"]
    assert len(listed(live)) == 1


def test_table_reports_who_set_a_key_and_when(live: LiveEngine) -> None:
    live.run(0, "keys", "set", "GEN", "1", "20", "--on", "image", TEMPLATE)
    title, _, row = live.run(0, "keys", "list")[0].splitlines()
    assert title.split()[-4:] == ["set", "by", "set", "at"]
    assert row.split()[:7] == ["image", TEMPLATE, "system", "GEN", "1", "20", "placement"]
    assert len(row.split()) == 9


@pytest.mark.system
def test_key_of_hosts_exists_on_all_of_a_cluster_or_on_none(live: LiveEngine) -> None:
    assert refused(live, "define", "SAN", "--cluster", "blue", "--values", "north=1") == (
        "cluster blue: node-key-set-differs: SAN needs a value on every host: give south one, or all that"
        " are not named by --default"
    )
    assert refused(live, "set", "SAN", "1", "--on", "node", "north").startswith(
        "host south: node-key-set-differs:"
    )
    words = "keys define SAN --cluster blue --values north=2 --default 1 --sticky 60"
    live.run(0, *words.split())
    assert listed(live) == [
        ("node north", "system", "SAN", 2.0, 60.0, True),
        ("node south", "system", "SAN", 1.0, 60.0, True),
    ]
    live.run(0, "keys", "set", "SAN", "3", "--on", "node", "south")
    assert listed(live)[1] == ("node south", "system", "SAN", 3.0, 60.0, True)
    assert refused(live, "unset", "SAN", "--on", "node", "south").startswith(
        "host south: node-key-set-differs:"
    )
    live.run(0, "keys", "unset", "SAN", "--cluster", "blue")
    assert listed(live) == []


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("set G 1 5 --on sever web", 'unknown level "sever"; did you mean "server"?'),
        ("set G 1 5 --on server wep", 'no VM "wep"; did you mean "web"?'),
        ("set G 1 5 --on image windows", 'no image "windows"; give its id'),
        ("define G --cluster blue --values nort=1", 'no host of cluster blue "nort"; did you mean "north"?'),
        ("define G --cluster blue --values north", '"north": write it as HOST=VALUE'),
        ("unset G --on server web", 'no system key "G" is set there'),
    ],
)
def test_what_is_not_known_is_refused_with_what_would_be_right(
    live: LiveEngine, arguments: str, complaint: str
) -> None:
    assert refused(live, *arguments.split()) == complaint


def test_show_explain_and_check_see_what_the_store_holds(live: LiveEngine) -> None:
    live.run(0, "keys", "define", "GEN", "--cluster", "blue", "--values", "north=1", "south=0.5")
    live.run(0, "keys", "set", "GEN", "1", "60", "--on", "cluster", "blue")
    assert live.data(0, "keys", "show", "web")["system"]["GEN"]["weight"] == 60
    explained = live.data(0, "keys", "explain", "web")
    assert {one["host"]: one["system"]["total"] for one in explained["hosts"]} == {"h1": 60, "h2": 30}
    assert (explained["round"], explained["choice"]) == (4, ["h1"])
    unheeded = "no effect: the policy of cluster blue has no PlacementKeyFilter and no PlacementKeyWeight"
    assert live.run(0, "keys", "check")[0] == f"{unheeded} (ovirt-placement setup --placement-keys)\n"
    assert unheeded in live.run(0, "keys", "explain", "web")[0]
    assert unheeded in live.run(0, "keys", "set", "GEN", "1", "60", "--on", "vm", "web", "--what-if")[0]


def test_keys_of_a_vm_that_is_gone_can_be_seen_and_removed(serving: Starting) -> None:
    with serving(STATE) as live:
        live.run(0, "keys", "set", "G", "1", "5", "--on", "server", "web")
    with serving(snapshot(*STATE.clusters, *STATE.hosts)) as live:
        assert [key[0] for key in listed(live)] == ["server v1"]
        assert "v1" not in live.run(0, "keys", "export")[0]
        live.run(0, "keys", "unset", "G", "--on", "server", "v1")
        assert listed(live) == []


def test_bad_property_of_a_vm_is_reported_and_stops_nothing(serving: Starting) -> None:
    typed = vm("v3", name="typo", cluster="c1", custom_properties={"placement_keys": "Repel1=1"})
    parts = (*STATE.clusters, *STATE.hosts, *STATE.vms, typed)
    with serving(snapshot(*parts)) as live:
        (mistake,) = live.data(1, "keys", "check")["mistakes"]
        assert mistake["where"] == "VM typo: custom property placement_keys"
        assert mistake["codes"] == ["property-unreadable"]
        assert set(live.data(0, "keys", "explain", "typo")["choice"]) == {"h1", "h2"}


def test_what_a_vm_is_made_of_is_found_by_name_or_id(serving: Starting) -> None:
    profile = VnicProfile(id="p1", name="fast", network="n1")
    made = vm(
        "v3",
        name="made",
        cluster="c1",
        template=TEMPLATE,
        disks=(Disk(id="d1", bootable=True),),
        nics=(Nic(id="i1", name="nic1", vnic_profile="p1"),),
    )
    parts = snapshot(*STATE.clusters, *STATE.hosts, made)
    world = replace(parts, networks=(Network(id="n1", name="lan"),), vnic_profiles=(profile,))
    with serving(world) as live:
        for name, level, word in (
            ("A", "image", TEMPLATE),
            ("B", "disk", "d1"),
            ("C", "network", "lan"),
            ("D", "nic_offer", "fast"),
            ("E", "nic", "made/nic1"),
        ):
            live.run(0, "keys", "set", name, "1", "5", "--on", level, word)
        resources = {key["name"]: key["resource"] for key in live.data(0, "keys", "list")["keys"]}
        assert resources == {"A": TEMPLATE, "B": "d1", "C": "n1", "D": "p1", "E": "i1"}
        assert "A" in live.data(0, "keys", "show", "made")["system"]


def test_a_change_of_many_hosts_is_reported_in_few_lines(serving: Starting) -> None:
    """JSON has all of it."""
    hosts = [host(f"h{number}", cluster="c1") for number in range(30)]
    with serving(snapshot(cluster("c1", name="blue"), *hosts)) as live:
        out, _ = live.run(0, "keys", "define", "GEN", "--cluster", "blue", "--default", "1")
        assert len(out.splitlines()) == 22
        assert out.splitlines()[-2].startswith("... and 10 more:")
        assert out.splitlines()[-1].startswith("note: no effect: the policy of cluster blue has no")
        assert len(live.data(0, "keys", "define", "GEN", "--cluster", "blue", "--default", "2")["set"]) == 30


# -- `ovirt-placement keys import` and `export`: many keys at once, all or none, and back again.
FILE = """\
node_keys:
  - {cluster: blue, name: SAN, values: {north: 1, south: 2}, weight: 60, sticky: true}
keys:
  - {level: cluster, resource: blue, name: GEN, value: 1, weight: 50}
  - {level: server, resource: web, class: customer, name: Repel1, value: 1, weight: -100}
"""


def written(folder: Path, text: str) -> str:
    file = folder / "keys.yaml"
    file.write_text(text)
    return str(file)


@pytest.mark.system
def test_import_sets_keys_and_leaves_others_unless_asked_to_replace(live: LiveEngine, tmp_path: Path) -> None:
    live.run(0, "keys", "set", "OLD", "1", "5", "--on", "server", "cache")
    live.run(0, "keys", "set", "OLD", "1", "5", "--on", "server", "cache", "--as", "customer")
    live.run(0, "keys", "import", written(tmp_path, FILE))
    names = [key[2] for key in listed(live)]
    assert sorted(names) == ["GEN", "OLD", "OLD", "Repel1", "SAN", "SAN"]
    mine = "keys: [{level: server, resource: web, name: NEW, value: 1, weight: 5}]"
    live.run(0, "keys", "import", written(tmp_path, mine), "--as", "customer", "--replace")
    assert [key[2] for key in listed(live) if key[1] == "customer"] == ["NEW"]
    assert len(listed(live)) == 5
    reported = live.data(0, "keys", "import", written(tmp_path, FILE), "--replace")
    assert sorted(key["name"] for key in reported["unset"]) == ["NEW", "OLD"]
    assert sorted(key[2] for key in listed(live)) == ["GEN", "Repel1", "SAN", "SAN"]


RIGHT = "{level: server, resource: web, name: A, value: 1, weight: 5}"
#: A right key comes first: it must not be set either.
BAD = [
    (
        "{level: cluster, resource: blue, class: customer, name: B, value: 1, weight: 5}",
        "cluster blue: customer key B: customer-key-not-allowed-here: ",
    ),
    (
        "{level: server, resource: web, name: _B, value: x, weight: 5}",
        "server web: system key _B: value-not-numeric, reserved-as-system: ",
    ),
    ("{level: node, resource: north, name: B, value: 1}", "host south: node-key-set-differs: "),
    ("{level: server, resource: wep, name: B, value: 1, weight: 5}", 'keys[1].resource: no VM "wep"'),
    (RIGHT, 'keys[1]: "A" is set there by keys[0] already'),
]


@pytest.mark.parametrize(("text", "complaint"), BAD)
def test_import_of_one_wrong_key_imports_none(
    live: LiveEngine, tmp_path: Path, text: str, complaint: str
) -> None:
    assert complaint in refused(live, "import", written(tmp_path, f"keys: [{RIGHT}, {text}]"))


def test_import_as_somebody_takes_keys_of_that_class_only(live: LiveEngine, tmp_path: Path) -> None:
    file = written(tmp_path, FILE)
    assert "with --as customer only keys of class customer" in refused(
        live, "import", file, "--as", "customer"
    )
    assert "with --as operator only keys of class system" in refused(live, "import", file, "--as", "operator")
    on_cluster = "keys: [{level: cluster, resource: blue, name: A, value: 1, weight: 5}]"
    assert "customer-key-not-allowed-here" in refused(
        live, "import", written(tmp_path, on_cluster), "--as", "customer"
    )
    live.run(0, "keys", "import", written(tmp_path, on_cluster), "--as", "billing-entity")
    assert [key[1] for key in listed(live)] == ["be"]


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_what_is_exported_can_be_imported(live: LiveEngine, tmp_path: Path, form: tuple[str, ...]) -> None:
    live.run(0, "keys", "import", written(tmp_path, FILE))
    before = listed(live)
    exported, _ = live.run(0, "keys", "export", *form)
    live.run(0, "keys", "unset", "SAN", "--cluster", "blue")
    live.run(0, "keys", "set", "OTHER", "1", "5", "--on", "server", "web")
    live.run(0, "keys", "import", written(tmp_path, exported), "--replace")
    assert listed(live) == before


# -- A file of keys is tried on a live engine, also where it refers to what no key that is set refers to.
KEYS = """\
node_keys:
  - {cluster: cluster1, name: FAST, values: {h1: 0, h2: 1}}
keys:
  - {level: LEVEL, resource: RESOURCE, class: system, name: FAST, value: 1, weight: 80}
"""


def state() -> Snapshot:
    vm = build.vm(
        "v",
        owner="ann",
        disks=(Disk(id="d", bootable=True, profile="gold"),),
        nics=(Nic(id="n", name="nic1", vnic_profile="p"),),
    )
    return replace(
        build.snapshot(build.host("h1"), build.host("h2"), vm),
        networks=(Network(id="net", name="front"),),
        vnic_profiles=(VnicProfile(id="p", name="profile", network="net"),),
    )


@pytest.mark.parametrize(
    ("level", "resource"),
    [
        ("customer", "ann"),
        ("disk_offer", "gold"),
        ("disk", "d"),
        ("network", "front"),
        ("nic_offer", "profile"),
        ("nic", "v/nic1"),
    ],
)
def test_keys_of_a_file_find_what_they_refer_to(
    level: str,
    resource: str,
    serving: Starting,
    tmp_path: Path,
) -> None:
    file = tmp_path / "keys.yaml"
    file.write_text(KEYS.replace("LEVEL", level).replace("RESOURCE", resource))
    with serving(state()) as live:
        assert live.data(0, "keys", "explain", "v", "--keys", str(file))["choice"] == ["h2"]
        # None of them was set.
        assert live.data(0, "keys", "explain", "v")["choice"] == ["h1", "h2"]
