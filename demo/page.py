"""`make page`: a large simulated cluster with the page, until Ctrl-C; nothing is left behind."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from demo.__main__ import interrupt
from demo.processes import ProcessFailed
from demo.stage import TIME_SCALE, Stage
from ovirt_simulator.generate import Sizes, generate

#: There are as many affinity groups as hosts, and this share of them is violated.
_VIOLATED = 0.02


def main() -> int:
    parser = argparse.ArgumentParser(prog="make page", description=__doc__)
    parser.add_argument("--hosts", type=int, default=500, help="how many hosts (HOSTS=n)")
    parser.add_argument("--vms", type=int, default=10_000, help="how many VMs (VMS=n)")
    parser.add_argument("--seed", type=int, default=1, help="draws another cluster (SEED=n)")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, interrupt)
    folder = Path(tempfile.mkdtemp(prefix="ovirt-placement-page-"))
    stage = Stage(folder, arguments.seed)
    try:
        with stage.processes:
            hosts = arguments.hosts
            _run(stage, Sizes(hosts=hosts, vms=arguments.vms, groups=hosts, broken=_VIOLATED))
    except ProcessFailed as failure:
        print(f"make page: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0
    finally:
        shutil.rmtree(folder)
    return 0


def _run(stage: Stage, sizes: Sizes) -> None:
    state = generate(sizes, stage.seed)
    stage.start_engine(state)
    stage.configure("approve")
    stage.start("ovirt-placement", "inventory", "run")
    print(stage.start_page(), flush=True)
    stage.start("ovirt-enforcer", "run")
    print(
        f"{sizes.hosts} hosts and {sizes.vms} VMs. Some rules are violated, and remain so until you\n"
        "approve of the plan that the enforcer makes within a minute. The engine's clock runs\n"
        f"{TIME_SCALE} times as fast as yours. Logs: {stage.folder}. Ctrl-C ends it.",
        flush=True,
    )
    while True:
        signal.pause()


if __name__ == "__main__":
    sys.exit(main())
