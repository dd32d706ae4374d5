"""Parts that are killed at random moments while VMs start: no lawful start is refused, no unit disabled."""

from __future__ import annotations

import pytest

from tools.faults import kills


@pytest.mark.system
def test_kills_refuse_no_start_and_disable_no_unit() -> None:
    figures = kills.run(4)
    assert (figures.refused, figures.violated, figures.disabled) == ([], 0, set())
    assert figures.starts >= 1
    assert figures.off or figures.kills.keys() <= {kills.WORKER, kills.INVENTORY, kills.ENGINE}
