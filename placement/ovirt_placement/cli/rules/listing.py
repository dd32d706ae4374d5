"""`ovirt-placement rules list`, `show`, `check` and `export`: what stands, and how it stands."""

from __future__ import annotations

import argparse

from msgspec.structs import replace

from ovirt_placement.answers.rules import (
    check_lines,
    headers,
    rows,
    rule_lines,
    rules_check_together,
    rules_list,
)
from ovirt_placement.cli.question import show, show_answer, show_json
from ovirt_placement.cli.rules.state import read_engine, read_rules
from ovirt_placement.model import rule_file
from ovirt_service.decoding import nearest
from ovirt_service.errors import UserError


def run(args: argparse.Namespace) -> int:
    """Run `rules list`."""
    answer = rules_list(*read_rules(args))
    if args.json:
        show_answer(args, answer)
    elif answer.rules:
        show(rows(answer), headers(answer), whole=args.all)
    else:
        print("No placement rules.")
    return 0


def show_rules(args: argparse.Namespace) -> int:
    """Run `rules show`."""
    snapshot, authors = read_rules(args)
    known = [rule.name for rule in snapshot.placement_rules]
    for name in args.names:
        if name not in known:
            raise UserError(f'no placement rule "{name}"{nearest(name, known)}')
    answer = rules_list(snapshot, authors, tuple(args.names))
    if args.json:
        show_answer(args, answer)
    else:
        print("\n".join(rule_lines(answer, whole=args.all)))
    return 0


def check_rules(args: argparse.Namespace) -> int:
    """Run `rules check`: those that stand, or those of a file as if they did."""
    if args.file is None:
        snapshot = read_rules(args).snapshot
    else:
        rules = rule_file.load(args.file)
        snapshot = read_rules(args).snapshot if args.state is not None else read_engine(args, rules)
        snapshot = replace(snapshot, placement_rules=rules)
    answer = rules_check_together(snapshot)
    if args.json:
        show_answer(args, answer)
    else:
        print("\n".join(check_lines(answer)))
    return 0 if answer.sound else 1


def export(args: argparse.Namespace) -> int:
    """Run `rules export`."""
    rules = read_rules(args).snapshot.placement_rules
    if args.json:
        show_json(rule_file.described(rules))
    else:
        print(rule_file.dumps(rules), end="")
    return 0
