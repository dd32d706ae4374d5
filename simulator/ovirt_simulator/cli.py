"""The command `ovirt-simulator`: serves an engine until a signal ends it, or draws a cluster for one."""

from __future__ import annotations

import argparse
import logging
import math
import sys
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ovirt_placement.model import state_file
from ovirt_service import process
from ovirt_service.arguments import Parser, add_version
from ovirt_service.daemon import Stop
from ovirt_service.errors import UserError
from ovirt_simulator.core.backend import USUAL
from ovirt_simulator.generate import Sizes, generate
from ovirt_simulator.http import THREADS

if TYPE_CHECKING:  # drawing a cluster needs none
    from ovirt_simulator.core.engine import Engine

COMMAND = "ovirt-simulator"

#: What serving takes and drawing a cluster does not: an installed simulator has it.
_EXTRA = "werkzeug"
#: How often simulated time moves on, in real seconds.
_TICK_SECONDS = 0.05

_log = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand; return 0, or 2 after one line that says what is wrong and what to do."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")

    def command() -> int:
        args = _parser().parse_args(arguments)
        args.run(args)
        return 0

    return process.guarded(COMMAND, command)


def _run(args: argparse.Namespace) -> None:
    """Serve what the arguments say, until SIGTERM or SIGINT; raise `UserError` where they are wrong."""
    try:
        from ovirt_simulator.http.server import serve
    except ModuleNotFoundError as error:
        if error.name != _EXTRA:
            raise
        raise UserError(f"{error}; run needs pip install ./simulator") from None
    stop, certificate, engine = Stop(), _certificate(args), _engine(args)
    more = {"password": args.password, "certificate": certificate, "threads": args.http_threads}
    server = serve(engine, args.listen, **more)
    try:
        print(f"ovirt-simulator: listening on {server.url}", flush=True)
        _pass_time(engine, args.time_scale, stop)
    finally:
        server.close()


def _engine(args: argparse.Namespace) -> Engine:
    from ovirt_simulator.core.engine import Engine

    if args.proxy is not None and not args.proxy.startswith("http://"):
        taken = "the engine's client takes a URL such as http://localhost:18781/"
        raise UserError(f"--proxy {args.proxy}: {taken}")
    settings = msgspec.structs.replace(
        USUAL,
        affinity_enforcement_seconds=60.0 if args.affinity_enforcement else None,
        load_balancing_seconds=60.0 if args.load_balancing else None,
    )
    return Engine.from_snapshot(
        state_file.load(args.state),
        clock=datetime.now(UTC),
        seed=args.seed,
        settings=settings,
        proxy=args.proxy,
        # What waits for the external scheduler runs outside the clock; its end is not waited for.
        background=lambda action: threading.Thread(target=action, name="background", daemon=True).start(),
    )


def _pass_time(engine: Engine, scale: float, stop: Stop) -> None:
    last = time.monotonic()
    while not stop.sleep(_TICK_SECONDS):
        now = time.monotonic()
        if scale > 0:
            try:
                engine.advance((now - last) * scale)
            except Exception:
                _log.exception("an action of the engine failed; time goes on")
        last = now


def _certificate(args: argparse.Namespace) -> tuple[Path, Path] | None:
    if (args.tls_certificate is None) != (args.tls_key is None):
        raise UserError("--tls-certificate and --tls-key go together: give both or none")
    if args.tls_certificate is None:
        return None
    for path in (args.tls_certificate, args.tls_key):
        if not path.is_file():
            raise UserError(f"{path}: no such file; --tls-certificate and --tls-key take PEM files")
    return args.tls_certificate, args.tls_key


def _generate(args: argparse.Namespace) -> None:
    sizes = Sizes(clusters=args.clusters, hosts=args.hosts, vms=args.vms, groups=args.groups)
    sys.stdout.buffer.write(state_file.dumps(generate(sizes, args.seed)))
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog=COMMAND, description="A whole oVirt engine on localhost, with its REST API.")
    add_version(parser)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_run(commands.add_parser("run", help="serve an engine until SIGTERM"))
    _add_generate(commands.add_parser("generate", help="draw a cluster, and print it as a state file"))
    return parser


def _add_run(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--state", type=Path, metavar="FILE", required=True, help="the state file to start from")
    free = "port 0 takes any free one (default: 127.0.0.1:0)"
    add("--listen", default="127.0.0.1:0", metavar="HOST:PORT", help=free)
    at_once = f"how many requests are answered at once (default: {THREADS}); more wait, as in an engine"
    add("--http-threads", type=_number(int, 1), default=THREADS, metavar="N", help=at_once)
    add("--proxy", metavar="URL", help="the external scheduler, asked for its units once")
    scale = "simulated seconds a second (default: 1); with 0, time passes only by POST /simulator/advance"
    add("--time-scale", type=_number(float, 0), default=1.0, metavar="X", help=scale)
    add("--password", default="password", help="of admin@internal (default: password)")
    add("--tls-certificate", type=Path, metavar="FILE", help="PEM chain; serves HTTPS")
    add("--tls-key", type=Path, metavar="FILE", help="PEM key of the certificate")
    add("--seed", type=int, default=0, help="the dice of everything that varies (default: 0)")
    repair = "let the engine repair violated groups itself, one VM a minute"
    add("--affinity-enforcement", action="store_true", help=repair)
    balance = "let the engine call its policies' balance every minute"
    add("--load-balancing", action="store_true", help=balance)
    parser.set_defaults(run=_run)


def _add_generate(parser: argparse.ArgumentParser) -> None:
    for name in ("clusters", "hosts", "vms", "groups"):
        number = getattr(Sizes(), name)
        help_text = f"how many {name} (default: {number})"
        parser.add_argument(f"--{name}", type=_number(int, 0), default=number, metavar="N", help=help_text)
    parser.add_argument("--seed", type=int, default=0, help="draws another cluster (default: 0)")
    parser.set_defaults(run=_generate)


def _number(kind: type[int] | type[float], least: int) -> Callable[[str], float]:
    said = "a whole number" if kind is int else "a number"

    def read(text: str) -> float:
        try:
            number = kind(text)
        except ValueError:
            number = math.nan
        if not least <= number < math.inf:
            raise argparse.ArgumentTypeError(f'"{text}": {said}, at least {least}')
        return number

    return read
