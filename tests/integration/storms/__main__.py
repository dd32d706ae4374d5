"""Runs storms and prints their figures: how long they take, what units failed, and where the VMs ended."""

from __future__ import annotations

import argparse
from itertools import product

from ovirt_service.tables import table
from tests.integration.storms.cluster import Storm, draw
from tests.integration.storms.figures import Figures
from tests.integration.storms.running import PATIENCE_SECONDS, run_alone, run_with_ours
from tests.integration.storms.stage import IDLE_UNITS
from tests.paths import PLUGINS

_UNITS = ("engine", "idle", "ours")
_HEADERS = (
    "starts",
    "threads",
    "units",
    "seconds",
    "ratio",
    "ms a start",
    "calls",
    "failed",
    "p50 ms",
    "p99 ms",
    "max ms",
    "age p50 s",
    "age max s",
    "refused",
    "lost",
    "chains torn",
    "groups violated",
    "9920",
    "9921",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.integration.storms", description=__doc__)
    parser.add_argument("--starts", type=int, nargs="+", default=[24], help="at once (24)")
    parser.add_argument("--threads", type=int, nargs="+", default=[20], help="of the engine (20)")
    parser.add_argument("--times", type=int, default=1, help="how often each is run (once)")
    parser.add_argument("--max-age", type=float, help="of what the inventory has published, in seconds")
    parser.add_argument(
        "--units",
        nargs="+",
        choices=_UNITS,
        default=("engine", "ours"),
        help="the engine's alone, ours, or idle ones in our proxy; ratios are to the first (engine ours)",
    )
    parser.add_argument(
        "--patience", type=float, default=PATIENCE_SECONDS, help="of the clients, in seconds (120)"
    )
    options = parser.parse_args()
    rows: list[list[str]] = []
    for starts, threads in product(options.starts, options.threads):
        storm = draw(starts)
        for _ in range(options.times):
            first: Figures | None = None
            for name in options.units:
                found = _run(name, storm, threads, options)
                first = first or found
                rows.append(_row(name, threads, found, found.burst.seconds / first.burst.seconds))
                print(f"{starts} starts, {threads} threads, {name}: {_remarks(found)}", flush=True)
    print()
    print(table(rows, _HEADERS))


def _run(name: str, storm: Storm, threads: int, options: argparse.Namespace) -> Figures:
    if name == "engine":
        return run_alone(storm, threads, options.patience)
    plugins = PLUGINS if name == "ours" else IDLE_UNITS
    return run_with_ours(storm, threads, options.patience, max_age=options.max_age, plugins=plugins)


def _row(name: str, threads: int, found: Figures, ratio: float) -> list[str]:
    calls = found.calls
    return [
        str(len(found.burst.answers)),
        str(threads),
        name,
        f"{found.burst.seconds:.1f}",
        f"{ratio:.2f}",
        f"{found.burst.seconds * 1e3 / len(found.burst.answers):.1f}",
        str(len(calls.seconds)),
        str(calls.failed),
        *(f"{calls.percentile(percent) * 1e3:.0f}" for percent in (50, 99, 100)),
        *(f"{calls.age(percent):.2f}" for percent in (50, 100)),
        str(len(found.burst.refused)),
        str(len(found.burst.lost)),
        f"{len(found.torn_chains)}/{len(found.storm.chains)}",
        str(found.violated),
        str(found.unreachable),
        str(len(found.unit_failures)),
    ]


def _remarks(found: Figures) -> str:
    """What the table has no room for: why units failed, what was refused, what the engine learned."""
    said = [f"failures of units {dict(found.calls.causes)}", f"hosts of torn chains {found.torn_chains}"]
    said += [f"refused {answer.status}: {answer.body[:200]}" for answer in found.burst.refused[:1]]
    return "; ".join([*said, *found.unit_failures[:2]])


if __name__ == "__main__":
    main()
