"""Every difference that is meant is used."""

from __future__ import annotations

from tools.engine_conformance.units import ALL_SWITCHES, UNITS


def test_every_switch_is_used_by_a_copy() -> None:
    used = {
        switch.name
        for unit in UNITS.values()
        for copy in unit.copies.values()
        for switch in (*copy.switches, *copy.beforehand)
    }
    assert used == set(ALL_SWITCHES)
