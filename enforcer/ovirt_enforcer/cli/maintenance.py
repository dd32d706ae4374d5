"""`ovirt-enforcer maintenance`: plan rounds, have hosts taken out one after another, follow that."""

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeAlias

from msgspec.structs import replace

from ovirt_enforcer.cli.plan import add_return, add_state, asked, deadline_parameter, duration
from ovirt_enforcer.orders import check_settings, in_order_of_plan, run_meant
from ovirt_enforcer.plans import HOST_SECONDS, maintenance_options, maintenance_planned
from ovirt_placement import config as configuration
from ovirt_placement.answers.document import DRY_RUN, find
from ovirt_placement.answers.orders import run_lines, runs_change, runs_document
from ovirt_placement.answers.plans.maintenance import FORMAT, MaintenancePlans, maintenance_text
from ovirt_placement.cli.changes import login_name, opened, show_change, stored
from ovirt_placement.cli.questions import (
    PATIENCE_SECONDS,
    add_change,
    add_command,
    add_config,
    add_json,
    add_parameter,
    positive,
    show_json,
)
from ovirt_placement.inventory import client as inventory
from ovirt_placement.model import Host, Snapshot
from ovirt_placement.planning.plan import Deadline
from ovirt_placement.store.enforcer.maintenance import (
    ORDERS,
    MaintenanceRequest,
    MaintenanceRun,
    MaintenanceStore,
    Overtaken,
    RunState,
    Work,
)
from ovirt_service.errors import UserError

_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

#: The exit status where some host gets no round, besides 0, and 2 for a mistake.
SOME_ARE_LEFT = 4
#: How long planning may take, in seconds, by default.
_PLAN_SECONDS: Final = 27.0

DESCRIPTION = """\
Plan in which rounds hosts can be taken out for maintenance, with the migrations that empty them and what
blocks the others; migrate nothing. See docs/enforcer/maintenance.md.
Exit status: 0 every host gets a round, 4 some host gets none.
"""
EXAMPLES = """\
  ovirt-enforcer maintenance plan node1 node2 node3
  ovirt-enforcer maintenance plan --cluster blue --at-once 2 --stop db1
"""


def _add_plan(actions: _Commands) -> None:
    summary = "plan in which rounds hosts can be taken out"
    parser = add_command(actions, "plan", summary, DESCRIPTION, _plan, EXAMPLES)
    _add_hosts(parser, "all hosts of this cluster")
    parser.add_argument(
        "--at-once", type=positive, default=1, metavar="N", help="how many hosts may be out at once; else 1"
    )
    _add_stop(parser)
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
    text = f"how long planning may take; else {_PLAN_SECONDS:g}"
    add_parameter(parser, "deadline", deadline_parameter(text))
    parser.set_defaults(repair=None)


def _add_hosts(parser: argparse.ArgumentParser, of_cluster: str) -> None:
    parser.add_argument("hosts", nargs="*", metavar="HOST", help="hosts by name or id")
    parser.add_argument("--cluster", metavar="CLUSTER", help=of_cluster)


def _add_stop(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--stop",
        action="append",
        default=[],
        metavar="VM",
        help="stop this VM, and start it again, if it cannot migrate; repeatable",
    )


def _plan(args: argparse.Namespace) -> int:
    found = asked(args)
    named = _hosts(args, found.snapshot)
    hosts = {one.cluster: [host.id for host in named if host.cluster == one.cluster] for one in named}
    options = maintenance_options(
        found,
        [host.id for host in named],
        stopped={find(word, "VM", found.snapshot.vms, found.snapshot).id for word in args.stop},
        back=args.back,
        at_once=args.at_once,
        host_seconds=args.host_time,
    )
    ends = time.monotonic() + (args.deadline or _PLAN_SECONDS)
    records = []
    for left, own in zip(range(len(hosts), 0, -1), hosts.values(), strict=True):
        deadline = Deadline.after((ends - time.monotonic()) / left)
        records.append(maintenance_planned(found.snapshot, own, options, deadline=deadline))
    if args.json:
        show_json(MaintenancePlans(FORMAT, tuple(records)))
    else:
        print("\n".join(line for record in records for line in maintenance_text(record)))
    return SOME_ARE_LEFT if any(record.without_round for record in records) else 0


