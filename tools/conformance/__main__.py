"""Shows how far our answers agree with a folder of vectors: `python -m tools.conformance DIR`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.conformance.kinds import JUDGEMENTS
from tools.conformance.vector import Vector, load


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="conformance", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR", help="vectors, at any depth")
    folder = parser.parse_args(arguments).folder
    if not folder.is_dir():
        parser.error(f"{folder}: no such folder")
    agree = not_yet = 0
    differing: dict[str, str] = {}
    for vector in load(folder):
        if vector.kind not in JUDGEMENTS:
            not_yet += 1
        elif why := _difference(vector):
            differing[vector.name] = why
        else:
            agree += 1
    for name, why in differing.items():
        print(f"{name}: {why}")
    print(f"agree {agree}, differ {len(differing)}, not yet {not_yet}")
    return 1 if differing else 0


def _difference(vector: Vector) -> str | None:
    try:
        return JUDGEMENTS[vector.kind](vector)
    except Exception as error:  # one vector that cannot be answered must not hide the others
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    sys.exit(main())
