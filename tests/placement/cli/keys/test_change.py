"""`ovirt-placement keys` that changes keys one by one, against a simulated engine and a store."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ovirt_placement.model import Disk, Network, Nic, VnicProfile
from tests.builders import cluster, host, snapshot, vm
from tests.placement.cli.keys.changing import STATE, TEMPLATE, listed, refused
from tests.placement.cli.live_engine import LiveEngine, Starting


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
