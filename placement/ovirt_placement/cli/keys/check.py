"""`ovirt-placement keys check`: what is wrong with the keys that are set."""

from __future__ import annotations

import argparse

from ovirt_placement.answers.keys.listing import MISTAKE_HEADERS, keys_check, mistake_rows
from ovirt_placement.cli.keys.state import read_keys
from ovirt_placement.cli.question import show, show_answer


def run(args: argparse.Namespace) -> int:
    state = read_keys(args)
    answer = keys_check(state.snapshot, (one.key for one in state.authors.values()))
    if args.json:
        show_answer(args, answer)
    else:
        if answer.mistakes:
            show(mistake_rows(answer), MISTAKE_HEADERS, whole=args.all)
        for line in answer.notes or (() if answer.mistakes else ("No mistakes.",)):
            print(line)
    return int(bool(answer.mistakes))
