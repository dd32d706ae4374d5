"""The command `ovirt-simulator`: runs an engine on localhost, or draws a cluster for one."""

from __future__ import annotations

import argparse
import logging
import sys
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import msgspec

from ovirt_placement import statefile
from ovirt_placement.errors import EXIT_STATUS, UserError
from ovirt_placement.stopping import Stop

from .core.engine import Engine
from .core.settings import USUAL
from .core.timeline import Action
from .generate import Sizes, generate
from .http.server import Certificate, serve, serve_recording

#: How often simulated time moves on, in real seconds.
_TICK_SECONDS = 0.05

_log = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand; return 0, or 2 after one line that says what is wrong and what to do."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    args = _parser().parse_args(arguments)
    try:
        args.run(args)
    except UserError as error:
        print(f"ovirt-simulator: {' '.join(str(error).split())}", file=sys.stderr)
        return EXIT_STATUS
    return 0


def _run(args: argparse.Namespace) -> None:
    """Serve until SIGTERM or SIGINT."""
    stop = Stop()
    if args.recording is not None:
        server = serve_recording(args.recording, args.listen, certificate=_certificate(args))
        engine = None
    else:
        engine = _engine(args)
        server = serve(engine, args.listen, password=args.password, certificate=_certificate(args))
    try:
        print(f"ovirt-simulator: listening on {server.url}", flush=True)
        _pass_time(engine, args.time_scale, stop)
    finally:
        server.close()


def _engine(args: argparse.Namespace) -> Engine:
    if args.proxy is not None and not args.proxy.startswith("http://"):
        raise UserError(
            f"--proxy {args.proxy}: the engine's client takes a URL such as http://localhost:18781/"
        )
    settings = msgspec.structs.replace(
        USUAL,
        affinity_enforcement_seconds=60.0 if args.affinity_enforcement else None,
        load_balancing_seconds=60.0 if args.load_balancing else None,
        ha_check_seconds=300.0 if args.ha_check else None,
    )
    return Engine.from_snapshot(
        statefile.load(args.state),
        clock=datetime.now(UTC),
        seed=args.seed,
        settings=settings,
        proxy=args.proxy,
        background=_in_background,
    )


def _in_background(action: Action) -> None:
    """Run what waits for the external scheduler beside the clock; the process need not wait for it to end."""
    threading.Thread(target=action, name="background", daemon=True).start()


def _pass_time(engine: Engine | None, scale: float, stop: Stop) -> None:
    last = time.monotonic()
    while not stop.sleep(_TICK_SECONDS):
        now = time.monotonic()
        if engine is not None and scale > 0:
            try:
                engine.advance((now - last) * scale)
            except Exception:
                _log.exception("an action of the engine failed; time goes on")
        last = now


def _certificate(args: argparse.Namespace) -> Certificate | None:
    if (args.tls_certificate is None) != (args.tls_key is None):
        raise UserError("--tls-certificate and --tls-key go together: give both or none")
    if args.tls_certificate is None:
        return None
    for path in (args.tls_certificate, args.tls_key):
        if not path.is_file():
            raise UserError(f"{path}: no such file; --tls-certificate and --tls-key take PEM files")
    return Certificate(args.tls_certificate, args.tls_key)


def _generate(args: argparse.Namespace) -> None:
    """Print a state file."""
    sizes = Sizes(clusters=args.clusters, hosts=args.hosts, vms=args.vms, groups=args.groups)
    sys.stdout.buffer.write(statefile.dumps(generate(sizes, args.seed)))
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ovirt-simulator", description="A whole oVirt engine on localhost, with its REST API."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('ovirt-placement')}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_run(commands.add_parser("run", help="serve an engine until SIGTERM"))
    _add_generate(commands.add_parser("generate", help="draw a cluster, and print it as a state file"))
    return parser


def _add_run(parser: argparse.ArgumentParser) -> None:
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--state", type=Path, metavar="FILE", help="the state file to start from")
    source.add_argument("--recording", type=Path, metavar="DIR", help="serve a recorded engine as it stands")
    parser.add_argument(
        "--listen", default="127.0.0.1:0", metavar="HOST:PORT", help="port 0 takes any free one"
    )
    parser.add_argument("--proxy", metavar="URL", help="the external scheduler, asked for its units once")
    parser.add_argument(
        "--time-scale",
        type=float,
        default=1.0,
        metavar="X",
        help="simulated seconds a second; with 0, time passes only by POST /simulator/advance",
    )
    parser.add_argument("--password", default="password", help="of admin@internal (default: password)")
    parser.add_argument("--tls-certificate", type=Path, metavar="FILE", help="PEM chain; serves HTTPS")
    parser.add_argument("--tls-key", type=Path, metavar="FILE", help="PEM key of the certificate")
    parser.add_argument("--seed", type=int, default=0, help="the dice of everything that varies")
    parser.add_argument(
        "--affinity-enforcement",
        action="store_true",
        help="let the engine repair broken groups itself, one VM a minute",
    )
    parser.add_argument(
        "--load-balancing",
        action="store_true",
        help="let the engine call its policies' balance every minute",
    )
    parser.add_argument(
        "--ha-check",
        action="store_true",
        help="let the engine check its clusters' HA reservation every five minutes",
    )
    parser.set_defaults(run=_run)


def _add_generate(parser: argparse.ArgumentParser) -> None:
    usual = Sizes()
    parser.add_argument("--clusters", type=int, default=usual.clusters)
    parser.add_argument("--hosts", type=int, default=usual.hosts)
    parser.add_argument("--vms", type=int, default=usual.vms)
    parser.add_argument("--groups", type=int, default=usual.groups)
    parser.add_argument("--seed", type=int, default=0)
    parser.set_defaults(run=_generate)
