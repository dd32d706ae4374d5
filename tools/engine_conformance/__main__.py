"""Compares our copies of the engine's units with the engine: `python -m tools.engine_conformance DIR`."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from tools.engine_conformance.comparing import Comparison, Difference, compare
from tools.engine_conformance.engine import Engine
from tools.engine_conformance.units import UNITS

#: How many differences of a copy are printed and written down.
_SHOWN = 3


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tools.engine_conformance", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR", help="the engine's compiled classes, as jars")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--questions", type=int, metavar="N", help="for each unit")
    parser.add_argument("--unit", action="append", choices=sorted(UNITS), help="only these")
    parser.add_argument("--copy", action="append", help="only these: product, simulator")
    parser.add_argument("--write", type=Path, metavar="DIR", help="where differences are written")
    options = parser.parse_args(arguments)
    if not options.folder.is_dir():
        parser.error(f"{options.folder}: no such folder")
    differing = 0
    with Engine(options.folder) as engine:
        for name in options.unit or UNITS:
            unit, started = UNITS[name], time.monotonic()
            number = options.questions or unit.number
            found = compare(unit, engine.ask, unit.questions(options.seed, number), options.copy)
            for copy, comparison in found.items():
                differing += len(comparison.differences)
                print(_told(name, copy, comparison), f"({time.monotonic() - started:.0f} s)", flush=True)
                for at, difference in enumerate(comparison.differences[:_SHOWN]):
                    print("  ", json.dumps({"engine": _once(difference.engine), "ours": difference.ours}))
                    if options.write:
                        write(options.write / f"{copy}-{name}-{at + 1}.json", difference)
    return 1 if differing else 0


def _told(unit: str, copy: str, comparison: Comparison) -> str:
    switched = "".join(f", {number} by {name}" for name, number in sorted(comparison.switched.items()))
    return f"{unit}, {copy}: {comparison.asked} asked, {len(comparison.differences)} differ{switched}"


def _once(answer: Any) -> Any:
    """Each of several runs once."""
    if not isinstance(answer, list):
        return answer
    return [one for at, one in enumerate(answer) if one not in answer[:at]]


def write(path: Path, difference: Difference) -> None:
    """In the form of a state file, with the request and both answers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    question = difference.question
    content = {
        "name": path.stem,
        "unit": difference.unit,
        "copy": difference.copy,
        **question.state,
        "request": question.request,
        "engine": _once(difference.engine),
        difference.copy: difference.ours,
    }
    path.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
