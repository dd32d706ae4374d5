"""`ovirt-placement keys import` and `export`: many keys at once, all or none, and back again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.placement.cli.keys.changing import STATE as STATE
from tests.placement.cli.keys.changing import listed, refused
from tests.placement.cli.live_engine import LiveEngine

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
