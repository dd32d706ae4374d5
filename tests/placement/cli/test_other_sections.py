"""A mistake in the enforcer's section is reported before somebody wonders why the enforcer does not start."""

from __future__ import annotations

from tests.builders import host, snapshot
from tests.placement.cli.live_engine import Starting

WRONG = '[enforcer]\nmode = "enforse"\n'


def test_status_and_doctor_report_it(serving: Starting) -> None:
    with serving(snapshot(host("h1")), more=WRONG) as live:
        out, _ = live.run(1, "status")
        reported = out.splitlines()[0]
        assert 'mode: cannot be "enforse"' in reported
        (mistake,) = live.data(1, "status")["mistakes"]
        assert reported == f"Unhealthy: a command will not start: {mistake}."
        kinds = {each["kind"] for each in live.data(1, "doctor")["findings"]}
        assert "mistaken_configuration" in kinds
