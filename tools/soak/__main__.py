"""`make soak`: runs the soak and prints its windows. Ends with 1 if anything was lost, wrong, or grew."""

from __future__ import annotations

import argparse
import sys

from ovirt_service.tables import table

from .running import Plan, soak
from .windows import HEADERS, Window, verdict


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.soak", description=__doc__)
    parser.add_argument("--calls", type=int, default=1_000_000, help="how many (default 1,000,000)")
    parser.add_argument("--windows", type=int, default=20, help="how often it is measured (default 20 times)")
    parser.add_argument("--engine-seconds", type=float, default=60.0, help="how long an engine lives (60)")
    parser.add_argument("--kill-seconds", type=float, default=1.0, help="until a worker is killed (1)")
    options = parser.parse_args()
    plan = Plan(options.calls, options.windows, options.engine_seconds, options.kill_seconds)
    windows: list[Window] = []
    for window in soak(plan):
        windows.append(window)
        print(window.line(), flush=True)
    print()
    print(table([each.cells() for each in windows], HEADERS))
    found = verdict(windows)
    print("\n".join(found) or "Nothing was lost, wrong or unexplained, and nothing grew.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
