"""Keys of hosts while hosts join, leave and move, and while several people change them at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from demo.processes import Processes

from ovirt_placement.store.keys import KeyStore
from tests.builders import cluster, host, snapshot
from tests.placement.cli.live_engine import PASSWORD, LiveEngine, Starting

NORTH, SOUTH, EAST = (
    host("h1", name="north", cluster="c1"),
    host("h2", name="south", cluster="c1"),
    host("h3", name="east", cluster="c2"),
)


Serving = Callable[..., AbstractContextManager[LiveEngine]]


@pytest.fixture
def serving(serving: Starting) -> Serving:
    """Serve an engine with these hosts."""
    clusters = cluster("c1", name="blue"), cluster("c2", name="red")
    return lambda *hosts: serving(snapshot(*clusters, *hosts))


def values(live: LiveEngine) -> dict[str, float]:
    return {key["place"]: key["value"] for key in live.data(0, "keys", "list", "--name", "GEN")["keys"]}


def mistakes(live: LiveEngine, status: int) -> dict[str, list[str]]:
    return {one["where"]: one["codes"] for one in live.data(status, "keys", "check")["mistakes"]}


def test_define_reports_to_programs_what_it_set(serving: Serving) -> None:
    with serving(NORTH, SOUTH, EAST) as live:
        reported = live.data(
            0, "keys", "define", "SAN", "--cluster", "blue", "--default", "1", "--sticky", "60"
        )
        assert reported["unset"] == []
        assert [(key["place"], key["kind"], key["weight"]) for key in reported["set"]] == [
            ("node north", "sticky", 60.0),
            ("node south", "sticky", 60.0),
        ]
        for words, weight in (("2",), 60.0), (("2", "70"), 70.0):
            (key,) = live.data(0, "keys", "set", "SAN", *words, "--on", "node", "south")["set"]
            assert (key["value"], key["weight"], key["sticky"]) == (2.0, weight, True)


def test_a_host_that_joins_lacks_the_key_until_it_is_given_one(serving: Serving) -> None:
    with serving(NORTH) as live:
        live.run(0, "keys", "define", "GEN", "--cluster", "blue", "--default", "1")
    with serving(NORTH, SOUTH) as live:
        assert mistakes(live, 1) == {"host south": ["node-key-set-differs"]}
        live.run(0, "keys", "set", "OTHER", "1", "5", "--on", "cluster", "blue")  # that hinders nothing else
        live.run(0, "keys", "set", "GEN", "0.5", "--on", "node", "south")
        assert mistakes(live, 0) == {}
        assert values(live) == {"node north": 1.0, "node south": 0.5}


def test_a_host_that_moved_takes_its_keys_along_and_sheds_those_that_are_not_its_new_clusters(
    serving: Serving,
) -> None:
    with serving(NORTH, SOUTH, EAST) as live:
        live.run(0, "keys", "define", "GEN", "--cluster", "blue", "--default", "1")
        live.run(0, "keys", "define", "RACK", "--cluster", "red", "--default", "7")
    moved = host("h2", name="south", cluster="c2")
    with serving(NORTH, moved, EAST) as live:
        assert mistakes(live, 1) == {
            "host south": ["node-key-set-differs"],
            "host east": ["node-key-set-differs"],
        }
        live.run(0, "keys", "unset", "GEN", "--on", "node", "south")
        live.run(0, "keys", "set", "RACK", "8", "--on", "node", "south")
        assert mistakes(live, 0) == {}


def test_a_key_of_a_cluster_with_many_hosts_is_refused_in_few_words(serving: Serving) -> None:
    with serving(*(host(f"h{number}", cluster="c1") for number in range(40))) as live:
        _, err = live.run(2, "keys", "set", "GEN", "1", "--on", "node", "h7")
        assert err.count("node-key-set-differs") == 5
        assert (
            "and 34 more like these; keys define, and keys unset --cluster, change a key on all hosts" in err
        )
        live.run(0, "keys", "define", "GEN", "--cluster", "blue", "--default", "1")
        assert len(live.data(0, "keys", "unset", "GEN", "--cluster", "blue")["unset"]) == 40


def test_only_sticky_keys_of_hosts_have_a_weight(serving: Serving) -> None:
    with serving(NORTH) as live:
        _, err = live.run(2, "keys", "set", "GEN", "1", "5", "--on", "node", "north")
        assert "node north: system key GEN: keys of hosts have no weight, unless they are sticky" in err


@pytest.mark.system
def test_concurrent_changes_leave_keys_on_all_hosts_or_none(serving: Serving, tmp_path: Path) -> None:
    """One removes the key from all hosts while another, to whom it was still there, changes it on one."""
    turns = 2
    with serving(NORTH, SOUTH) as live, Processes(tmp_path, {"OVIRT_PASSWORD": PASSWORD}) as processes:
        store = KeyStore(f"sqlite:///{tmp_path}/store.db", engine="default", patience_seconds=30)

        def run(words: str) -> int:
            command = ["ovirt-placement", "keys", *words.split(), "--config", str(live.config)]
            return processes.run(command).returncode

        for _ in range(turns):
            live.run(0, "keys", "define", "GEN", "--cluster", "blue", "--default", "1")
            words = ("unset GEN --cluster blue", "set GEN 2 --on node north", "set GEN 3 --on node south")
            with ThreadPoolExecutor() as people:
                ended = tuple(people.map(run, words))
            carrying = {one.key.resource for one in store.all_keys()}
            assert carrying in (set(), {"h1", "h2"})
            assert set(ended) <= {0, 2}
            assert not carrying  # who came later than the removal was refused
        store.close()
