"""Every difference that is meant has a name, stands on the page for developers, and is used."""

from __future__ import annotations

import re

from tests.engine.units import ALL_SWITCHES, UNITS
from tests.paths import CHECKOUT

PAGE = CHECKOUT / "docs" / "developers" / "engine-conformance.md"


def test_the_page_lists_the_switches() -> None:
    told = dict(re.findall(r"^\| `([^`]+)` \| (.+) \|$", PAGE.read_text("utf-8"), re.MULTILINE))
    listed = {name: told[name] for name in told if name in ALL_SWITCHES}
    assert listed == {name: switch.says for name, switch in ALL_SWITCHES.items()}


def test_every_switch_is_used_by_a_copy() -> None:
    used = {
        switch.name
        for unit in UNITS.values()
        for copy in unit.copies.values()
        for switch in (*copy.switches, *copy.beforehand)
    }
    assert used == set(ALL_SWITCHES)
