"""`make demo`: runs the story, and leaves no process and no file behind."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from demo.processes import ProcessFailed
from demo.story import Story


def main() -> int:
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="draws another cluster (SEED=n)")
    parser.add_argument("--keep", action="store_true", help="leave it running until Ctrl-C (KEEP=1)")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, interrupt)
    folder = Path(tempfile.mkdtemp(prefix="ovirt-placement-demo-"))
    try:
        return _report(Story(folder, arguments.seed, kept=arguments.keep), keep=arguments.keep)
    except KeyboardInterrupt:
        return 0 if arguments.keep else 130
    finally:
        shutil.rmtree(folder)


def _report(story: Story, *, keep: bool) -> int:
    with story.processes:
        try:
            story.report()
        except ProcessFailed as failure:
            print(f"make demo: {failure}", file=sys.stderr)
            return 1
        if keep:
            print(f"\n=== It keeps running; Ctrl-C ends it.\n\n{story.farewell()}", flush=True)
            signal.pause()
    return 0


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
