"""While somebody paused migrations, in a cluster or everywhere, none begins."""

from __future__ import annotations

from typing import Any

import pytest

from ovirt_placement.store.pauses import Pause
from tests.builders import CLUSTER, cluster

from .judging import PARTS, admitted, closed, gates

BLUE = (*PARTS, cluster(name="blue"))


def pause(where: str = "", **fields: Any) -> Pause:
    defaults: dict[str, Any] = {"cluster_name": where, "reason": "", "set_by": "eve", "until": None}
    return Pause(cluster=where, set_at=1_772_452_800.0, **{**defaults, **fields})


@pytest.mark.parametrize(
    ("paused", "sentence"),
    [
        (pause(), "eve paused everything at 2026-03-02 12:00+00:00"),
        (pause(reason="storage"), "eve paused everything at 2026-03-02 12:00+00:00 (storage)"),
        (pause(CLUSTER, cluster_name="blue"), "eve paused cluster blue at 2026-03-02 12:00+00:00"),
        (pause("blue"), "eve paused cluster blue at 2026-03-02 12:00+00:00"),
    ],
    ids=["everywhere", "with a reason", "by id", "by name"],
)
def test_a_pause_closes(paused: Pause, sentence: str) -> None:
    assert closed(gates(pauses=(pause("red"), paused)), *BLUE) == ("pause", sentence)


def test_a_pause_of_another_cluster_does_not() -> None:
    assert admitted(gates(pauses=(pause("red"),)), *BLUE)
