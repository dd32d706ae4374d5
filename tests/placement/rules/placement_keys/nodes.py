"""What the units answer about a state with placement keys."""

from typing import Any

from msgspec.structs import replace

from ovirt_placement.model import FrozenKeys, PlacementKey, Snapshot, StickyCopy
from ovirt_placement.rules.elements.verdict import Request
from ovirt_placement.rules.placement_keys.keys import DEFAULTS, KeySettings
from ovirt_placement.rules.placement_keys.units import filter_hosts, rank_hosts
from tests import builders as build
from tests.builders import host

TWO_HOSTS = (host("h1"), host("h2"))


def asked(
    *hosts: str,
    vms: str = "new",
    settings: KeySettings = DEFAULTS,
    placement_tie: str = "random",
    **fields: Any,
) -> Request:
    """A question by the parameters of these settings."""
    numbers = {
        "placement_initial": settings.initial, "placement_final": settings.final,
        "placement_steps": settings.steps, "placement_overhead": settings.overhead_mb,
        "placement_memory_ratio": settings.memory_ratio, "placement_cpu_ratio": settings.cpu_ratio,
    }  # fmt: skip
    parameters = {name: str(float(number)) for name, number in numbers.items() if number is not None}
    parameters["placement_reserved_from_vms"] = str(settings.reserved_from_vms).lower()
    parameters["placement_load"] = "average" if settings.load_average else "cpu"
    parameters["placement_tie"] = placement_tie
    return Request(tuple(vms.split()), hosts or ("h1", "h2"), parameters=parameters, **fields)


def ranks(state: Snapshot, *hosts: str, **fields: Any) -> dict[str, int]:
    return {weight.host: weight.rank for weight in rank_hosts(state, asked(*hosts, **fields))}


def accepted(state: Snapshot, *hosts: str, **fields: Any) -> list[str]:
    return [verdict.host for verdict in filter_hosts(state, asked(*hosts, **fields)) if verdict.accepted]


def keyed(
    *parts: build.Part,
    keys: tuple[PlacementKey, ...] = (),
    frozen: dict[str, dict[str, float]] | None = None,
    copies: tuple[StickyCopy, ...] = (),
    **fields: Any,
) -> Snapshot:
    """A snapshot with keys; `frozen` shows the recorded keys of running VMs."""
    records = tuple(FrozenKeys(vm=vm, keys=tuple(one.items())) for vm, one in (frozen or {}).items())
    return replace(
        build.snapshot(*parts), placement_keys=keys, frozen_keys=records, sticky_copies=copies, **fields
    )
