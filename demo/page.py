"""`make page`: a large simulated cluster with the page, until Ctrl-C; nothing is left behind."""

import argparse
import signal
import sys

from demo.stage import TIME_SCALE, Stage, demonstrate, page_text
from ovirt_simulator.generate import Sizes, generate

#: There are as many affinity groups as hosts, and this share of them is violated.
_VIOLATED = 0.02


def main() -> int:
    parser = argparse.ArgumentParser(prog="make page", description=__doc__)
    parser.add_argument("--hosts", type=int, default=500, help="how many hosts (HOSTS=n)")
    parser.add_argument("--vms", type=int, default=10_000, help="how many VMs (VMS=n)")
    parser.add_argument("--seed", type=int, default=1, help="draws another cluster (SEED=n)")
    arguments = parser.parse_args()
    hosts, seed = arguments.hosts, arguments.seed
    sizes = Sizes(hosts=hosts, vms=arguments.vms, groups=hosts, broken=_VIOLATED)
    return demonstrate("make page", lambda folder: _serve(Stage(folder, seed), sizes))


def _serve(stage: Stage, sizes: Sizes) -> None:
    with stage.processes:
        print(page_text(stage.start_all(generate(sizes, stage.seed), "approve")))
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
