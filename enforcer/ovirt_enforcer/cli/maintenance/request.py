"""`ovirt-enforcer maintenance run`: have the running enforcer take hosts out, one after another."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

from ovirt_enforcer.cli.arguments import add_return, duration
from ovirt_enforcer.cli.maintenance import status
from ovirt_enforcer.on_request.maintenance_runs import (
    RunMeant,
    begin,
    check_settings,
    domains_of,
    in_order_of_plan,
    run_meant,
)
from ovirt_placement import config as configuration
from ovirt_placement import inventory
from ovirt_placement.answers.finding import find
from ovirt_placement.answers.maintenance_runs import run_lines, runs_change, runs_document
from ovirt_placement.cli.arguments import add_change, add_command, add_config
from ovirt_placement.cli.login import login_name
from ovirt_placement.cli.question import PATIENCE_SECONDS, show_json
from ovirt_placement.cli.store import opened
from ovirt_placement.model import Host, Snapshot
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.store.maintenance import MaintenanceStore
from ovirt_placement.store.maintenance_run import (
    HostPhase,
    HostProgress,
    MaintenanceRequest,
    MaintenanceRun,
    RunState,
    Work,
)
from ovirt_service.errors import UserError

#: How long it may take to find the order of hosts, in seconds.
_SECONDS: Final = 30.0

DESCRIPTION = """\
Ask the running enforcer to empty, upgrade and activate hosts, one after another.
The mode must be approve or enforce. See docs/enforcer/maintenance.md.
Exit status, with --follow: 0 all hosts are done, 4 the run ended early.
"""

EXAMPLES = """\
  ovirt-enforcer maintenance run node1 node2 --follow
  ovirt-enforcer maintenance run --cluster blue --work command --return all
"""


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(actions, "run", "take hosts out, one after another", DESCRIPTION, run, EXAMPLES)
    parser.add_argument("hosts", nargs="*", metavar="HOST", help="hosts by name or id")
    parser.add_argument("--cluster", metavar="CLUSTER", help="all hosts of this cluster that are up")
    parser.add_argument(
        "--work",
        type=Work,
        choices=list(Work),
        default=Work.UPGRADE,
        help="what is done in maintenance: the engine's upgrade (default), your command, or nothing",
    )
    parser.add_argument(
        "--in-order",
        action="store_true",
        help="take the hosts in the order given; else as maintenance plan orders them",
    )
    parser.add_argument("--no-reboot", action="store_true", help="upgrade hosts without a restart")
    parser.add_argument(
        "--stop",
        action="append",
        default=[],
        metavar="VM",
        help="stop this VM, and start it again, if it cannot migrate; repeatable",
    )
    parser.add_argument(
        "--soak",
        type=duration,
        default=60.0,
        metavar="TIME",
        help="how long a host is observed once it is up (default: 60s)",
    )
    parser.add_argument(
        "--failures",
        type=int,
        default=0,
        metavar="N",
        help="how many hosts may fail before the run ends (default: 0)",
    )
    add_return(parser)
    parser.add_argument("--follow", action="store_true", help="show its progress until it ends")
    add_change(parser)
    add_config(parser)


def run(args: argparse.Namespace) -> int:
    config = configuration.load(args.config)
    check_settings(config, args.work)
    snapshot = inventory.snapshot(config=config, max_age=0.0, deadline=PATIENCE_SECONDS)
    hosts = _hosts(args, snapshot)
    stop_vms = tuple(find(word, "VM", snapshot.vms, snapshot).id for word in args.stop)
    if not args.in_order:
        domains = domains_of(config, snapshot)
        hosts = in_order_of_plan(snapshot, hosts, stop_vms, domains, Deadline.after(_SECONDS))
    request = MaintenanceRequest(
        work=args.work,
        stop_vms=stop_vms,
        soak_seconds=args.soak,
        failures=max(0, args.failures),
        reboot=not args.no_reboot,
        back=args.back,
    )
    meant = run_meant(config, snapshot, hosts, request)
    if args.dry_run:
        return _show(args, _as_run(meant))
    with opened(MaintenanceStore, args) as store:
        run_id = begin(store, meant, requested_by=login_name())
    return status.follow(args, run_id) if args.follow else _show(args, status.named(args, run_id))


def _show(args: argparse.Namespace, run: MaintenanceRun) -> int:
    if args.json:
        show_json(runs_change(None, run, dry_run=args.dry_run))
        return 0
    print("\n".join(run_lines(runs_document([run]).runs[0])))
    if args.dry_run:
        print("Nothing was written: this was a dry run.")
    return 0


def _as_run(meant: RunMeant) -> MaintenanceRun:
    """The run as it would be requested."""
    waiting = (
        HostProgress(host=host.id, name=host.name, position=at, phase=HostPhase.WAITING, seconds=0.0)
        for at, host in enumerate(meant.hosts)
    )
    return MaintenanceRun(
        id="",
        cluster=meant.cluster.id,
        cluster_name=meant.cluster.name,
        state=RunState.RUNNING,
        request=meant.request,
        requested_by=login_name(),
        created=0.0,
        updated=0.0,
        age_seconds=0.0,
        message="",
        violated=meant.violated,
        hosts=tuple(waiting),
    )


def _hosts(args: argparse.Namespace, snapshot: Snapshot) -> Sequence[Host]:
    if bool(args.hosts) == bool(args.cluster):
        raise UserError("name hosts, or a --cluster: one of them")
    if args.cluster:
        cluster = find(args.cluster, "cluster", snapshot.clusters)
        found = [host for host in snapshot.hosts_of_cluster.get(cluster.id, ()) if host.up]
    else:
        named = [find(word, "host", snapshot.hosts) for word in args.hosts]
        found = list({host.id: host for host in named}.values())
    if len({host.cluster for host in found}) > 1:
        raise UserError("these hosts are of several clusters: begin a run for each")
    if not found:
        raise UserError(f"cluster {args.cluster} has no host that is up")
    return found
