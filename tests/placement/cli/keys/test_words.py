"""Odd names and numbers in `ovirt-placement keys`, and what is said of those that cannot be."""

from pathlib import Path

import pytest

from tests.builders import cluster, host, snapshot, vm
from tests.placement.cli.live_engine import LiveEngine

STATE = snapshot(
    cluster("c1", name="blue moon"),
    cluster("c2", name="empty"),
    host("h1", name="a=b", cluster="c1"),
    host("h2", name="südlich", cluster="c1"),
    vm("v1", name='Anna\'s "web" ü', cluster="c1"),
    vm("v2", name="twin", cluster="c1"),
    vm("v3", name="twin", cluster="c1"),
)


@pytest.mark.parametrize(
    "name", ["two words", "dürfen-wir", "o'clock", '"quoted"', "a=b:c,d;e", "-x", "名前"]
)
def test_a_name_may_be_any_text(live: LiveEngine, name: str, tmp_path: Path) -> None:
    where = ("--on", "server", 'Anna\'s "web" ü')
    live.run(0, "keys", "set", *where, "--", name, "1", "5")
    (key,) = live.data(0, "keys", "list", f"--name={name}")["keys"]
    assert (key["name"], key["place"]) == (name, 'server Anna\'s "web" ü')
    file = tmp_path / "keys.yaml"
    file.write_text(live.run(0, "keys", "export")[0])
    live.run(0, "keys", "unset", *where, "--", name)
    live.run(0, "keys", "import", str(file))
    assert [one["name"] for one in live.data(0, "keys", "list")["keys"]] == [name]


def test_values_and_weights_may_be_negative(live: LiveEngine) -> None:
    out, _ = live.run(0, "keys", "set", "G", "-1", "-0.5", "--on", "cluster", "blue moon")
    assert out.startswith("set cluster blue moon: system key G: -1 (-0.5)\n")
    out, _ = live.run(0, "keys", "define", "H", "--cluster", "c1", "--values", "a=b=-2", "--default", "-1")
    assert out.startswith("set node a=b: system key H: -2\nset node südlich: system key H: -1\n")


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
    row = live.run(0, "keys", "list")[0].splitlines()[2].split("  ")
    assert [cell.strip() for cell in row if cell][3:5] == [shown, shown]
    assert live.data(0, "keys", "list")["keys"][0]["value"] == float(value)


def test_whole_numbers_are_shown_in_full_by_the_questions_too(live: LiveEngine) -> None:
    live.run(0, "keys", "set", "OWNER", "1234567", "50", "--on", "server", "v1")
    live.run(0, "keys", "define", "OWNER", "--cluster", "c1", "--default", "1234567")
    assert "OWNER  1234567  50" in live.run(0, "keys", "show", "v1")[0]
    assert "OWNER  1234567" in live.run(0, "keys", "show", "a=b")[0]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("set G 1 heavy --on server v1", 'the weight "heavy" is no number'),
        ("set G 1 nan --on server v1", 'the weight "nan" is no number'),
        ("set G 1 1e999 --on server v1", 'the weight "1e999" is no number'),
        ("set G 1 1_0 --on server v1", 'the weight "1_0" is no number'),
        (f"set G {'9' * 400} 1 --on server v1", "value-not-numeric: its value is no number"),
        ("set #RAM_RATIO 0 --on node h2", "ratio-out-of-range: a contention ratio is greater than 0 and"),
        ("set #RAM_RATIO 1000 --on node h2", "ratio-out-of-range"),
        ("set #RAM_RATIO much --on node h2", "value-not-numeric"),
        ("set #RAM_RATIO 1.5 --on node h2 --as customer", "customer-key-not-allowed-here"),
        ("set #RAM_RATIO 1.5 9 --on cluster c1", "only #RAM, #CPU and #LOAD, and on hosts #RAM_RATIO"),
        ("define G --cluster c1 --default 1 --sticky much", 'the weight "much" is no number'),
        ("define G --cluster empty --default 1", "cluster empty has no hosts to give a key"),
        ("define G --cluster c1 --values a=b=1 h1=2 --default 1", "a=b is given two values"),
        ("set G 1 5 --on server twin", 'server "twin" is ambiguous: say v2 (down) or v3 (down)'),
        ("set G 1 5 --on server server v1", "unrecognized arguments"),
        ("set G 1 5 --on customer acme", "the id of a user or group, or tag a VM pk-customer-NAME first"),
        ("list --on nod", 'unknown level "nod"; did you mean "node"?'),
        ("list --on node h9", 'no host "h9"'),
        ("list --on node h1 h2", "a level and one object were expected, not node h1 h2"),
        ("show twin", 'VM or host "twin" is ambiguous: say v2 (down) or v3 (down)'),
        ("explain v9", 'no VM "v9"'),
        ("check --keys nowhere.yaml", "nowhere.yaml: cannot read the keys: No such file or directory"),
        ("export --state nowhere.json", "nowhere.json: cannot read the state file: No such file or"),
        ("import nowhere.yaml", "nowhere.yaml: cannot read the keys: No such file or directory"),
        ("set G\udcff 1 5 --on server v1", "'G\\udcff' holds characters that cannot be seen"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said_and_ends_with_2(
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
    assert live.data(0, "keys", "list")["keys"] == []


def test_a_key_of_another_party_is_hinted_at(live: LiveEngine) -> None:
    live.run(0, "keys", "set", "G", "1", "5", "--on", "server", "v1", "--as", "customer")
    _, err = live.run(2, "keys", "unset", "G", "--on", "server", "v1")
    assert 'no system key "G" is set there; there is one --as customer' in err
    _, err = live.run(2, "keys", "unset", "H", "--on", "server", "v1")
    assert err.endswith('no system key "H" is set there\n')


def test_a_vm_and_a_host_are_levels_on_the_command_line(live: LiveEngine) -> None:
    live.run(0, "keys", "set", "RACK", "1", "5", "--on", "vm", "v1")
    live.run(0, "keys", "define", "RACK", "--cluster", "c1", "--default", "2")
    for word, level in (("vm", "server"), ("host", "node")):
        keys = live.data(0, "keys", "list", "--on", word)["keys"]
        assert keys
        assert {key["level"] for key in keys} == {level}
