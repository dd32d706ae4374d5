"""The running proxy: loads the plugins, opens the port, and handles signals, changes and the watchdog."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import ssl
from functools import partial
from pathlib import Path

from ovirt_service.daemon import Notifier
from ovirt_service.http.listener import Limits, Listener

from .contract.scheduler import Scheduler
from .endpoint import Endpoint
from .http.access import Gate, tls_context
from .http.opening import open_socket
from .operation import logs
from .operation.decisions import DecisionLog
from .operation.descriptors import connections
from .plugins.loading import load_all
from .plugins.reloading import Reloader
from .pool.zygote_process import end_all
from .reporting import Reporter
from .settings import Settings
from .worker import kernel

log = logging.getLogger(__name__)

#: Reports to plugins that the reasons for which they drop hosts are recorded, if their answer has them.
REASONS_ARE_RECORDED = {"OVIRT_SCHEDULER_PROXY_RECORDS": "reasons"}


def run(settings: Settings, record: Path | None) -> None:
    """Serve until SIGTERM or SIGINT; decisions go into `record`. Raises `UserError` if that cannot begin."""
    kernel.adopt_orphans()
    log_handler = logs.set_up(settings.log)
    context = tls_context(settings.server)
    decisions = None if record is None else DecisionLog(record, settings.decisions)
    if decisions is not None:
        os.environ.update(REASONS_ARE_RECORDED)
    try:
        asyncio.run(_serve(settings, context, decisions))
    finally:
        end_all()  # nothing that a plugin ever started may outlive the proxy
        log.info("stopped")
        log_handler.close()


async def _serve(settings: Settings, context: ssl.SSLContext | None, decisions: DecisionLog | None) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    loop.add_signal_handler(signal.SIGHUP, lambda: None)  # there is nothing to reload yet
    plugins = await load_all(settings)
    scheduler = Scheduler(plugins, settings.calls.deadline_seconds, settings.rejects)
    reporter = Reporter(scheduler, decisions)
    reloader = Reloader(settings, scheduler)
    try:
        if not stopped.is_set():
            await _attend(settings, context, scheduler, reporter, reloader, stopped)
    finally:
        await reloader.close()
        reporter.close()


async def _attend(
    settings: Settings,
    context: ssl.SSLContext | None,
    scheduler: Scheduler,
    reporter: Reporter,
    reloader: Reloader,
    stopped: asyncio.Event,
) -> None:
    """Open the port, now that the workers are warm, and look after all until it is time to stop."""
    server = settings.server
    seconds = server.request_seconds
    limits = Limits(connections(settings), server.idle_seconds, seconds, seconds)
    endpoint = Endpoint(scheduler, reporter, server.most_elements, settings.calls.discovery_seconds)
    gate = Gate(server)
    admit = partial(gate.admit, endpoint.answer, server.body_mib << 20)
    listener = Listener(open_socket(server.listen), limits, admit, reporter.connection_closed)
    url = listener.start(context)
    gc.freeze()  # what stands now will stand for long: no collection need look at it
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, reloader.reload_all)
    notifier = Notifier()
    tasks = [loop.create_task(reloader.watch()), loop.create_task(notifier.keep_alive())]
    log.info("listening on %s with %d units", url, len(scheduler.plugins.registry.units))
    print(f"ovirt-scheduler-proxy: listening on {url}", flush=True)
    notifier.ready()
    await stopped.wait()
    notifier.stopping()
    for task in tasks:
        task.cancel()
    await listener.close(settings.calls.deadline_seconds)
    gate.close()
