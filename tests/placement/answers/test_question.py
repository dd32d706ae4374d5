"""What questions declare: words that name something, and addresses of the API."""

from __future__ import annotations

import pytest

from ovirt_placement.answers.question import SOME_HOSTS
from ovirt_placement_web.api import addresses
from ovirt_service.errors import UserError
from tests.builders import host, snapshot

STATE = snapshot(host("h1", name="north"), host("h2", name="south"))


def test_a_word_has_several_names_each_once() -> None:
    assert [one.id for one in SOME_HOSTS.find("south, h1,h2", STATE, {})] == ["h2", "h1"]
    with pytest.raises(UserError, match=r'^no host "nort"; did you mean "north"\?$'):
        SOME_HOSTS.find("h1,nort", STATE, {})


def test_each_address_is_declared_once_and_needs_what_it_takes() -> None:
    found = addresses()
    assert len({one.route.path for one in found}) == len(found)
    for one in found:
        assert set(one.route.required) <= one.keys.keys(), one.route.path