MAINTENANCE = """\
Take hosts out for maintenance, one after another or a few at once, with every rule satisfied all the time.
See docs/enforcer/maintenance.md.
"""


def add_parser(commands: _Commands, summary: str) -> None:
    parser = commands.add_parser("maintenance", help=summary, description=MAINTENANCE)
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    for add in (_add_plan, _add_run, _add_status, _add_orders):
        add(actions)


_ORDER_SECONDS: Final = 30.0
RUN = """\
Ask the running enforcer to empty, upgrade and activate hosts, one after another.
The mode must be approve or enforce. See docs/enforcer/maintenance.md.
Exit status, with --follow: 0 all hosts are done, 4 the run ended early.
"""
RUN_EXAMPLES = """\
  ovirt-enforcer maintenance run node1 node2 --follow
  ovirt-enforcer maintenance run --cluster blue --work command --return all
"""


def _add_run(actions: _Commands) -> None:
    parser = add_command(actions, "run", "take hosts out, one after another", RUN, _request, RUN_EXAMPLES)
    _add_hosts(parser, "all hosts of this cluster that are up")
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
    _add_stop(parser)
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


def _request(args: argparse.Namespace) -> int:
    config = configuration.load(args.config)
    check_settings(config, args.work)
    snapshot = inventory.snapshot(config=config, max_age=0.0, deadline=PATIENCE_SECONDS)
    hosts = _hosts(args, snapshot, up=True)
    if len({host.cluster for host in hosts}) > 1:
        raise UserError("these hosts are of several clusters: begin a run for each")
    stop_vms = tuple(find(word, "VM", snapshot.vms, snapshot).id for word in args.stop)
    if not args.in_order:
        deadline = Deadline.after(_ORDER_SECONDS)
        hosts = in_order_of_plan(snapshot, hosts, stop_vms, config.ha, deadline=deadline)
    request = MaintenanceRequest(
        work=args.work,
        stop_vms=stop_vms,
        soak_seconds=args.soak,
        failures=max(0, args.failures),
        reboot=not args.no_reboot,
        back=args.back,
    )
    meant = run_meant(config, snapshot, hosts, request, requested_by=login_name())
    if not args.dry_run:
        with opened(MaintenanceStore, args) as store:
            run_id = store.request(meant)
        if args.follow:
            return _follow(args, run_id)
        meant = _named(args, run_id)
    lines = [*run_lines(runs_document([meant]).runs[0]), *([DRY_RUN] if args.dry_run else [])]
    show_change(args, runs_change(None, meant, dry_run=args.dry_run), lines)
    return 0


def _hosts(args: argparse.Namespace, snapshot: Snapshot, *, up: bool = False) -> Sequence[Host]:
    if bool(args.hosts) == bool(args.cluster):
        raise UserError("name hosts, or a cluster with --cluster" + " and not both" * bool(args.hosts))
    if not args.cluster:
        named = (find(word, "host", snapshot.hosts) for word in args.hosts)
        return list({host.id: host for host in named}.values())
    cluster = find(args.cluster, "cluster", snapshot.clusters)
    found = [host for host in snapshot.hosts_of_cluster.get(cluster.id, ()) if host.up or not up]
    if not found:
        raise UserError(f"cluster {cluster.name} has no " + ("host that is up" if up else "hosts"))
    return found


#: The exit status of a run that ended before its time.
ENDED_EARLY: Final = 4
_POLL_SECONDS: Final = 2.0
STATUS = """\
Show the progress of the runs under way and of the last run of each cluster, or of one run.
Exit status: 0, or with --follow 4 if the run ended early.
"""
STATUS_EXAMPLES = """\
  ovirt-enforcer maintenance status 3f09aa --follow
"""


