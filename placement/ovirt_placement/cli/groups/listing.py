"""`ovirt-placement groups list`: affinity groups with their state, rules, members and hosts."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Collection, Sequence

from ovirt_placement import config
from ovirt_placement.answers.document import find_id
from ovirt_placement.answers.groups.listing import HEADERS, ListedGroup, group_rows, groups_list
from ovirt_placement.cli.groups.now import with_groups_of_now
from ovirt_placement.cli.question import clusters_of, read_state, show, show_answer, too_many
from ovirt_placement.inventory import Measured
from ovirt_placement.model import Snapshot


def run(args: argparse.Namespace) -> int:
    snapshot = _read(args)
    answer = groups_list(
        snapshot,
        clusters_of(args, snapshot),
        vm=find_id(args.vm, "VM", snapshot.vms, snapshot),
        host=find_id(args.host, "host", snapshot.hosts),
        group=find_id(args.group, "affinity group", snapshot.affinity_groups, snapshot),
        violated=args.violated,
    )
    if args.json:
        show_answer(args, answer)
    elif answer.groups:
        _show(answer.groups, whole=args.all)
    else:
        print("No affinity group is violated." if args.violated else "No affinity groups.")
    return 0


def _read(args: argparse.Namespace) -> Snapshot:
    """The state that is asked about; a live one with the groups of this moment, unless old ones will do."""
    if args.state is not None or args.stale:
        return read_state(args, measured=Measured.NOTHING)
    # The SDK takes long to load: not for a state file.
    from ovirt_placement.engine.connection.client import connect

    known = read_state(args, measured=Measured.NOTHING)
    with connect(config.load(args.config).engine) as connection:
        found = with_groups_of_now(known, connection)
    return read_state(args, max_age=0.0, measured=Measured.NOTHING) if found is None else found


def _show(groups: Sequence[ListedGroup], *, whole: bool) -> None:
    """Of many groups how many stand how, and those that are violated first."""
    if not whole and too_many(groups):
        counts = Counter(one.state for one in groups)
        reported = ", ".join(
            f"{counts[word]} {word}" for word in ("violated", "satisfied", "disabled") if counts[word]
        )
        print(f"{len(groups)} affinity groups: {reported}\n")
        groups = sorted(groups, key=lambda one: not one.violated)
    left_out = set() if len({one.cluster.id for one in groups}) > 1 else {HEADERS.index("cluster")}
    show([_without(left_out, row) for row in group_rows(groups)], _without(left_out, HEADERS), whole=whole)


def _without(columns: Collection[int], row: Sequence[str]) -> tuple[str, ...]:
    """A cluster that is the same for all takes no room from names."""
    return tuple(cell for at, cell in enumerate(row) if at not in columns)
