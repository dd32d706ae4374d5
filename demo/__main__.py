"""`make demo` and `make page`: the story, or the page of a large cluster; nothing is left behind."""

import argparse
import signal
import sys
from pathlib import Path

from demo.stage import TIME_SCALE, Stage, demonstrate, page_text
from demo.story import Story
from ovirt_simulator.generate import Sizes, generate

#: There are as many affinity groups as hosts, and this share of them is violated.
_VIOLATED = 0.02


def main() -> int:
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="draws another cluster (SEED=n)")
    parser.add_argument("--keep", action="store_true", help="leave it running until Ctrl-C (KEEP=1)")
    parser.add_argument("--hosts", type=int, help="no story, but the page of this number of hosts (HOSTS=n)")
    parser.add_argument("--vms", type=int, default=10_000, help="and of this number of VMs (VMS=n)")
    arguments = parser.parse_args()
    hosts, seed = arguments.hosts, arguments.seed
    if hosts is not None:
        sizes = Sizes(hosts=hosts, vms=arguments.vms, groups=hosts, broken=_VIOLATED)
        return demonstrate("make page", lambda folder: _serve(Stage(folder, seed), sizes))

    def show(folder: Path) -> None:
        story = Story(folder, seed, kept=arguments.keep)
        with story.processes:
            story.report()
            if arguments.keep:
                print(f"\n=== It keeps running; Ctrl-C ends it.\n\n{story.farewell()}", flush=True)
                signal.pause()

    return demonstrate("make demo", show, interrupted=0 if arguments.keep else 130)


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
