"""`ovirt-placement keys` that changes keys, one by one or as files have them, on an engine and a store."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ovirt_placement.model import Disk, Network, Nic, Snapshot, VnicProfile
from tests.builders import cluster, host, snapshot, vm
from tests.placement.cli.live_engine import LiveEngine, Starting

IMAGE = "12345678-0000-4000-8000-000000000001"
ODD = 'Anna\'s "web" ü'
STATE = snapshot(
    cluster("c1", name="blue"),
    cluster("c2", name="red moon"),
    cluster("c3", name="empty"),
    host("h1", name="north", cluster="c1"),
    host("h2", name="south", cluster="c1"),
    host("h3", name="a=b", cluster="c2"),
    host("h4", name="südlich", cluster="c2"),
    vm("v1", name="web", cluster="c1"),
    vm("v2", "h1", name="cache", cluster="c1"),
    vm("v3", name=ODD, cluster="c2"),
    vm("v4", name="twin", cluster="c1"),
    vm("v5", name="twin", cluster="c1"),
)


def listed(live: LiveEngine) -> list[tuple[Any, ...]]:
    """What is set: on what, whose, its name, value, weight and sticky flag; each has who did it, and when."""
    fields, keys = ("place", "class", "name", "value", "weight", "sticky"), live.data(0, "keys list")["keys"]
    assert all(key["set_by"] and key["set_at"].endswith("+00:00") for key in keys)
    return [tuple(key[field] for field in fields) for key in keys]


def refused(live: LiveEngine, *arguments: str) -> str:
    """What is said of a change that must not be made."""
    before = listed(live)
    _, err = live.run(2, "keys", *arguments)
    assert err.count("\n") == 1
    assert listed(live) == before
    return err.removeprefix("ovirt-placement: ").strip()


# -- Keys that are set one by one.
def test_key_is_set_with_who_and_when_and_replaced_and_removed(live: LiveEngine) -> None:
    live.run(0, "keys set GEN 0.5 -60 --on cluster blue")
    title, _, row = live.run(0, "keys list")[0].splitlines()
    assert title.split()[-4:] == ["set", "by", "set", "at"]
    assert row.split()[:7] == ["cluster", "blue", "system", "GEN", "0.5", "-60", "placement"]
    assert len(row.split()) == 9
    live.run(0, "keys set GEN 1 20 --on cluster c1")
    live.run(0, "keys set GEN 2 5 --on server web --as customer")
    on_server = ("server web", "customer", "GEN", 2.0, 5.0, False)
    assert listed(live) == [("cluster blue", "system", "GEN", 1.0, 20.0, False), on_server]
    reported = live.data(0, "keys unset GEN --on cluster blue")
    assert [key["place"] for key in reported["unset"]] == ["cluster blue"]
    assert listed(live) == [on_server]


@pytest.mark.system
def test_key_of_hosts_exists_on_all_of_a_cluster_or_on_none(live: LiveEngine) -> None:
    assert refused(live, "define", "SAN", "--cluster", "blue", "--values", "north=1") == (
        "cluster blue: node-key-set-differs: SAN needs a value on every host: give south one, or all that"
        " are not named by --default"
    )
    differs = "host south: node-key-set-differs:"
    assert refused(live, "set", "SAN", "1", "--on", "node", "north").startswith(differs)
    words = "keys define SAN --cluster blue --values north=2 --default 1 --sticky 60"
    live.run(0, *words.split())
    for given, expected in (((), (1.0, 60.0)), (("3",), (3.0, 60.0)), (("3", "70"), (3.0, 70.0))):
        if given:
            live.run(0, "keys", "set", "SAN", *given, "--on", "node", "south")
        assert listed(live) == [
            ("node north", "system", "SAN", 2.0, 60.0, True),
            ("node south", "system", "SAN", *expected, True),
        ]
    assert refused(live, "unset", "SAN", "--on", "node", "south").startswith(differs)
    live.run(0, "keys unset SAN --cluster blue")
    assert listed(live) == []


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("set G 1 5 --on sever web", 'unknown level "sever"; did you mean "server"?'),
        ("set G 1 5 --on server wep", 'no VM "wep"; did you mean "web"?'),
        ("set G 1 5 --on image windows", 'no image "windows"; give its id'),
        ("set G 1 heavy --on server v1", 'the weight "heavy" is no number'),
        ("set G 1 nan --on server v1", 'the weight "nan" is no number'),
        (f"set G {'9' * 400} 1 --on server v1", "value-not-numeric: its value is no number"),
        ("set G 1 5 --on node h1", "keys of hosts have no weight, unless they are sticky"),
        ("set #RAM_RATIO 0 --on node h2", "ratio-out-of-range: a contention ratio is greater than 0 and"),
        ("set #RAM_RATIO 1.5 9 --on cluster c1", "only #RAM, #CPU and #LOAD, and on hosts #RAM_RATIO"),
        ("set G 1 5 --on server twin", 'server "twin" is ambiguous: say v4 (down) or v5 (down)'),
        ("set G 1 5 --on server server v1", "unrecognized arguments"),
        ("set G 1 5 --on customer acme", "the id of a user or group, or tag a VM pk-customer-NAME first"),
        ("set G\udcff 1 5 --on server v1", "'G\\udcff' holds characters that cannot be seen"),
        ("define G --cluster blue --values nort=1", 'no host of cluster blue "nort"; did you mean "north"?'),
        ("define G --cluster blue --values north", '"north": write it as HOST=VALUE'),
        ("define G --cluster c1 --default 1 --sticky much", 'the weight "much" is no number'),
        ("define G --cluster empty --default 1", "cluster empty has no hosts to give a key"),
        ("define G --cluster c2 --values a=b=1 h3=2 --default 1", "a=b is given two values"),
        ("unset G --on server web", 'no system key "G" is set there'),
        ("list --on nod", 'unknown level "nod"; did you mean "node"?'),
        ("list --on node h9", 'no host "h9"'),
        ("list --on node h1 h2", "a level and one object were expected, not node h1 h2"),
        ("show twin", 'VM or host "twin" is ambiguous: say v4 (down) or v5 (down)'),
        ("explain v9", 'no VM "v9"'),
        ("check --keys nowhere.yaml", "nowhere.yaml: cannot read the keys: No such file or directory"),
        ("export --state nowhere.json", "nowhere.json: cannot read the state file: No such file or"),
    ],
)
def test_what_cannot_be_is_said_with_what_would_be_right_and_ends_with_2(
    live: LiveEngine, arguments: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status, _, err = live.outcome("keys", *arguments.split())
    except SystemExit as end:  # the arguments themselves are wrong
        status, err = end.code, capsys.readouterr().err
    else:
        assert err.count("\n") == 1
    assert status == 2
    assert complaint in err
    assert listed(live) == []


def test_a_key_of_another_party_is_hinted_at(live: LiveEngine) -> None:
    live.run(0, "keys set G 1 5 --on server v1 --as customer")
    hint = 'no system key "G" is set there; there is one --as customer'
    assert hint in refused(live, "unset", "G", "--on", "server", "v1")
    assert refused(live, "unset", "H", "--on", "server", "v1").endswith('no system key "H" is set there')


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("set G -1 -0.5 --on cluster c2", "set cluster red moon: system key G: -1 (-0.5)\n"),
        ("define H --cluster c2 --values a=b=-2 --default -1",
         "set node a=b: system key H: -2\nset node südlich: system key H: -1\n"),
        (f"set GEN 1 20 --on image {IMAGE}", f"set image {IMAGE}: system key GEN: 1 (20)\n"),  # of no VM
        ("set RACK 1 5 --on vm v1", "set server web: system key RACK: 1 (5)\n"),
        ("define RACK --cluster c1 --default 2", "set node north: system key RACK: 2\nset node south: "),
    ],
)  # fmt: skip
def test_what_is_set_is_said_and_once(live: LiveEngine, arguments: str, said: str) -> None:
    """Values and weights may be negative; a VM and a host are levels on the command line."""
    for expected in (said, "Nothing to change.\n"):
        assert live.run(0, "keys", *arguments.split())[0].startswith(expected)
    word = "host" if "define" in arguments else arguments.split()[-2]
    assert {key["level"] for key in live.data(0, "keys", "list", "--on", word)["keys"]} == {
        {"vm": "server", "host": "node"}.get(word, word)
    }


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("1234567", "1234567"),
        ("123456789012345", "123456789012345"),
        ("0.1234567", "0.1234567"),
        ("1e5", "100000"),
        ("+2", "2"),
        (" 2 ", "2"),
        (".5", "0.5"),
        ("1e99", "1e+99"),
    ],
)
def test_numbers_are_shown_with_all_their_digits(live: LiveEngine, value: str, shown: str) -> None:
    live.run(0, "keys", "set", "G", value, value, "--on", "server", "v1")
    row = live.run(0, "keys list")[0].splitlines()[2].split("  ")
    assert [cell.strip() for cell in row if cell][3:5] == [shown, shown]
    assert live.data(0, "keys list")["keys"][0]["value"] == float(value)


def test_whole_numbers_are_shown_in_full_by_the_questions_too(live: LiveEngine) -> None:
    live.run(0, "keys set OWNER 1234567 50 --on server v1")
    live.run(0, "keys define OWNER --cluster c1 --default 1234567")
    assert "OWNER  1234567  50" in live.run(0, "keys show v1")[0]
    assert "OWNER  1234567" in live.run(0, "keys show north")[0]


def test_keys_without_effect_are_said_to_have_none(live: LiveEngine) -> None:
    setting = ("keys", "set", "GEN", "1", "60", "--on", "cluster", "blue")
    live.run(0, "keys define GEN --cluster blue --default 1")
    live.run(0, *setting)
    unheeded = "no effect: the policy of cluster blue has no PlacementKeyFilter and no PlacementKeyWeight"
    assert live.run(0, "keys check")[0] == f"{unheeded} (ovirt-placement setup --placement-keys)\n"
    for command in (("keys", "explain", "web"), (*setting, "--what-if")):
        assert unheeded in live.run(0, *command)[0]


def test_keys_of_a_vm_that_is_gone_can_be_seen_and_removed(serving: Starting) -> None:
    with serving(STATE) as live:
        live.run(0, "keys set G 1 5 --on server web")
    with serving(snapshot(*STATE.clusters, *STATE.hosts)) as live:
        assert [key[0] for key in listed(live)] == ["server v1"]
        assert "v1" not in live.run(0, "keys export")[0]
        live.run(0, "keys unset G --on server v1")
        assert listed(live) == []


def test_keys_of_a_customer_without_vms_are_imported_again(serving: Starting, tmp_path: Path) -> None:
    with serving(
        snapshot(*STATE.clusters, vm("v1", name="web", cluster="c1", tags=("pk-customer-acme",)))
    ) as live:
        live.run(0, "keys set G 1 5 --on customer acme")
    with serving(STATE) as live:
        before, exported = listed(live), live.run(0, "keys export")[0]
        assert live.run(0, "keys", "import", written(tmp_path, exported))[0].startswith(
            "Nothing to change.\n"
        )
        live.run(0, "keys set G 2 5 --on customer acme")
        live.run(0, "keys", "import", written(tmp_path, exported))
        assert before == listed(live) != []


# -- Files: many keys at once, all or none, and back again.
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
    def names(*classes: str) -> list[str]:
        return sorted(key[2] for key in listed(live) if not classes or key[1] in classes)

    for setter in ((), ("--as", "customer")):
        live.run(0, "keys", "set", "OLD", "1", "5", "--on", "server", "cache", *setter)
    live.run(0, "keys", "import", written(tmp_path, FILE))
    assert names() == ["GEN", "OLD", "OLD", "Repel1", "SAN", "SAN"]
    mine = "keys: [{level: server, resource: web, name: NEW, value: 1, weight: 5}]"
    live.run(0, "keys", "import", written(tmp_path, mine), "--as", "customer", "--replace")
    assert (names("customer"), len(names())) == (["NEW"], 5)
    reported = live.data(0, "keys", "import", written(tmp_path, FILE), "--replace")
    assert sorted(key["name"] for key in reported["unset"]) == ["NEW", "OLD"]
    assert names() == ["GEN", "Repel1", "SAN", "SAN"]
    live.run(0, "keys", "import", written(tmp_path, f"keys: [{ON_CLUSTER}]"), "--as", "billing-entity")
    assert names("be") == ["A"]


ON_CLUSTER = "{level: cluster, resource: blue, name: A, value: 1, weight: 5}"
RIGHT = "{level: server, resource: web, name: A, value: 1, weight: 5}"


@pytest.mark.parametrize(
    ("setter", "text", "complaint"),
    [
        ("", "{level: node, resource: north, name: B, value: 1}", "host south: node-key-set-differs: "),
        ("", RIGHT, 'keys[1]: "A" is set there by keys[0] already'),
        ("customer", RIGHT.replace("A", "B, class: system"), "only keys of class customer"),
        ("operator", RIGHT.replace("A", "B, class: customer"), "only keys of class system"),
        ("customer", ON_CLUSTER, "customer-key-not-allowed-here"),
    ],
)
def test_import_of_one_wrong_key_imports_none(
    live: LiveEngine, tmp_path: Path, setter: str, text: str, complaint: str
) -> None:
    """The right key that comes first is not set either."""
    setters = ("--as", setter) if setter else ()
    assert complaint in refused(live, "import", written(tmp_path, f"keys: [{RIGHT}, {text}]"), *setters)


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_what_is_exported_can_be_imported(live: LiveEngine, tmp_path: Path, form: tuple[str, ...]) -> None:
    live.run(0, "keys", "import", written(tmp_path, FILE))
    live.run(0, "keys set #RAM_RATIO 1.5 --on node south")
    before = listed(live)
    exported, _ = live.run(0, "keys", "export", *form)
    live.run(0, "keys unset SAN --cluster blue")
    live.run(0, "keys unset #RAM_RATIO --on node south")
    live.run(0, "keys set OTHER 1 5 --on server web")
    live.run(0, "keys", "import", written(tmp_path, exported), "--replace")
    assert listed(live) == before


@pytest.mark.parametrize(
    "name", ["two words", "dürfen-wir", "o'clock", '"quoted"', "a=b:c,d;e", "-x", "名前"]
)
def test_a_name_may_be_any_text(live: LiveEngine, name: str, tmp_path: Path) -> None:
    where = ("--on", "server", ODD)
    live.run(0, "keys", "set", *where, "--", name, "1", "5")
    (key,) = live.data(0, "keys", "list", f"--name={name}")["keys"]
    assert (key["name"], key["place"]) == (name, f"server {ODD}")
    exported, _ = live.run(0, "keys export")
    live.run(0, "keys", "unset", *where, "--", name)
    live.run(0, "keys", "import", written(tmp_path, exported))
    assert [one[2] for one in listed(live)] == [name]


# -- What a VM is made of is found by name or id, on the command line and in a file that is only tried.
KEYS = """\
node_keys:
  - {cluster: cluster1, name: FAST, values: {h1: 0, h2: 1}}
