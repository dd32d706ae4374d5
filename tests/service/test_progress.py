"""A loop hangs when it has not got on for longer than it may."""

from __future__ import annotations

from ovirt_service.daemon import Progress


def test_a_loop_that_marks_its_progress_does_not_hang() -> None:
    now = [100.0]
    progress = Progress(5.0, lambda: now[0])
    assert not progress.hangs
    for _ in range(3):
        now[0] += 5.0
        assert not progress.hangs
        progress.mark()
    now[0] += 5.1
    assert progress.hangs
    progress.mark()
    assert not progress.hangs
