"""`ovirt-placement keys list`: the keys that are set, by whom and when."""

from __future__ import annotations

import argparse

from ovirt_placement.answers.keys.listing import key_headers, key_rows, keys_list
from ovirt_placement.cli.keys.state import read_keys
from ovirt_placement.cli.question import show, show_answer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", metavar="NAME", help="only keys of this name")
    parser.add_argument(
        "--on",
        nargs="+",
        metavar=("LEVEL", "RESOURCE"),
        help="only keys of this level, or of this object",
    )


def run(args: argparse.Namespace) -> int:
    snapshot, authors = read_keys(args)
    answer = keys_list(snapshot, authors, name=args.name, on=args.on)
    if args.json:
        show_answer(args, answer)
    elif answer.keys:
        show(key_rows(answer), key_headers(answer), whole=args.all)
    else:
        print("No keys.")
    return 0
