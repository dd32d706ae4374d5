"""Two engines on one page: its promises hold for the second one too, and neither opens the other."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ovirt_placement import config
from ovirt_placement_web.settings import WebSettings, engines
from ovirt_service.errors import UserError
from tests.builders import cluster, host, snapshot
from tests.configuration import write_configuration
from tests.web import test_statements
from tests.web.conftest import STATE
from tests.web.running import COOKIE, Page, paged_several

pytestmark = pytest.mark.system

#: The same promises, of the second engine: `page` is its part of the page here.
globals().update({name: test for name, test in vars(test_statements).items() if name.startswith("test_")})

WEST = snapshot(cluster("w1", name="western"), host("wh", cluster="w1"))


class Two(NamedTuple):
    """The parts of the page: of the engine that was there first, and of the second one."""

    west: Page
    east: Page


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    with paged_several(tmp_path_factory.mktemp("page"), WEST, STATE, first=("w1", "c1")) as pages:
        yield Two(*pages)


@pytest.fixture(scope="module")
def page(two: Two) -> Page:
    return two.east


def test_a_session_of_one_is_nothing_in_another(two: Two) -> None:
    for one, other in (two, reversed(two)):
        cookie = one.session()
        csrf = one.csrf(cookie)
        assert one.ask("/", cookie=cookie).status == 200
        assert other.ask("/", cookie=cookie).status == 303
        assert other.ask("/", Cookie=f"{one.cookie}={cookie}; {other.cookie}={cookie}").status == 303
        assert other.ask("/events", cookie=cookie).status == 401
        assert other.ask("/api/v1/status", cookie=cookie).status == 401
        for path in ("/cluster/c1/pause", "/cluster/w1/pause", "/health", "/group/g1/edit"):
            form = {"csrf": csrf, "hours": "1"}
            assert other.ask(path, cookie=cookie, form=form).status == 401
            # Nor does a form of one in a session of the other.
            assert other.ask(path, cookie=other.session(), form=form).status == 403


def test_a_token_of_one_engine_is_nothing_in_another(two: Two) -> None:
    for one, other in (two, reversed(two)):
        token = one.server.tokens.log_in("admin@internal", "password")
        assert one.ask("/api/v1/status", Authorization=f"Bearer {token}").status == 200
        assert other.ask("/api/v1/status", Authorization=f"Bearer {token}").status == 401
        assert other.ask("/log-in/token", form={"token": token}).status == 401


def test_a_browser_has_sessions_of_both(two: Two) -> None:
    west, east = two.west.session(), two.east.session()
    both = f"{two.west.cookie}={west}; {two.east.cookie}={east}"
    assert two.west.cookie == COOKIE != two.east.cookie
    assert "western" in two.west.ask("/", Cookie=both).text
    assert "c2" in two.east.ask("/", Cookie=both).text
    assert two.west.ask("/log-out", Cookie=both, form={"csrf": two.west.csrf(west)}).status == 303
    assert (two.west.ask("/", Cookie=both).status, two.east.ask("/", Cookie=both).status) == (303, 200)


def test_the_clusters_of_all_are_seen_by_who_is_logged_in_there(two: Two) -> None:
    west, east = two.west.session(), two.east.session()
    text = two.west.ask("/", cookie=west).text
    assert "western" in text
    assert 'hx-get="/ovirt-placement/engine/east/summary"' in text
    assert 'hx-get="/ovirt-placement/summary"' in two.east.ask("/", cookie=east).text
    assert "/ovirt-placement/engine/east/cluster/c1" not in text
    stranger = two.east.ask("/summary", Cookie=f"{two.west.cookie}={west}")
    assert stranger.status == 200
    assert "not logged in there" in stranger.text
    assert "/cluster/c1" not in stranger.text
    shown = two.east.ask("/summary", cookie=east).text
    assert "/ovirt-placement/engine/east/cluster/c1" in shown
    assert "Unhealthy" in shown or "Degraded" in shown  # for the violated rule
    assert "as of" in shown


def test_an_act_is_in_the_engine_that_it_belongs_to(two: Two) -> None:
    cookie = two.east.session()
    form = {"hours": "1", "reason": "test"}
    assert two.east.act("/cluster/w1/pause", cookie, **form).status == 404
    assert two.east.act("/cluster/c1/pause", cookie, **form).status == 303
    two.east.until(lambda: "are paused" in two.east.ask("/cluster/c1", cookie=cookie).text)
    west = two.west.session()
    assert "are paused" not in two.west.ask("/cluster/w1", cookie=west).text
    lines = [json.loads(line) for line in two.east.audit().splitlines()]
    (paused,) = [one for one in lines if one["act"] == "pause" and one["on"] == "cluster c1 (c1)"][-1:]
    assert paused["engine"] == "east"
    assert "engine" not in lines[-1]  # a log-in to the first one
    assert two.east.act("/cluster/c1/resume", cookie).status == 303


def test_one_that_is_away_leaves_the_other(tmp_path: Path) -> None:
    with paged_several(tmp_path, WEST, STATE, first=("w1", "c1")) as (west, east):
        cookies = west.session(), east.session()
        east.server.close()
        east.until(lambda: "the engine does not answer" in east.ask("/summary", cookie=cookies[1]).text)
        assert "/cluster/c1" in east.ask("/summary", cookie=cookies[1]).text
        assert east.log_in().status == 503
        assert west.log_in().status == 303
        assert "does not answer" not in west.ask("/", cookie=cookies[0]).text


def test_two_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = write_configuration(tmp_path / "other", "http://127.0.0.1:9/ovirt-engine/api")
    file = write_configuration(
        tmp_path, "http://127.0.0.1:9/ovirt-engine/api", more=f'[web]\nengines = ["{other}"]\n'
    )
    found = config.load(file, {})
    with pytest.raises(UserError, match='another engine has the name "default": set \\[engine\\] name'):
        engines(found, found.section("web", WebSettings))
