"""What keys are for: each use case with the numbers that an administrator is promised."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from ovirt_placement.model import PlacementKey
from ovirt_placement.rules.placement_keys.judgement import KeyDecision
from tests.placement.rules.placement_keys import nodes
from tests.placement.rules.placement_keys.nodes import key, node_key


def node(
    host: str, own: dict[str, float] | None = None, brought: tuple[str, ...] = (), **fields: Any
) -> nodes.Node:
    """A host with its keys; each name brought is the key of one VM, with the value 1."""
    keys = [node_key(host, name, value) for name, value in (own or {}).items()]
    return nodes.node(host, keys, [((name, 1.0),) for name in brought], **fields)


def place(keys: list[PlacementKey], *hosts: nodes.Node) -> KeyDecision:
    return nodes.place(hosts, keys)


def scores(decision: KeyDecision) -> dict[str, float]:
    return {one.host: float(one.system.total) for one in decision.hosts if one.system}


def customer_scores(decision: KeyDecision) -> dict[str, float]:
    return {one.host: float(one.customer.total) for one in decision.hosts if one.customer}


def customers(name: str, value: float = 1.0, weight: float = 100.0) -> PlacementKey:
    return key(name, value, weight, key_class="customer")


PRIVATE = {"PRIV7": 1.0, "SHARED": 0.0}
PUBLIC = {"PRIV7": 0.0, "SHARED": 1.0}
EVERYBODY = [key("PRIV7", 1.0, -200.0, "cluster"), key("SHARED", 1.0, 50.0, "cluster")]
OWNER = [*EVERYBODY, key("PRIV7", 1.0, 100.0, "customer"), key("SHARED", 1.0, -200.0, "customer")]


def test_private_cloud_takes_its_owner_in_round_1_and_nobody_else() -> None:
    hosts = node("private", PRIVATE), node("public", PUBLIC)
    owner, stranger = place(OWNER, *hosts), place(EVERYBODY, *hosts)
    assert scores(owner) == {"private": 100, "public": -200}
    assert (owner.round, owner.choice) == (1, ("private",))
    assert scores(stranger) == {"private": -200, "public": 50}
    assert (stranger.round, stranger.choice) == (5, ("public",))


def test_full_private_cloud_spills_over_only_without_the_owners_exclusion() -> None:
    hosts = node("private", PRIVATE, free_mb=1000), node("public", PUBLIC)
    assert place(OWNER, *hosts).failed == "threshold"
    spilling = [one for one in OWNER if (one.name, one.level) != ("SHARED", "customer")]
    assert place(spilling, *hosts).choice == ("public",)


def test_licence_bound_image_runs_on_licensed_hosts_only() -> None:
    image = [key("WINLIC", 1.0, 100.0, "image"), key("NOWINLIC", 1.0, -200.0, "image")]
    hosts = (
        node("licensed", {"WINLIC": 1.0, "NOWINLIC": 0.0}),
        node("other", {"WINLIC": 0.0, "NOWINLIC": 1.0}),
    )
    assert scores(place(image, *hosts)) == {"licensed": 100, "other": -200}
    assert place(image, *hosts[1:]).failed == "threshold"


def test_others_are_kept_off_licensed_hosts_softly() -> None:
    wanted = [key("WINLIC", 0.0, 20.0, "cluster")]
    licensed, other = node("licensed", {"WINLIC": 1.0}), node("other", {"WINLIC": 0.0})
    decision = place(wanted, licensed, other)
    assert (decision.round, decision.choice) == (8, ("other",))
    assert place(wanted, licensed).choice == ("licensed",)


def test_soft_spread_and_soft_pack() -> None:
    hosts = node("two", None, ("A", "A")), node("one", None, ("A",)), node("none")
    spread, pack = place([customers("A", weight=-100)], *hosts), place([customers("A")], *hosts)
    assert (customer_scores(spread), spread.choice) == ({"two": -200, "one": -100, "none": 0}, ("none",))
    assert (customer_scores(pack), pack.choice) == ({"two": 200, "one": 100, "none": 0}, ("two",))


def test_mixed_pack_and_spread() -> None:
    hosts = node("h1", None, ("db", "web")), node("h2", None, ("db",)), node("h3", None, ("web",))
    decision = place([customers("db", weight=60), customers("web", weight=-40)], *hosts)
    assert (customer_scores(decision), decision.choice) == ({"h1": 20, "h2": 60, "h3": -40}, ("h2",))


def test_storage_island_holds_its_vms() -> None:
    decision = place(
        [key("SAN", 2.0, 60.0, "server_sticky")], node("one", {"SAN": 1.0}), node("two", {"SAN": 2.0})
    )
    assert (scores(decision), decision.round) == ({"one": 0, "two": 60}, 4)


IDLE = [key("#RAM", 0, 40.0, "cluster"), key("#CPU", 0, 30.0, "cluster"), key("#LOAD", 0, 30.0, "cluster")]


def test_idle_hosts_score_the_full_weight() -> None:
    half = node("half", allocated_mb=32768, allocated_vcpus=8, load=Fraction(1, 2))
    assert scores(place(IDLE, node("idle"), half)) == {"idle": 100, "half": 50}


def test_filling_hosts_needs_a_bias_that_keeps_all_acceptable() -> None:
    fill = [key("#RAM", 0, -100.0, "cluster"), key("TIER", 1.0, 100.0, "cluster")]
    hosts = node("empty", {"TIER": 1.0}), node("half", {"TIER": 1.0}, allocated_mb=32768)
    assert scores(place(fill, *hosts)) == {"empty": 0, "half": 50}
    assert place(fill[:1], *hosts).failed == "threshold"


@pytest.mark.parametrize(
    ("noise", "score", "accepted"), [(1, -100, False), (0.2, -20, False), (0.05, -5, True), (0, 0, True)]
)
def test_noisy_hosts_are_refused_from_a_tenth_on(noise: float, score: float, accepted: bool) -> None:
    decision = place([key("NOISY", 1.0, -100.0, "cluster")], node("h1", {"NOISY": noise}))
    assert (scores(decision)["h1"], bool(decision.choice)) == (score, accepted)


def test_customers_avoid_another_and_choose_green_hosts_within_a_band() -> None:
    away = place([customers("tenantB", weight=-50)], node("h1", None, ("tenantB",)), node("h2"))
    assert (customer_scores(away), away.choice) == ({"h1": -50, "h2": 0}, ("h2",))
    green = place([customers("_GREEN", weight=50)], node("h1", {"_GREEN": 1.0}), node("h2", {"_GREEN": 0.8}))
    assert (customer_scores(green), green.choice) == ({"h1": 50, "h2": 40}, ("h1",))


def test_premium_falls_back_to_ordinary_hosts() -> None:
    premium = [key("Premium", 0.0, 0.0, "cluster"), key("Premium", 1.0, 100.0, "server_offer")]
    fast, ordinary = node("fast", {"Premium": 1.0}), node("ordinary", {"Premium": 0.0})
    assert (place(premium, fast, ordinary).round, place(premium, ordinary).round) == (1, 10)


def test_newer_hardware_scores_by_degrees() -> None:
    hosts = [node(f"h{age}", {"GEN": age}) for age in (0.0, 0.25, 0.5, 1.0)]
    assert list(scores(place([key("GEN", 1.0, 80.0)], *hosts)).values()) == [0, 20, 40, 80]


def test_rack_is_a_number_that_customers_may_want() -> None:
    hosts = [node(f"h{rack}", {"_RACK": rack}) for rack in (1.0, 2.0, 3.0)]
    assert customer_scores(place([customers("_RACK", 2.0, 50.0)], *hosts)) == {
        "h1.0": 0,
        "h2.0": 50,
        "h3.0": 0,
    }


def test_one_server_weighs_load_more_and_switches_memory_off() -> None:
    server = [*IDLE, key("#LOAD", 0, 100.0), key("#RAM", 2.0, 1.0)]
    busy = node("busy", load=Fraction(1, 2), allocated_mb=65536 // 2)
    assert scores(place(server, node("idle"), busy)) == {"idle": 130, "busy": 80}