def _add_status(actions: _Commands) -> None:
    parser = add_command(actions, "status", "show the progress of runs", STATUS, _status, STATUS_EXAMPLES)
    parser.add_argument("run_id", nargs="?", metavar="RUN", help="the id of a run")
    parser.add_argument("--follow", action="store_true", help="show its progress until it ends")
    add_json(parser)
    add_config(parser)


def _status(args: argparse.Namespace) -> int:
    if args.run_id is None and not args.follow:
        runs = _runs(args)  # those that are under way, and else the last of each cluster
        last = {one.cluster: one for one in reversed(runs)}
        return _show_runs(args, [one for one in runs if one.active or last[one.cluster] is one])
    run_id = args.run_id or next((one.id for one in _runs(args) if one.active), None)
    if run_id is None:
        raise UserError("no maintenance run is under way")
    return _follow(args, run_id) if args.follow else _show_runs(args, [_named(args, run_id)])


def _follow(args: argparse.Namespace, run_id: str) -> int:
    shown: set[str] = set()
    while True:
        found = _named(args, run_id)
        run = runs_document([found]).runs[0]
        lines = dict(zip(run_lines(run, timed=False), run_lines(run), strict=True))
        if not args.json:
            for line in lines:
                if line not in shown:
                    print(lines[line], flush=True)
        shown = {*lines}
        if not found.active:
            break
        time.sleep(_POLL_SECONDS)
    if args.json:
        _show_runs(args, [found])
    return 0 if found.state is RunState.DONE else ENDED_EARLY


def _show_runs(args: argparse.Namespace, runs: list[MaintenanceRun]) -> int:
    document = runs_document(runs)
    if args.json:
        show_json(document)
    elif document.runs:
        print("\n".join(line for one in document.runs for line in run_lines(one)))
    else:
        print("No maintenance run was requested.")
    return 0


def _runs(args: argparse.Namespace) -> tuple[MaintenanceRun, ...]:
    return stored(MaintenanceStore, args, MaintenanceStore.runs, ())


def _named(args: argparse.Namespace, run_id: str) -> MaintenanceRun:
    for found in _runs(args):
        if found.id == run_id:
            return found
    raise UserError(f"there is no maintenance run {run_id}: ovirt-enforcer maintenance status lists them")


#: What becomes of a run that is under way: the name of the command, its summary and its description.
_COMMANDS: Final = (
    ("pause", "pause a run", "Pause a run. Operations already started in the engine continue.\n"),
    ("resume", "resume a run", "Resume a paused run.\n"),
    ("stop", "end a run", "End a run: no other host begins; a host in maintenance is activated first.\n"),
)


def _add_orders(actions: _Commands) -> None:
    for name, summary, description in _COMMANDS:
        run: Callable[[argparse.Namespace], int] = partial(_order, name)
        example = f"  ovirt-enforcer maintenance {name}\n"
        parser = add_command(actions, name, summary, description, run, example)
        parser.add_argument("run_id", nargs="?", metavar="RUN", help="its id, if several are under way")
        add_change(parser)
        add_config(parser)


def _order(name: str, args: argparse.Namespace) -> int:
    order = ORDERS[name]
    with opened(MaintenanceStore, args, create=not args.dry_run) as store:
        found = _active_run(store.active(), args.run_id)
        if not args.dry_run:
            store.order(found.id, name, set_by=login_name())
        elif found.state not in order.after:
            raise Overtaken.by(found)
    lines = [f"Maintenance run {found.id} of cluster {found.cluster_name} {order.said}."]
    answer = runs_change(found, replace(found, state=order.state), dry_run=args.dry_run)
    show_change(args, answer, [*lines, DRY_RUN] if args.dry_run else lines)
    return 0


def _active_run(active: tuple[MaintenanceRun, ...], run_id: str | None) -> MaintenanceRun:
    named = [one for one in active if run_id in (None, one.id)]
    if not named:
        raise UserError(f"no maintenance run {run_id or ''}".rstrip() + " is under way")
    if len(named) > 1:
        raise UserError(f"several runs are under way, name one: {', '.join(one.id for one in named)}")
    return named[0]
