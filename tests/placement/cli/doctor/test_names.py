"""What `ovirt-placement doctor` says of names of the configuration that match nothing."""

from __future__ import annotations

from tests.builders import cluster, host, snapshot, vm
from tests.placement.cli.doctor.examining import findings
from tests.placement.cli.live_engine import Starting

STATE = snapshot(
    cluster("c1", name="blue"),
    host("h1", cluster="c1", tags=("rack-1",)),
    vm("v1", "h1", cluster="c1", name="web", tags=("leave-alone",)),
)
SETTINGS = """
[ha]
domain_tags = ["rack-", "room-"]
[enforcer]
exclude_vms = ["web", "wbe", "pbs-*"]
exclude_tag = "{tag}"
"""


def test_each_is_a_finding_with_what_it_is_like(serving: Starting) -> None:
    with serving(STATE) as live:
        before = live.config.read_text()
        live.config.write_text(before + SETTINGS.format(tag="leave-alone"))
        found = [one for one in findings(live) if one.startswith(("[enforcer]", "[ha]"))]
        assert found == [
            "[ha] domain_tags: there is no tag of a host room-",
            '[enforcer] exclude_vms: there is no VM wbe; did you mean "web"?',
            "[enforcer] exclude_vms: pbs-* names no VM",
        ]
        live.config.write_text(before + SETTINGS.format(tag="leave-alon"))
        assert any(
            one.startswith("[enforcer] exclude_tag: there is no tag leave-alon") for one in findings(live)
        )
