"""`make bench`: runs every registered benchmark and prints its tables. All results are ratios of one run."""

import argparse

from tools.benchmarks import costs, planning, proxy

#: Each prints what it measured.
BENCHMARKS = {
    "proxy": proxy.compare_with_echo,
    "placement": proxy.compare_with_trivial,
    "inventory": costs.watch_inventory,
    "ha": planning.show_failures,
    "enforcer": planning.show_plans,
    "web": costs.watch_page,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.benchmarks", description=__doc__)
    parser.add_argument("only", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; default: all")
    for name in parser.parse_args().only or BENCHMARKS:
        print(f"\n== {name} ==", flush=True)
        BENCHMARKS[name]()


if __name__ == "__main__":
    main()