keys:
  - {level: LEVEL, resource: RESOURCE, class: system, name: FAST, value: 1, weight: 80}
"""


def made() -> Snapshot:
    disks, nics = (
        (Disk(id="d", bootable=True, profile="gold"),),
        (Nic(id="n", name="nic1", vnic_profile="p"),),
    )
    one = vm("v", owner="ann", template=IMAGE, disks=disks, nics=nics)
    return replace(
        snapshot(host("h1"), host("h2"), one),
        networks=(Network(id="net", name="front"),),
        vnic_profiles=(VnicProfile(id="p", name="profile", network="net"),),
    )


@pytest.mark.parametrize(
    ("level", "word", "resource"),
    [
        ("image", IMAGE, IMAGE),
        ("customer", "ann", "ann"),
        ("disk_offer", "gold", "gold"),
        ("disk", "d", "d"),
        ("network", "front", "net"),
        ("nic_offer", "profile", "p"),
        ("nic", "v/nic1", "n"),
    ],
)
def test_what_a_vm_is_made_of_is_found(
    level: str, word: str, resource: str, serving: Starting, tmp_path: Path
) -> None:
    file = written(tmp_path, KEYS.replace("LEVEL", level).replace("RESOURCE", word))
    with serving(made()) as live:
        assert live.data(0, "keys", "explain", "v", "--keys", file)["choice"] == ["h2"]
        assert live.data(0, "keys explain v")["choice"] == ["h1", "h2"], "none of them was set"
        live.run(0, "keys", "set", "A", "1", "5", "--on", level, word)
        assert [key["resource"] for key in live.data(0, "keys list")["keys"]] == [resource]
        assert "A" in live.data(0, "keys show v")["system"]
