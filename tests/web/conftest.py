"""The page that most tests ask: two clusters, a violated rule, and names that would do harm."""

from collections.abc import Iterator

import pytest

from tests.builders import APART, SOFT_TOGETHER, cluster, group, host, snapshot, vm
from tests.web.running import HOSTILE, Page, paged

STATE = snapshot(
    cluster("c1", ha_reservation=True),
    cluster("c2"),
    host("h1", cluster="c1", name="alpha"),
    host("h2", cluster="c1", name="beta"),
    host("h3", cluster="c2", name=HOSTILE),
    vm("a", "h1", cluster="c1", name="db-1", ha=True),
    vm("b", "h1", cluster="c1", name="db-2", ha=True),
    vm("big", cluster="c1", name="too-large", needs_mb=60000),
    vm("x", "h3", cluster="c2", name=HOSTILE),
    group("g1", APART, "a b", cluster="c1", name="databases"),
    group("g2", SOFT_TOGETHER, "x", cluster="c2", name=HOSTILE),
)


@pytest.fixture(scope="module")
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """About this state, or about the module's own; a module may have further `LINES` of `[web]` as well."""
    state, web = getattr(request.module, "STATE", STATE), getattr(request.module, "LINES", "")
    with paged(tmp_path_factory.mktemp("page"), state, web=web) as found:
        yield found
