"""`make bench`: runs every registered benchmark and prints its tables. All results are ratios of one run."""

from __future__ import annotations

import argparse
import importlib

#: The benchmark modules of this package. Each has a `main()` that prints what it measured.
BENCHMARKS = ("proxy", "placement", "inventory", "ha", "enforcer", "web")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.benchmarks", description=__doc__)
    parser.add_argument("only", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; default: all")
    chosen = parser.parse_args().only or BENCHMARKS
    for name in chosen:
        print(f"\n== {name} ==", flush=True)
        importlib.import_module(f"tools.benchmarks.{name}").main()


if __name__ == "__main__":
    main()
