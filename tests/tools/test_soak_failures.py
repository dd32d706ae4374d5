"""Which failures of units the soak takes for explained."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from tools.soak.failures import FailureLog, Outage

_AWAY = "F raised NoSnapshot: no fresh snapshot: http://e: the engine does not answer; it filtered no host"
_KILLED = "F lost its worker process several times: it was killed"
_CUT_OFF = "F is cut off for up to 30 s because it fails again and again"


@pytest.mark.parametrize(
    ("time", "reported", "kind"),
    [
        ("10:00:05,000", _AWAY, "engine away"),
        ("10:00:20,000", _AWAY, "engine away"),
        ("09:59:59,000", _AWAY, None),
        ("10:01:00,000", _CUT_OFF, None),
        ("10:01:00,000", _KILLED, "worker killed"),
        ("10:00:05,000", "F raised KeyError: 'h1'", None),
    ],
)
def test_a_failure_is_explained_by_its_kind_and_its_moment(
    time: str, reported: str, kind: str | None, tmp_path: Path
) -> None:
    file = tmp_path / "proxy.log"
    log = FailureLog(file, [Outage(_seconds("10:00:00"), _seconds("10:00:10"))])
    line = f"2026-01-01 {time} WARNING [c1-1] {reported}"
    file.write_text(f"{line}\n{line.replace('] F ', '] G ')}\n2026-01-01 10:00")
    found = log.take()
    assert found.calls == 1
    assert dict(found.kinds) == ({kind: 2} if kind else {})
    assert len(found.unexplained) == (0 if kind else 2)
    assert log.take().calls == 0


def _seconds(time: str) -> float:
    return datetime.fromisoformat(f"2026-01-01 {time}").timestamp()
