"""The running proxy: loads the plugins, opens the port, and sees to signals, changes and the watchdog."""

from __future__ import annotations

import logging
import os
import signal
import ssl
import sys
import time

from .contract.scheduler import Scheduler
from .endpoint import Endpoint
from .inside import kernel
from .operation import logs
from .operation.decisions import DecisionLog
from .operation.notify import Notifier
from .plugins.loading import load_all
from .plugins.reloading import Reloader
from .reporting import Reporter
from .server.access import Gate, tls_context
from .server.listener import Listener
from .server.request import Limits
from .settings import Settings

log = logging.getLogger(__name__)

_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}

#: Threads hand the interpreter over after this, in seconds: a large answer must not hold up small ones.
_SWITCH_INTERVAL = 0.0005


def run(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT. Raises `UserError` when that cannot begin."""
    # Blocked before any thread starts, so that only the loop below receives them.
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    kernel.adopt_orphans()
    sys.setswitchinterval(_SWITCH_INTERVAL)
    logs.set_up(settings.log)
    context = tls_context(settings.server)
    decisions = DecisionLog(settings.decisions) if settings.decisions.file else None
    scheduler = Scheduler(load_all(settings), settings.calls.deadline_seconds, settings.rejects)
    reloader = Reloader(settings, scheduler)
    reporter = Reporter(scheduler, decisions)
    try:
        listener = _listen(settings, context, scheduler, reporter)
        _attend(settings, listener, reloader)
        listener.close(settings.calls.deadline_seconds)
    finally:
        reloader.close()
        reporter.close()
        _end_children()
    log.info("stopped")


def _listen(
    settings: Settings, context: ssl.SSLContext | None, scheduler: Scheduler, reporter: Reporter
) -> Listener:
    """Open the port, now that the workers are warm, and say so."""
    server = settings.server
    gate = Gate(server)
    limits = Limits(server.body_mib << 20, server.idle_seconds, server.request_seconds)
    listener = Listener(server.listen, gate, context, limits, server.most_connections)
    listener.start(Endpoint(scheduler, reporter, gate, server.most_elements).answer)
    log.info("listening on %s with %d units", listener.url, len(scheduler.plugins.registry.units))
    print(f"ovirt-scheduler-proxy: listening on {listener.url}", flush=True)
    return listener


def _attend(settings: Settings, listener: Listener, reloader: Reloader) -> None:
    """Wait for signals; between them, look for changed plugins and tell systemd that all is well."""
    notifier = Notifier()
    notifier.ready()
    watch = settings.reload.watch_seconds
    interval = min(each for each in (notifier.interval, watch or None, 60.0) if each is not None)
    look_at = time.monotonic() + watch
    while True:
        received = signal.sigtimedwait(_SIGNALS, interval)
        if received is not None and received.si_signo != signal.SIGHUP:
            notifier.stopping()
            return
        if received is not None:
            reloader.reload_all()
        elif watch and time.monotonic() >= look_at:
            reloader.look()
            look_at = time.monotonic() + watch
        if listener.alive and reloader.well:
            notifier.alive()


def _end_children() -> None:
    """Nothing that a plugin ever started may outlive the proxy."""
    while kernel.has_children():
        for child in kernel.children():
            os.kill(child, signal.SIGKILL)
        os.wait()
