"""The page speaks of the configuration that stands in the file, not of the one that it read at its start."""

from __future__ import annotations

import time
from pathlib import Path

from ovirt_placement import config
from ovirt_placement.answers.status.health import HealthState, StateSource
from ovirt_placement_web.state.questions import Questions
from ovirt_placement_web.state.sources import Past, View
from tests.builders import host, snapshot
from tests.configuration import write_configuration


def test_a_mode_that_was_changed_since_is_not_called_one_that_is_still_to_come(tmp_path: Path) -> None:
    path = write_configuration(
        tmp_path, "http://127.0.0.1:1/ovirt-engine/api", more='[enforcer]\nmode = "observe"\n'
    )
    found = config.load(path)
    questions = Questions(found, Past(found))
    parts = HealthState(snapshot=snapshot(host("h1")), source=StateSource(kind="inventory", where="here"))

    def configured_mode(number: int) -> str | None:
        found = questions.status(View(number, parts, time.monotonic(), None)).enforcer
        return None if found is None else found.configured_mode

    assert configured_mode(1) == "observe"
    path.write_text(path.read_text().replace("observe", "approve"))
    assert configured_mode(2) == "approve"
    path.write_text(path.read_text().replace("approve", "aprove"))
    assert configured_mode(3) is None
    path.write_text("[engine")
    (mistake,) = questions.status(View(4, parts, time.monotonic(), None)).mistakes
    assert str(path) in mistake
