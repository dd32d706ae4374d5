"""What keys are for: each use case with the numbers that an administrator is promised."""

from fractions import Fraction
from typing import Any

import pytest

from ovirt_placement.model import PlacementKey
from tests.builders import key, node_key
from tests.placement.rules.placement_keys import nodes


def node(
    host: str, own: dict[str, float] | None = None, brought: tuple[str, ...] = (), **fields: Any
) -> nodes.Node:
    """A host with its keys; each name brought is the key of one VM, with the value 1."""
    keys = [node_key(host, name, value) for name, value in (own or {}).items()]
    return nodes.node(host, keys, [((name, 1.0),) for name in brought], **fields)


def customers(name: str, value: float = 1.0, weight: float = 100.0) -> PlacementKey:
    return key(name, value, weight, key_class="customer")


PRIVATE, PUBLIC = (
    node("private", {"PRIV7": 1.0, "SHARED": 0.0}),
    node("public", {"PRIV7": 0.0, "SHARED": 1.0}),
)
FULL = node("private", {"PRIV7": 1.0, "SHARED": 0.0}, free_mb=1000)
EVERYBODY = [key("PRIV7", 1.0, -200.0, "cluster"), key("SHARED", 1.0, 50.0, "cluster")]
OWNER = [*EVERYBODY, key("PRIV7", 1.0, 100.0, "customer"), key("SHARED", 1.0, -200.0, "customer")]
SPILLING = OWNER[:-1]
IMAGE = [key("WINLIC", 1.0, 100.0, "image"), key("NOWINLIC", 1.0, -200.0, "image")]
OTHERS = [key("WINLIC", 0.0, 20.0, "cluster")]
LICENSED, OTHER = (
    node("licensed", {"WINLIC": 1.0, "NOWINLIC": 0.0}),
    node("other", {"WINLIC": 0.0, "NOWINLIC": 1.0}),
)
TWO, ONE, NONE = node("two", None, ("A", "A")), node("one", None, ("A",)), node("none")
MIXED = (node("h1", None, ("db", "web")), node("h2", None, ("db",)), node("h3", None, ("web",)))
IDLE = [key("#RAM", 0, 40.0, "cluster"), key("#CPU", 0, 30.0, "cluster"), key("#LOAD", 0, 30.0, "cluster")]
HALF_RAM, HALF = {"allocated_mb": 32768}, {"allocated_vcpus": 8, "load": Fraction(1, 2)}
FILL = [key("#RAM", 0, -100.0, "cluster"), key("TIER", 1.0, 100.0, "cluster")]
TIERS = (node("empty", {"TIER": 1.0}), node("half", {"TIER": 1.0}, **HALF_RAM))
PREMIUM = [key("Premium", 0.0, 0.0, "cluster"), key("Premium", 1.0, 100.0, "server_offer")]
FAST, ORDINARY = node("fast", {"Premium": 1.0}), node("ordinary", {"Premium": 0.0})
RACKS = tuple(node(f"h{rack}", {"_RACK": float(rack)}) for rack in (1, 2, 3))
AGES = tuple(node(f"h{at}", {"GEN": age}) for at, age in enumerate((0.0, 0.25, 0.5, 1.0)))
GREEN = (node("h1", {"_GREEN": 1.0}), node("h2", {"_GREEN": 0.8}))
SERVER = [*IDLE, key("#LOAD", 0, 100.0), key("#RAM", 2.0, 1.0)]


@pytest.mark.parametrize(
    ("keys", "hosts", "promised"),
    [
        # A private cloud takes its owner in round 1, and nobody else; it spills over if the owner allows it.
        (OWNER, (PRIVATE, PUBLIC), {"system": [100, -200], "round": 1, "choice": ("private",)}),
        (EVERYBODY, (PRIVATE, PUBLIC), {"system": [-200, 50], "round": 5, "choice": ("public",)}),
        (OWNER, (FULL, PUBLIC), {"failed": "threshold"}),
        (SPILLING, (FULL, PUBLIC), {"choice": ("public",)}),
        # An image that is bound to licences runs on licensed hosts alone; others are kept off them softly.
        (IMAGE, (LICENSED, OTHER), {"system": [100, -200]}),
        (IMAGE, (OTHER,), {"failed": "threshold"}),
        (OTHERS, (LICENSED, OTHER), {"round": 8, "choice": ("other",)}),
        (OTHERS, (LICENSED,), {"choice": ("licensed",)}),
        # Soft spread, soft pack, and both at once.
        ([customers("A", weight=-100)], (TWO, ONE, NONE), {"customer": [-200, -100, 0], "choice": ("none",)}),
        ([customers("A")], (TWO, ONE, NONE), {"customer": [200, 100, 0], "choice": ("two",)}),
        (
            [customers("db", weight=60), customers("web", weight=-40)],
            MIXED,
            {"customer": [20, 60, -40], "choice": ("h2",)},
        ),
        # A storage island holds its VMs.
        (
            [key("SAN", 2.0, 60.0, "server_sticky")],
            (node("one", {"SAN": 1.0}), node("two", {"SAN": 2.0})),
            {"system": [0, 60], "round": 4},
        ),
        # Idle hosts score the full weight; filling hosts needs a bias that keeps all acceptable.
        (IDLE, (node("idle"), node("half", **HALF_RAM, **HALF)), {"system": [100, 50]}),
        (FILL, TIERS, {"system": [0, 50]}),
        (FILL[:1], TIERS, {"failed": "threshold"}),
        # Noisy hosts are refused from a tenth on.
        *(
            ([key("NOISY", 1.0, -100.0, "cluster")], (node("h1", {"NOISY": noise}),), promised)
            for noise, promised in (
                (1, {"system": [-100], "choice": ()}),
                (0.2, {"system": [-20], "choice": ()}),
                (0.05, {"system": [-5], "choice": ("h1",)}),
                (0, {"system": [0], "choice": ("h1",)}),
            )
        ),
        # Customers avoid another one, and choose green hosts and a rack within a band.
        (
            [customers("tenantB", weight=-50)],
            (node("h1", None, ("tenantB",)), node("h2")),
            {"customer": [-50, 0], "choice": ("h2",)},
        ),
        ([customers("_GREEN", weight=50)], GREEN, {"customer": [50, 40], "choice": ("h1",)}),
        ([customers("_RACK", 2.0, 50.0)], RACKS, {"customer": [0, 50, 0]}),
        # Premium falls back to ordinary hosts; newer hardware scores by degrees.
        (PREMIUM, (FAST, ORDINARY), {"round": 1}),
        (PREMIUM, (ORDINARY,), {"round": 10}),
        ([key("GEN", 1.0, 80.0)], AGES, {"system": [0, 20, 40, 80]}),
        # One server weighs load more, and switches memory off.
        (SERVER, (node("idle"), node("busy", load=Fraction(1, 2), **HALF_RAM)), {"system": [130, 80]}),
    ],
)
def test_each_use_case(
    keys: list[PlacementKey], hosts: tuple[nodes.Node, ...], promised: dict[str, Any]
) -> None:
    decision = nodes.place(hosts, keys)
    found = {
        "system": [float(one.system.total) for one in decision.hosts if one.system],
        "customer": [float(one.customer.total) for one in decision.hosts if one.customer],
        "round": decision.round,
        "choice": decision.choice,
        "failed": decision.failed,
    }
    assert {name: found[name] for name in promised} == promised
