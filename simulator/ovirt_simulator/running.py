"""An engine that is served while time passes, until a signal ends it."""

from __future__ import annotations

import argparse
import logging
import threading
import time
from datetime import UTC, datetime

import msgspec

from ovirt_placement.model.files import state_file
from ovirt_service.daemon import Stop
from ovirt_service.errors import UserError
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.events import Action
from ovirt_simulator.core.settings import USUAL
from ovirt_simulator.http.server import Certificate, serve

#: How often simulated time moves on, in real seconds.
_TICK_SECONDS = 0.05

_log = logging.getLogger(__name__)


def run(args: argparse.Namespace) -> None:
    """Serve what the arguments say, until SIGTERM or SIGINT; raise `UserError` where they are wrong."""
    stop, certificate, engine = Stop(), _certificate(args), _engine(args)
    server = serve(
        engine, args.listen, password=args.password, certificate=certificate, threads=args.http_threads
    )
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
    )
    return Engine.from_snapshot(
        state_file.load(args.state),
        clock=datetime.now(UTC),
        seed=args.seed,
        settings=settings,
        proxy=args.proxy,
        background=_in_background,
    )


def _in_background(action: Action) -> None:
    """Run what waits for the external scheduler outside the clock; nobody waits for its end."""
    threading.Thread(target=action, name="background", daemon=True).start()


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


def _certificate(args: argparse.Namespace) -> Certificate | None:
    if (args.tls_certificate is None) != (args.tls_key is None):
        raise UserError("--tls-certificate and --tls-key go together: give both or none")
    if args.tls_certificate is None:
        return None
    for path in (args.tls_certificate, args.tls_key):
        if not path.is_file():
            raise UserError(f"{path}: no such file; --tls-certificate and --tls-key take PEM files")
    return Certificate(args.tls_certificate, args.tls_key)
