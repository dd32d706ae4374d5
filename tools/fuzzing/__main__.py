"""`python -m tools.fuzzing NAME`: runs a fuzzer for long, and says how to repeat what broke its reader."""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time

from . import FUZZERS, fuzzer


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzzing", description=__doc__)
    parser.add_argument("name", choices=FUZZERS, help="what is read")
    parser.add_argument("--inputs", type=int, default=1_000_000, help="how many (default 1,000,000)")
    parser.add_argument("--seed", type=int, default=0, help="that of the first input; each next has the next")
    options = parser.parse_args()
    attempt, began = fuzzer(options.name), time.monotonic()
    slowest = 0.0
    for seed in range(options.seed, options.seed + options.inputs):
        started = time.monotonic()
        try:
            attempt(random.Random(seed))
        except BaseException:
            print(
                f"to repeat: python -m tools.fuzzing {options.name} --inputs 1 --seed {seed}", file=sys.stderr
            )
            raise
        slowest = max(slowest, time.monotonic() - started)
    seconds, memory = time.monotonic() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    reported = f"{options.inputs:,} inputs in {seconds:.0f} s, slowest {slowest * 1e3:.0f} ms, {memory} MiB"
    print(f"{options.name}: {reported}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
