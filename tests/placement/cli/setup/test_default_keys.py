"""`setup --placement-keys` gives clusters the special keys, and its undoing takes back those."""

from contextlib import AbstractContextManager, closing

import pytest

from ovirt_placement.model import PlacementKey
from ovirt_placement.store.keys import KeyStore
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.control import Disturbance
from tests.builders import cluster, host, key, snapshot, vm
from tests.placement.cli.live_engine import LiveEngine, Starting
from tests.placement.cli.setup.policies import cluster_policy, policy_named
from tests.stored import put_keys

#: By name: what the page promises.
WEIGHTS = {"#RAM": 40.0, "#CPU": 30.0, "#LOAD": 30.0}
GIVES_BLUE = "give the cluster blue the placement keys #RAM (40), #CPU (30), #LOAD (30)"
TAKES_FROM_BLUE = "take the placement keys #CPU (30), #LOAD (30), #RAM (40) from the cluster blue"
SET_UP = ("setup", "--cluster", "blue", "--placement-keys")


def keys_of(live: LiveEngine) -> AbstractContextManager[KeyStore]:
    return closing(KeyStore(f"sqlite:///{live.config.parent}/store.db", engine="default", patience_seconds=5))


def stored(live: LiveEngine) -> set[PlacementKey]:
    with keys_of(live) as store:
        return {found.key for found in store.all_keys()}


def put(live: LiveEngine, *keys: PlacementKey) -> None:
    with keys_of(live) as store:
        put_keys(store, keys)


def weights(live: LiveEngine, of: str = "c1") -> dict[str, float | None]:
    return {key.name: key.weight for key in stored(live) if key.resource == of}


def special(name: str, weight: float, on: str = "c1") -> PlacementKey:
    return key(name, 0.0, weight, "cluster", resource=on)


def test_the_cluster_has_them_and_they_are_shown_before(live: LiveEngine) -> None:
    assert GIVES_BLUE in live.run(0, *SET_UP, "--dry-run")[0].splitlines()
    assert not (live.config.parent / "store.db").exists()
    (shown,) = live.data(0, *SET_UP, "--dry-run")["policies"]
    given = {"sentence": GIVES_BLUE, "cluster": "c1", "removed": False, "weights": WEIGHTS}
    assert shown["placement_keys"] == [given]
    assert live.run(0, *SET_UP)[0].splitlines()[-1] == GIVES_BLUE
    assert stored(live) == {special(name, weight) for name, weight in WEIGHTS.items()}


@pytest.mark.system
def test_a_second_run_changes_nothing_and_an_undoing_takes_them(live: LiveEngine) -> None:
    live.run(0, *SET_UP)
    assert live.run(0, *SET_UP)[0] == "The policy ovirt-placement is set up; nothing to change.\n"
    assert TAKES_FROM_BLUE in live.run(0, "setup --undo --dry-run")[0].splitlines()
    assert weights(live) == WEIGHTS
    assert live.run(0, "setup --undo")[0].splitlines()[0] == TAKES_FROM_BLUE
    assert stored(live) == set()
    nothing = "The policy ovirt-placement has nothing of setup; nothing to change.\n"
    assert live.run(0, "setup --undo")[0] == nothing
    live.run(0, *SET_UP)
    assert weights(live) == WEIGHTS


@pytest.mark.parametrize(
    ("name", "weight", "given"),
    [("#RAM", -100.0, {}), ("GEN", 50.0, WEIGHTS)],
    ids=[
        "a cluster that packs by memory must not begin to spread by CPUs",
        "other keys keep nobody from them",
    ],
)
def test_keys_that_somebody_set_stay(
    live: LiveEngine, name: str, weight: float, given: dict[str, float]
) -> None:
    put(live, special(name, weight))
    out, _ = live.run(0, *SET_UP)
    assert ("placement keys" in out) is bool(given)
    assert weights(live) == {**given, name: weight}
    live.run(0, "setup --undo")
    assert stored(live) == {special(name, weight)}


def test_what_somebody_changed_since_stays_and_what_they_removed_does_not_come_back(live: LiveEngine) -> None:
    live.run(0, *SET_UP)
    live.run(0, "keys set #RAM 0 70 --on cluster blue")
    live.run(0, "keys unset #CPU --on cluster blue")
    live.run(0, *SET_UP)
    assert weights(live) == {"#RAM": 70.0, "#LOAD": 30.0}
    lines = live.run(0, "setup --undo")[0].splitlines()
    assert lines[0] == "take the placement keys #LOAD (30) from the cluster blue"
    assert "note: the placement key #RAM of cluster blue stays: it was changed since setup set it" in lines
    assert weights(live) == {"#RAM": 70.0}
    assert "stays" not in live.run(0, "setup --undo")[0]


