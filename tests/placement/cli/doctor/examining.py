"""States for `ovirt-placement doctor`, and what it finds in them."""

from tests.builders import SOFT_TOGETHER, TOGETHER, cluster, group, host, snapshot, vm
from tests.placement.cli.live_engine import LiveEngine

EMPTY = snapshot(cluster("c1", name="blue"), host("h1", cluster="c1"))
RULED = snapshot(
    cluster("c1", name="blue", ha_reservation=True),
    host("h1", cluster="c1"),
    host("h2", cluster="c1"),
    vm("v1", "h1", cluster="c1", ha=True),
    vm("v2", "h2", cluster="c1"),
    group("g1", SOFT_TOGETHER, "v1 v2", cluster="c1", name="near"),
    group("g2", TOGETHER, "v1 v2", cluster="c1", name="tied", hosts_rule=TOGETHER, hosts="h1 h2"),
)


def findings(live: LiveEngine, *arguments: str) -> list[str]:
    """What doctor finds, but for the inventory, which none of these tests runs but one."""
    found = live.data(1, "doctor", *arguments)
    assert all("the proxy: there is no" in each for each in found["not_examined"])
    return [each["sentence"] for each in found["findings"] if not each["sentence"].startswith("no inventory")]
