"""Plays scenarios and writes down what was said, to be read before it is committed: give their names."""

import sys
import tempfile
from pathlib import Path

from tests.scenarios.stage import play

for name in sys.argv[1:]:
    scenario = Path(__file__).parent / name
    with tempfile.TemporaryDirectory() as folder:
        lines = play(scenario, Path(folder))
    (scenario / "decisions.log").write_text("\n".join(lines) + "\n")
    print(f"--- {name}", *lines, sep="\n")