def test_clusters_that_use_the_policy_already_have_them_and_no_others(live: LiveEngine) -> None:
    live.run(0, "setup --cluster red")
    assert stored(live) == set()
    live.run(0, *SET_UP)
    assert weights(live, "c1") == weights(live, "c2") == WEIGHTS


@pytest.mark.system
def test_all_policies(starting: Starting) -> None:
    state = snapshot(cluster("c1", name="blue"), cluster("c2", name="red"), cluster("c3", name="grey"))

    def used(engine: Engine) -> None:
        engine.policies.update_cluster("c2", policy_name="power_saving")

    with starting(state, prepare=used) as live:
        live.run(0, "setup --all-policies --placement-keys")
        assert [weights(live, one) for one in ("c1", "c2", "c3")] == [WEIGHTS] * 3
        out, _ = live.run(0, "setup --all-policies --undo")
        assert out.count("take the placement keys") == 3
        assert stored(live) == set()


def test_a_policy_that_was_removed_or_renamed_gives_its_keys_back(live: LiveEngine) -> None:
    live.run(0, *SET_UP)
    live.engine.policies.update_cluster("c1", policy_name="none")
    live.engine.policies.remove(policy_named(live.engine, "ovirt-placement").id)
    live.run(0, "setup --all-policies --undo")
    assert stored(live) == set()


@pytest.mark.system
def test_clusters_that_another_policy_took_over_keep_them_until_that_is_undone(live: LiveEngine) -> None:
    live.run(0, *SET_UP)
    live.run(0, *SET_UP, "--policy", "second")
    live.run(0, "setup --undo")
    assert weights(live) == WEIGHTS
    live.run(0, "setup --undo --policy second")
    assert stored(live) == set()


def test_a_setup_that_fails_halfway_gives_none_until_it_is_done(live: LiveEngine) -> None:
    live.server.disturbances.add(Disturbance(method="PUT", path="/clusters/", status=409))
    live.run(2, *SET_UP)
    assert stored(live) == set()
    live.server.disturbances.clear()
    live.run(0, *SET_UP)
    assert weights(live) == WEIGHTS


def test_an_undoing_that_fails_halfway_is_continued(live: LiveEngine) -> None:
    live.run(0, *SET_UP)
    live.server.disturbances.add(Disturbance(method="DELETE", path="/schedulingpolicies/", status=409))
    live.run(2, "setup --undo")
    live.server.disturbances.clear()
    live.run(0, "setup --undo")
    assert stored(live) == set()
    assert cluster_policy(live.engine, "c1") == "none"


def test_a_store_that_is_away_keeps_from_setting_up_and_not_from_undoing(live: LiveEngine) -> None:
    live.run(0, *SET_UP)
    content, folder = live.config.read_text(), live.config.parent
    (folder / "none").write_text("no folder")
    live.config.write_text(content.replace(f"sqlite:///{folder}/", f"sqlite:///{folder}/none/"))
    live.changes.clear()
    live.run(2, *SET_UP, "--cluster", "red")
    assert live.changes == []
    assert "the placement keys that setup gave clusters stay" in live.run(0, "setup --undo")[1]
    assert cluster_policy(live.engine, "c1") == "none"
    live.config.write_text(content)
    live.run(0, "setup --undo")
    assert stored(live) == set()


def test_what_would_come_of_it_reckons_with_them(starting: Starting) -> None:
    """A mismatch that alone would refuse the host of a running VM does not where an idle host scores 100."""
    state = snapshot(cluster("c1", name="blue"), host("h1", cluster="c1"), vm("v1", "h1", cluster="c1"))
    with starting(state) as live:
        live.run(0, "keys define NOISY --cluster blue --values h1=1")
        for weight, violated in (("-50", []), ("-200", ["placement_keys"])):
            live.run(0, "keys", "set", "NOISY", "1", weight, "--on", "cluster", "blue")
            (blue,) = live.data(0, *SET_UP, "--what-if")["clusters"]
            assert [rule["kind"] for rule in blue["violated"]] == violated
        assert live.changes == []
        assert set(weights(live)) == {"NOISY"}
