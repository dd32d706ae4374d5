"""Keys of objects that the engine has no more: reported by `keys check`, removed by `keys prune` alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ovirt_placement.cli import keys
from ovirt_placement.model import Disk, Network, Nic, PlacementKey, Snapshot, StickyCopy, VnicProfile
from ovirt_placement.store.keys import KeyStore, Run
from tests.builders import cluster, host, snapshot, vm
from tests.placement.cli.live_engine import LiveEngine, Starting
from tests.stored import put_keys

TEMPLATE = "12345678-0000-4000-8000-000000000001"


def made(name: str, number: int) -> Any:
    """A VM with a disk and a NIC."""
    devices = {
        "disks": (Disk(id=f"d{number}", bootable=True),),
        "nics": (Nic(id=f"n{number}", name="nic1", vnic_profile="p1"),),
    }
    return vm(f"v{number}", name=name, cluster="c1", **devices)


def state(*parts: Any) -> Snapshot:
    return replace(
        snapshot(cluster("c1", name="blue"), *parts),
        networks=(Network(id="l1", name="lan"),),
        vnic_profiles=(VnicProfile(id="p1", name="fast", network="l1"),),
    )


BEFORE = state(
    cluster("c2", name="red"), host("h1", name="north", cluster="c1"), host("h2", name="east", cluster="c2"),
    made("web", 1), made("cache", 2),
)  # fmt: skip
AFTER = state(host("h1", name="north", cluster="c1"), made("web", 1))

#: What keys stand on before, and what becomes of those objects.
KEPT = (
    ("cluster", "c1"),
    ("server", "v1"),
    ("disk", "d1"),
    ("nic", "n1"),
    ("network", "l1"),
    ("image", TEMPLATE),
)
GONE = (("cluster", "c2"), ("server", "v2"), ("disk", "d2"), ("nic", "n2"))


@pytest.fixture
def store(tmp_path: Path, serving: Starting) -> Iterator[KeyStore]:
    """A store in which a key stands on everything, and which remembers both VMs."""
    with serving(BEFORE) as live:
        for level, resource in (*KEPT, *GONE):
            live.run(0, "keys", "set", "G", "1", "5", "--on", level, resource)
        live.run(0, "keys", "define", "GEN", "--cluster", "blue", "--default", "1")
        live.run(0, "keys", "define", "GEN", "--cluster", "red", "--default", "1")
        live.run(0, "keys", "check")
    opened = KeyStore(f"sqlite:///{tmp_path}/store.db", engine="default", patience_seconds=30)
    opened.begin_runs([Run(name, 1.0, (), (StickyCopy(name, "SAN", 1.0, 60.0),)) for name in ("v1", "v2")])
    yield opened
    opened.close()


def places(live: LiveEngine) -> set[tuple[str, str]]:
    return {(key["level"], key["resource"]) for key in live.data(0, "keys", "list")["keys"]}


@pytest.mark.system
def test_check_reports_them(serving: Starting, store: KeyStore) -> None:
    with serving(AFTER) as live:
        found = {one["where"]: one["codes"] for one in live.data(1, "keys", "check")["mistakes"]}
        assert found == {
            f"{place}: system key {name}": ["resource-gone"]
            for place, name in (("cluster c2", "G"), ("server v2", "G"), ("node h2", "GEN"))
        }
        assert "keys prune removes it" in live.run(1, "keys", "check")[0]


@pytest.mark.system
def test_prune_removes_them_and_what_their_vms_were_remembered_by(serving: Starting, store: KeyStore) -> None:
    with serving(AFTER) as live:
        before = places(live)
        trial = live.data(0, "keys", "prune", "--dry-run")
        assert (places(live), store.remembered_vms()) == (before, {"v1", "v2"})
        done = live.data(0, "keys", "prune")
        assert done == {**trial, "dry_run": False}
        assert {(key["level"], key["resource"]) for key in done["unset"]} == {*GONE, ("node", "h2")}
        assert done["forgotten"] == ["v2"]
        assert places(live) == {*KEPT, ("node", "h1")}
        assert store.remembered_vms() == {"v1"}
        live.run(0, "keys", "check")
        assert live.run(0, "keys", "prune")[0] == "Nothing to change.\n"


@pytest.mark.system
def test_prune_says_what_it_does(serving: Starting, store: KeyStore) -> None:
    with serving(AFTER) as live:
        lines = live.run(0, "keys", "prune")[0].splitlines()
    assert "unset server v2: system key G" in lines
    assert lines[-1] == "forgot VM v2"


@pytest.mark.system
def test_an_engine_that_shows_nothing_of_a_kind_says_nothing_about_it(
    serving: Starting, store: KeyStore
) -> None:
    with serving(snapshot(cluster("c9", name="new"))) as live:
        done = live.data(0, "keys", "prune")
        assert {key["level"] for key in done["unset"]} == {"cluster"}
        assert done["forgotten"] == []
        assert store.remembered_vms() == {"v1", "v2"}


@pytest.mark.system
def test_what_is_set_or_recorded_while_prune_reads_the_engine_stays(
    serving: Starting, store: KeyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A VM that was made in between is none that is gone."""
    read = keys.read_engine
    new = PlacementKey(level="server", resource="v3", key_class="system", name="G", value=1.0, weight=5.0)

    def reading(args: Any) -> Snapshot:
        engine = read(args)
        put_keys(store, [new])
        store.begin_runs([Run("v3", 1.0, ())])
        return engine

    monkeypatch.setattr(keys, "read_engine", reading)
    with serving(AFTER) as live:
        done = live.data(0, "keys", "prune")
        assert (done["forgotten"], len(done["unset"])) == (["v2"], len(GONE) + 1)
        assert store.remembered_vms() == {"v1", "v3"}
        assert ("server", "v3") in places(live)
