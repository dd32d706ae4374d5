"""Who may set which keys where: each party, level and kind of key, by `keys set`, `define`, `import`.

The tables here are written from docs/placement-keys.md and share nothing with the rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from ovirt_placement.store.keys import KeyChange, KeyStore
from tests.builders import cluster, host, snapshot, vm
from tests.placement.cli.live_engine import LiveEngine, Starting

#: Of templates, quotas and the like anything passes for an id that looks like one.
ANY = "12345678-0000-4000-8000-000000000001"
STATE = snapshot(
    cluster("c1", name="blue"), host("h1", name="north", cluster="c1"), vm("v1", name="web", cluster="c1")
)
NAMED = {"cluster": "blue", "server": "web", "node": "north"}

SETTERS = {"system": "operator", "be": "billing-entity", "customer": "customer"}
ALL, OPERATOR_AND_RESELLER, OPERATOR = {"system", "be", "customer"}, {"system", "be"}, {"system"}

#: Whose keys each level takes.
TAKES = {
    "cluster": OPERATOR_AND_RESELLER,
    "billing_entity": OPERATOR_AND_RESELLER,
    "customer_offer": OPERATOR_AND_RESELLER,
    "customer": OPERATOR_AND_RESELLER,
    "image_offer": OPERATOR_AND_RESELLER,
    "image": ALL,
    "vdc_offer": OPERATOR_AND_RESELLER,
    "vdc": OPERATOR_AND_RESELLER,
    "server_offer": OPERATOR_AND_RESELLER,
    "server": ALL,
    "disk_offer": OPERATOR_AND_RESELLER,
    "disk": ALL,
    "network_offer": OPERATOR_AND_RESELLER,
    "network": ALL,
    "nic_offer": OPERATOR_AND_RESELLER,
    "nic": ALL,
    "node": OPERATOR,
}
CELLS = [(level, key_class) for level in TAKES for key_class in SETTERS]

#: What may be wrong with a key, and with the keys of hosts together.
CODES = {
    "name-empty", "value-not-numeric", "weight-zero", "reserved-as-system", "special-unknown",
    "special-not-system", "special-on-node", "special-cluster-value-not-0", "customer-key-not-allowed-here",
    "sticky-not-on-node", "sticky-without-weight", "sticky-and-reserved", "node-key-set-differs",
}  # fmt: skip


class Key(NamedTuple):
    level: str
    key_class: str
    name: str
    value: str = "1"
    weight: str | None = "5"
    sticky: bool = False


#: Keys and all that is wrong with each.
JUDGED: list[tuple[Key, set[str]]] = [
    *((Key("server", "customer", name), {"name-empty"}) for name in ("", "_", "#", " ")),
    *((Key("server", "system", "G", value), {"value-not-numeric"}) for value in ("gold", "nan", "inf", "-")),
    *((Key("server", "be", "G", "1", weight), {"weight-zero"}) for weight in (None, "0", "-0.0")),
    (Key("image", "system", "_G"), {"reserved-as-system"}),
    (Key("image", "be", "_G"), set()),
    (Key("image", "customer", "_G"), set()),
    (Key("cluster", "be", "_G"), set()),
    (Key("server", "system", "#DISK"), {"special-unknown"}),
    (Key("server", "system", "#ram"), {"special-unknown"}),
    (Key("server", "be", "#RAM"), {"special-not-system"}),
    (Key("server", "customer", "#LOAD"), {"special-not-system"}),
    (Key("server", "customer", "#DISK"), {"special-unknown", "special-not-system"}),
    (Key("server", "system", "#RAM", "2", "1"), set()),
    (Key("cluster", "system", "#CPU", "0", "30"), set()),
    (Key("cluster", "system", "#CPU", "0", "-30"), set()),
    (Key("cluster", "system", "#CPU", "0.5", "30"), {"special-cluster-value-not-0"}),
    (Key("cluster", "be", "#CPU", "0.5", "30"), {"special-cluster-value-not-0", "special-not-system"}),
    (Key("cluster", "system", "G", "0.5", "30"), set()),
    (Key("cluster", "customer", "G"), {"customer-key-not-allowed-here"}),
    (Key("server_offer", "customer", "_G", "x", "0"),
     {"customer-key-not-allowed-here", "value-not-numeric", "weight-zero"}),
    (Key("server", "system", "G", sticky=True), {"sticky-not-on-node"}),
    (Key("node", "system", "G", weight=None), set()),
    (Key("node", "system", "_G", weight=None), set()),
    (Key("node", "system", "#RAM", weight=None), {"special-on-node"}),
    (Key("node", "system", "#DISK", weight=None), {"special-on-node"}),
    (Key("node", "system", "_", weight=None), {"name-empty"}),
    (Key("node", "system", "G", "gold", weight=None), {"value-not-numeric"}),
    (Key("node", "system", "G", weight="60", sticky=True), set()),
    (Key("node", "system", "G", weight="-60", sticky=True), set()),
    (Key("node", "system", "G", weight="0", sticky=True), {"sticky-without-weight"}),
    (Key("node", "system", "_G", weight="60", sticky=True), {"sticky-and-reserved"}),
    (Key("node", "system", "#RAM", weight="60", sticky=True), {"special-on-node"}),
    (Key("node", "customer", "G", weight=None), {"customer-key-not-allowed-here"}),
    (Key("node", "be", "_G", weight=None), {"customer-key-not-allowed-here"}),
]  # fmt: skip


class Parties:
    """Sets keys on one engine, each in a store without any."""

    def __init__(self, live: LiveEngine, folder: Path) -> None:
        self.live = live
        self._file = folder / "keys.yaml"
        self.store = KeyStore(f"sqlite:///{folder}/store.db", engine="default", patience_seconds=30)

    def set(self, key: Key) -> set[str]:
        """The codes of the refusal by `keys set`; none if it is set."""
        resource = NAMED.get(key.level, ANY)
        weight = [] if key.weight is None else [key.weight]
        setter = SETTERS[key.key_class]
        words = ["--on", key.level, resource, "--as", setter, "--", key.name, key.value, *weight]
        return self._codes("set", *words)

    def define(self, key: Key) -> set[str]:
        """The same by `keys define`, of a key of hosts."""
        sticky = ["--sticky", key.weight] if key.sticky and key.weight is not None else []
        return self._codes("define", "--cluster", "blue", "--default", key.value, *sticky, "--", key.name)

    def imported(self, key: Key, *, named: bool) -> set[str]:
        """The same by `keys import`; the class is named in the file, or by the import."""
        entry = {"level": key.level, "resource": NAMED.get(key.level, ANY), "name": key.name}
        entry["value"] = self._number(key.value)
        if key.weight is not None:
            entry["weight"] = self._number(key.weight)
        if key.sticky:
            entry["sticky"] = True
        if named:
            entry["class"] = key.key_class
        self._file.write_text(yaml.safe_dump({"keys": [entry]}))
        setter = [] if named else ["--as", SETTERS[key.key_class]]
        return self._codes("import", str(self._file), *setter)

    def _codes(self, *words: str) -> set[str]:
        """Run a command: either it sets the key, which is removed again, or it refuses in one line."""
        status, _, err = self.live.outcome("keys", *words)
        change = self.store.change(lambda placement: KeyChange(remove=placement), set_by="ann")
        assert (status, len(change.remove), err.count("\n")) in {(0, 1, 0), (2, 0, 1)}, err
        return set(err.replace(",", ":").replace(" ", "").strip().split(":")) & CODES

    @staticmethod
    def _number(text: str) -> float | str:
        try:
            return float(text)
        except ValueError:
            return text


@pytest.fixture
def parties(serving: Starting, tmp_path: Path) -> Iterator[Parties]:
    with serving(STATE) as live:
        found = Parties(live, tmp_path)
        yield found
        found.store.close()


#: Whether the file that is imported names the class.
WITH_OR_WITHOUT = [
    pytest.param(True, id="class in the file"),
    pytest.param(False, id="class of who imports", marks=pytest.mark.system),
]


def test_the_tables_are_whole() -> None:
    assert {code for _, codes in JUDGED for code in codes} == CODES - {"node-key-set-differs"}


@pytest.mark.system
def test_every_cell_of_the_table_by_set(parties: Parties) -> None:
    for level, key_class in CELLS:
        key = Key(level, key_class, "G", weight=None if level == "node" else "5")
        refused = set() if key_class in TAKES[level] else {"customer-key-not-allowed-here"}
        assert parties.set(key) == refused, key


@pytest.mark.system
@pytest.mark.parametrize("named", WITH_OR_WITHOUT)
def test_every_cell_of_the_table_by_import(parties: Parties, named: bool) -> None:
    for level, key_class in CELLS:
        key = Key(level, key_class, "G", weight=None if level == "node" else "5")
        refused = set() if key_class in TAKES[level] else {"customer-key-not-allowed-here"}
        assert parties.imported(key, named=named) == refused, key


@pytest.mark.system
def test_every_code_by_set(parties: Parties) -> None:
    for key, codes in JUDGED:
        if not key.sticky:  # which `keys set` cannot ask for
            assert parties.set(key) == codes, key


def test_every_code_by_define(parties: Parties) -> None:
    for key, codes in JUDGED:
        if key.level == "node" and key.key_class == "system":
            assert parties.define(key) == codes, key


@pytest.mark.system
@pytest.mark.parametrize("named", WITH_OR_WITHOUT)
def test_every_code_by_import(parties: Parties, named: bool) -> None:
    for key, codes in JUDGED:
        assert parties.imported(key, named=named) == codes, key
