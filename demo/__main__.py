"""`make demo`: runs the story, and leaves no process and no file behind."""

import argparse
import signal
import sys
from pathlib import Path

from demo.stage import demonstrate
from demo.story import Story


def main() -> int:
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="draws another cluster (SEED=n)")
    parser.add_argument("--keep", action="store_true", help="leave it running until Ctrl-C (KEEP=1)")
    arguments = parser.parse_args()

    def show(folder: Path) -> None:
        story = Story(folder, arguments.seed, kept=arguments.keep)
        with story.processes:
            story.report()
            if arguments.keep:
                print(f"\n=== It keeps running; Ctrl-C ends it.\n\n{story.farewell()}", flush=True)
                signal.pause()

    return demonstrate("make demo", show, interrupted=0 if arguments.keep else 130)


if __name__ == "__main__":
    sys.exit(main())
