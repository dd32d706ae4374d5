"""Nouns and verbs agree with their number."""

from __future__ import annotations

import pytest

from ovirt_placement.model.amounts import be, counted


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 VMs are"), (1, "1 VM is"), (2, "2 VMs are"), (21, "21 VMs are")]
)
def test_amounts(number: int, said: str) -> None:
    assert f"{counted(number, 'VM')} {be(number)}" == said
