"""`ovirt-enforcer maintenance plan`: the rounds in which hosts can be taken out, and the migrations."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from itertools import chain

from ovirt_enforcer import configured
from ovirt_enforcer.cli.arguments import add_deadline, add_return, add_state, asked, duration
from ovirt_enforcer.on_request.plans import HOST_SECONDS, Asked, maintenance_options, maintenance_planned
from ovirt_placement import config as configuration
from ovirt_placement.answers.document import find
from ovirt_placement.answers.plans.maintenance import FORMAT, MaintenancePlans, maintenance_text
from ovirt_placement.cli.arguments import add_command, add_config, add_json, positive
from ovirt_placement.cli.question import show_json
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.maintenance.data import MaintenanceOptions
from ovirt_service.errors import UserError

#: The exit status where some host gets no round, besides 0, and 2 for a mistake.
SOME_ARE_LEFT = 4
#: How long planning may take, in seconds, where nobody says.
_SECONDS = 27.0

DESCRIPTION = """\
Plan in which rounds hosts can be taken out for maintenance, with the migrations that empty them and what
blocks the others; migrate nothing. See docs/enforcer/maintenance.md.
Exit status: 0 every host gets a round, 4 some host gets none.
"""
EXAMPLES = """\
  ovirt-enforcer maintenance plan node1 node2 node3
  ovirt-enforcer maintenance plan --cluster blue --at-once 2 --stop db1
"""


def add_plan(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        actions, "plan", "plan in which rounds hosts can be taken out", DESCRIPTION, run, EXAMPLES
    )
    parser.add_argument("hosts", nargs="*", metavar="HOST", help="hosts by name or id")
    parser.add_argument("--cluster", metavar="CLUSTER", help="all hosts of this cluster")
    parser.add_argument(
        "--at-once", type=positive, default=1, metavar="N", help="how many hosts may be out at once; else 1"
    )
    parser.add_argument(
        "--stop",
        action="append",
        default=[],
        metavar="VM",
        help="stop this VM, and start it again, if it cannot migrate; repeatable",
    )
    add_return(parser)
    parser.add_argument(
        "--host-time",
        type=duration,
        default=HOST_SECONDS,
        metavar="TIME",
        help="how long a host is out; else 30m",
    )
    add_config(parser)
    add_state(parser)
    add_json(parser)
    add_deadline(parser, f"how long planning may take; else {_SECONDS:g}")
    parser.set_defaults(repair=None)


def run(args: argparse.Namespace) -> int:
    found = asked(args)
    hosts = _hosts(args, found)
    options = _options(args, found, chain.from_iterable(hosts.values()))
    ends = time.monotonic() + (args.deadline or _SECONDS)
    records = []
    for left, own in zip(range(len(hosts), 0, -1), hosts.values(), strict=True):
        deadline = Deadline.after((ends - time.monotonic()) / left)
        records.append(maintenance_planned(found.snapshot, own, options, deadline=deadline))
    if args.json:
        show_json(MaintenancePlans(FORMAT, tuple(records)))
    else:
        print("\n".join(line for record in records for line in maintenance_text(record)))
    return SOME_ARE_LEFT if any(record.without_round for record in records) else 0


def _hosts(args: argparse.Namespace, found: Asked) -> dict[str, list[str]]:
    """The hosts that are asked for, by their clusters. Raises `UserError`."""
    if bool(args.hosts) == bool(args.cluster):
        raise UserError("name hosts, or a cluster with --cluster" + " and not both" * bool(args.hosts))
    snapshot = found.snapshot
    if args.cluster:
        cluster = find(args.cluster, "cluster", snapshot.clusters)
        known = list(snapshot.hosts_of_cluster.get(cluster.id, ()))
        if not known:
            raise UserError(f"cluster {cluster.name} has no hosts")
    else:
        known = [find(word, "host", snapshot.hosts) for word in args.hosts]
    by_cluster: dict[str, list[str]] = {}
    for host in known:
        by_cluster.setdefault(host.cluster, []).append(host.id)
    return by_cluster


def _options(args: argparse.Namespace, found: Asked, hosts: Iterable[str]) -> MaintenanceOptions:
    domains = None
    if args.state is not None and args.config is not None:
        domains = configured.domains(configuration.load(args.config).ha, found.snapshot) or ()
    return maintenance_options(
        found,
        hosts,
        stopped={find(word, "VM", found.snapshot.vms, found.snapshot).id for word in args.stop},
        back=args.back,
        at_once=args.at_once,
        host_seconds=args.host_time,
        domains=domains,
    )
