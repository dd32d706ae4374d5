"""A file of keys is tried on a live engine, also where it refers to what no key that is set refers to."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from ovirt_placement.model import Disk, Network, Nic, Snapshot, VnicProfile
from tests import builders as build
from tests.placement.cli.live_engine import Starting

KEYS = """\
node_keys:
  - {cluster: cluster1, name: FAST, values: {h1: 0, h2: 1}}
keys:
  - {level: LEVEL, resource: RESOURCE, class: system, name: FAST, value: 1, weight: 80}
"""


def state() -> Snapshot:
    vm = build.vm(
        "v",
        owner="ann",
        disks=(Disk(id="d", bootable=True, profile="gold"),),
        nics=(Nic(id="n", name="nic1", vnic_profile="p"),),
    )
    return replace(
        build.snapshot(build.host("h1"), build.host("h2"), vm),
        networks=(Network(id="net", name="front"),),
        vnic_profiles=(VnicProfile(id="p", name="profile", network="net"),),
    )


@pytest.mark.parametrize(
    ("level", "resource"),
    [
        ("customer", "ann"),
        ("disk_offer", "gold"),
        ("disk", "d"),
        ("network", "front"),
        ("nic_offer", "profile"),
        ("nic", "v/nic1"),
    ],
)
def test_keys_of_a_file_find_what_they_refer_to(
    level: str,
    resource: str,
    serving: Starting,
    tmp_path: Path,
) -> None:
    file = tmp_path / "keys.yaml"
    file.write_text(KEYS.replace("LEVEL", level).replace("RESOURCE", resource))
    with serving(state()) as live:
        assert live.data(0, "keys", "explain", "v", "--keys", str(file))["choice"] == ["h2"]
        # None of them was set.
        assert live.data(0, "keys", "explain", "v")["choice"] == ["h1", "h2"]
