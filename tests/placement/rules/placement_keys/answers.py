"""What the units answer about the VM "new" of a snapshot."""

from __future__ import annotations

from typing import Any

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.placement_keys.placing import filter_hosts, rank_hosts
from ovirt_placement.rules.placement_keys.settings import DEFAULTS, KeySettings
from ovirt_placement.rules.verdict import Request
from tests.builders import host
from tests.placement.rules.placement_keys.parts import key

TWO_HOSTS = (host("h1"), host("h2"))

#: Keeps the VM away from those that bring the same.
REPEL = key("Repel1", weight=-100.0, key_class="customer")


def asked(*hosts: str, vms: str = "new") -> Request:
    return Request(tuple(vms.split()), hosts or ("h1", "h2"))


def ranks(state: Snapshot, *hosts: str, **options: Any) -> dict[str, int]:
    return {weight.host: weight.rank for weight in rank_hosts(state, asked(*hosts), **options)}


def accepted(state: Snapshot, *hosts: str, settings: KeySettings = DEFAULTS) -> list[str]:
    return [verdict.host for verdict in filter_hosts(state, asked(*hosts), settings) if verdict.accepted]
