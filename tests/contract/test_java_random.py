"""The engine's own client reads thousands of answers of random and hostile units, and none makes it throw."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.proxy.running import running

from . import random_units
from .java_side import java_class_path

pytestmark = [pytest.mark.java, pytest.mark.nightly]

ANSWERS = 10_000

CONFIG = """
[calls]
deadline_seconds = 1
[workers]
memory_mib = 128
[log]
level = "error"
"""


def test_no_answer_makes_the_engine_throw(tmp_path: Path) -> None:
    class_path = java_class_path()
    folder = tmp_path / "plugins"
    folder.mkdir()
    shutil.copy(random_units.__file__, folder / "random_units.py")
    hostile = ",".join(f"Hostile{number}" for number in range(random_units.HOSTILE))
    with running(folder, config=CONFIG) as proxy:
        command = ["java", "-cp", class_path, "contract.RandomAnswers", proxy.url, str(ANSWERS), hostile]
        read = subprocess.run(command, capture_output=True, text=True, timeout=500)
        assert read.returncode == 0, read.stderr
        units, answers, failures, full = (int(word) for word in read.stdout.split() if word.isdigit())
    assert units == random_units.HOSTILE + 4
    assert answers == ANSWERS
    assert min(failures, ANSWERS - failures, full) > ANSWERS // 5
