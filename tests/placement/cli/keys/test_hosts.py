"""Keys of hosts while hosts join, leave and move, contention ratios, and keys of objects that are gone."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from demo.stage import Processes
from msgspec.structs import replace

from ovirt_placement.cli import keys
from ovirt_placement.model import Disk, Network, Nic, PlacementKey, Snapshot, StickyCopy, VnicProfile
from ovirt_placement.store.keys import KeyStore, Run
from tests.builders import cluster, host, snapshot, vm
from tests.placement.cli.live_engine import PASSWORD, LiveEngine, Starting
from tests.stored import put_keys

# -- Keys of hosts while hosts join, leave and move, and while several people change them at once.
NORTH, SOUTH = host("h1", name="north", cluster="c1"), host("h2", name="south", cluster="c1")
EAST = host("h3", name="east", cluster="c2")

Serving = Callable[..., AbstractContextManager[LiveEngine]]


@pytest.fixture
def hosts_served(serving: Starting) -> Serving:
    """Serve an engine with these hosts."""
    clusters = cluster("c1", name="blue"), cluster("c2", name="red")
    return lambda *hosts: serving(snapshot(*clusters, *hosts))


def values(live: LiveEngine) -> dict[str, float]:
    return {key["place"]: key["value"] for key in live.data(0, "keys list --name GEN")["keys"]}


def mistakes(live: LiveEngine, status: int) -> dict[str, list[str]]:
    return {one["where"]: one["codes"] for one in live.data(status, "keys check")["mistakes"]}


def test_a_host_that_joins_lacks_the_key_until_it_is_given_one(hosts_served: Serving) -> None:
    with hosts_served(NORTH) as live:
        live.run(0, "keys define GEN --cluster blue --default 1")
    with hosts_served(NORTH, SOUTH) as live:
        assert mistakes(live, 1) == {"host south": ["node-key-set-differs"]}
        live.run(0, "keys set OTHER 1 5 --on cluster blue")  # that hinders nothing else
        live.run(0, "keys set GEN 0.5 --on node south")
        assert mistakes(live, 0) == {}
        assert values(live) == {"node north": 1.0, "node south": 0.5}


def test_a_host_that_moved_takes_its_keys_along_and_sheds_those_that_are_not_its_new_clusters(
    hosts_served: Serving,
) -> None:
    with hosts_served(NORTH, SOUTH, EAST) as live:
        live.run(0, "keys define GEN --cluster blue --default 1")
        live.run(0, "keys define RACK --cluster red --default 7")
    with hosts_served(NORTH, replace(SOUTH, cluster="c2"), EAST) as live:
        assert mistakes(live, 1) == {f"host {one}": ["node-key-set-differs"] for one in ("south", "east")}
        live.run(0, "keys unset GEN --on node south")
        live.run(0, "keys set RACK 8 --on node south")
        assert mistakes(live, 0) == {}


def test_a_change_and_a_refusal_of_many_hosts_are_few_lines_and_json_has_all(hosts_served: Serving) -> None:
    define = ("keys", "define", "GEN", "--cluster", "blue", "--default")
    with hosts_served(*(host(f"h{number}", cluster="c1") for number in range(40))) as live:
        _, err = live.run(2, "keys set GEN 1 --on node h7")
        assert err.count("node-key-set-differs") == 5
        assert "and 34 more like these; keys define, and keys unset --cluster, change a key on all" in err
        *shown, more, note = live.run(0, *define, "1")[0].splitlines()
        assert (len(shown), more.partition(":")[0]) == (20, "... and 20 more")
        assert note.startswith("note: no effect: the policy of cluster blue has no")
        assert len(live.data(0, *define, "2")["set"]) == 40
        assert len(live.data(0, "keys unset GEN --cluster blue")["unset"]) == 40


@pytest.mark.system
def test_concurrent_changes_leave_keys_on_all_hosts_or_none(hosts_served: Serving, tmp_path: Path) -> None:
    """One removes the key from all hosts while another, to whom it was still there, changes it on one."""
    turns = 2
    with hosts_served(NORTH, SOUTH) as live, Processes(tmp_path, {"OVIRT_PASSWORD": PASSWORD}) as processes:
        store = KeyStore(f"sqlite:///{tmp_path}/store.db", engine="default", patience_seconds=30)

        def run(words: str) -> int:
            command = ["ovirt-placement", "keys", *words.split(), "--config", str(live.config)]
            return processes.run(command).returncode

        for _ in range(turns):
            live.run(0, "keys define GEN --cluster blue --default 1")
            words = ("unset GEN --cluster blue", "set GEN 2 --on node north", "set GEN 3 --on node south")
            with ThreadPoolExecutor() as people:
                ended = tuple(people.map(run, words))
            carrying = {one.key.resource for one in store.all_keys()}
            assert carrying in (set(), {"h1", "h2"})
            assert set(ended) <= {0, 2}
            assert not carrying  # who came later than the removal was refused
        store.close()


# -- Contention ratios of single hosts: set, seen, explained, carried in files, refused where they cannot be.
#: 11000 of 12000 MiB are handed out on each: neither has room for another VM without contention.
RATIO = {"placement_memory_ratio": "1"}
PARTS = (
    cluster("c1", name="blue", memory_overcommit_percent=200, scheduling_properties=RATIO),
    *(replace(one, memory_mb=12_000, memory_free_mb=50_000) for one in (NORTH, SOUTH)),
    vm("a", "h1", cluster="c1", memory_mb=11_000),
    vm("b", "h2", cluster="c1", memory_mb=11_000),
    vm("new", cluster="c1", memory_mb=1000),
)


def chosen(live: LiveEngine) -> Any:
    return live.data(0, "keys explain new")["choice"]


def test_a_ratio_is_set_and_removed_on_one_host_alone(serving: Starting) -> None:
    with serving(snapshot(*PARTS)) as live:
        out, _ = live.run(0, "keys set #RAM_RATIO 1.5 --on node south")
        assert out.startswith("set node south: system key #RAM_RATIO: 1.5\nnote: no effect: the policy of")
        assert chosen(live) == ["h2"]
        assert live.data(0, "keys show south")["ratios"]["memory"] == {"value": 1.5, "source": "host"}
        live.run(0, "keys unset #RAM_RATIO --on node south")
        assert chosen(live) == []


def test_define_gives_one_to_the_hosts_that_are_named(serving: Starting) -> None:
    with serving(snapshot(*PARTS)) as live:

        def ratios() -> dict[str, float]:
            return {one["place"]: one["value"] for one in live.data(0, "keys list")["keys"]}

        live.run(0, "keys define #CPU_RATIO --cluster blue --values north=4")
        assert ratios() == {"node north": 4.0}
        shown = live.run(0, "keys show north")[0].splitlines()
        assert shown[-1] == "Contention ratios: memory 1 (the policy's), CPUs 4 (its own)"
        live.run(0, "keys define #CPU_RATIO --cluster blue --default 3")
        assert ratios() == {"node north": 3.0, "node south": 3.0}
        live.run(0, "keys unset #CPU_RATIO --cluster blue")
        assert ratios() == {}


# -- Keys of objects that the engine has no more: reported by `keys check`, removed by `keys prune` alone.
IMAGE = "12345678-0000-4000-8000-000000000001"


def made(name: str, number: int) -> Any:
    """A VM with a disk and a NIC."""
    disks = (Disk(id=f"d{number}", bootable=True),)
    nics = (Nic(id=f"n{number}", name="nic1", vnic_profile="p1"),)
    return vm(f"v{number}", name=name, cluster="c1", disks=disks, nics=nics)


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
    ("image", IMAGE),
)
GONE = (("cluster", "c2"), ("server", "v2"), ("disk", "d2"), ("nic", "n2"))


@pytest.fixture
def store(tmp_path: Path, serving: Starting) -> Iterator[KeyStore]:
    """A store in which a key stands on everything, and which remembers both VMs."""
    with serving(BEFORE) as live:
        for level, resource in (*KEPT, *GONE):
            live.run(0, "keys", "set", "G", "1", "5", "--on", level, resource)
        live.run(0, "keys define GEN --cluster blue --default 1")
        live.run(0, "keys define GEN --cluster red --default 1")
        live.run(0, "keys check")
    opened = KeyStore(f"sqlite:///{tmp_path}/store.db", engine="default", patience_seconds=30)
    opened.begin_runs([Run(name, 1.0, (), (StickyCopy(name, "SAN", 1.0, 60.0),)) for name in ("v1", "v2")])
    yield opened
    opened.close()


def places(live: LiveEngine) -> set[tuple[str, str]]:
    return {(key["level"], key["resource"]) for key in live.data(0, "keys list")["keys"]}


@pytest.mark.system
def test_check_reports_and_prune_removes_them_and_what_their_vms_were_remembered_by(
    serving: Starting, store: KeyStore
) -> None:
    with serving(AFTER) as live:
        keys_gone = (("cluster c2", "G"), ("server v2", "G"), ("node h2", "GEN"))
        assert mistakes(live, 1) == {
            f"{place}: system key {name}": ["resource-gone"] for place, name in keys_gone
        }
        assert "keys prune removes it" in live.run(1, "keys check")[0]
        trial = live.data(0, "keys prune --dry-run")
        assert {(key["level"], key["resource"]) for key in trial["unset"]} == {*GONE, ("node", "h2")}
        assert (trial["forgotten"], store.remembered_vms()) == (["v2"], {"v1", "v2"})
        lines = live.run(0, "keys prune")[0].splitlines()
        assert "unset server v2: system key G" in lines
        assert lines[-1] == "forgot VM v2"
        assert places(live) == {*KEPT, ("node", "h1")}
        assert store.remembered_vms() == {"v1"}
        live.run(0, "keys check")
        assert live.run(0, "keys prune")[0] == "Nothing to change.\n"


@pytest.mark.system
def test_an_engine_that_shows_nothing_of_a_kind_says_nothing_of_it(
    serving: Starting, store: KeyStore
) -> None:
    with serving(snapshot(cluster("c9", name="new"))) as live:
        done = live.data(0, "keys prune")
        assert ({key["level"] for key in done["unset"]}, done["forgotten"]) == ({"cluster"}, [])
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
        done = live.data(0, "keys prune")
        assert (done["forgotten"], len(done["unset"])) == (["v2"], len(GONE) + 1)
        assert store.remembered_vms() == {"v1", "v3"}
        assert ("server", "v3") in places(live)
