"""Worker processes and the process they are forked from, as the proxy holds them; how a call of one ended."""

import asyncio
import contextlib
import json
import logging
import os
import random
import select
import signal
import socket
import subprocess
import threading
import weakref
from enum import Enum
from pathlib import Path
from typing import IO, Any, cast

import msgspec

from ovirt_scheduler_proxy.worker import kernel
from ovirt_service.errors import UserError


class Cause(Enum):
    """Why a unit gave no usable answer. The value names it in logs and metrics."""

    MISSING = "missing"
    RAISED = "raised"
    #: A filter's own will, shown by an exception whose attribute `refuses` is true: no host, and why.
    REFUSED = "refused"
    #: What the unit needs is not there yet, shown by an exception whose attribute `awaits` is true.
    AWAITED = "awaited"
    EXITED = "exited"
    CRASHED = "crashed"
    OVERRAN = "overran"
    MEMORY = "memory"
    FLOOD = "flood"
    INVALID = "invalid"
    NOTHING = "nothing"
    CUT_OFF = "cut_off"
    #: Others held all workers: the unit is not to blame.
    NO_WORKER = "no_worker"
    #: There was no worker at all, and none could be started.
    NOT_STARTED = "not_started"


class Failure(msgspec.Struct, frozen=True):
    """Why a unit could not be heard: `sentence` follows the unit's name."""

    cause: Cause
    sentence: str


class Outcome(msgspec.Struct, frozen=True):
    """What came of asking one unit: a body to decode, or a failure. All but body and reasons is as sent."""

    body: bytes = b""
    failure: Failure | None = None
    #: Seconds that the unit itself ran.
    seconds: float = 0.0
    #: What the unit printed besides its answer, and what it wrote to stderr.
    printed: str = ""
    errors: str = ""
    #: Age of the state that the unit decided on, where its answer says so.
    state_age_seconds: float | None = None
    #: Why a filter dropped hosts, as JSON, where its answer says so; this many bytes follow the body.
    reasons: bytes = b""
    reasons_size: int = 0
    #: The worker should not serve again: memory, prints or child processes were left behind.
    retire: bool = False


def failed(cause: Cause, sentence: str, seconds: float = 0.0, errors: str = "") -> Outcome:
    return Outcome(failure=Failure(cause, sentence), seconds=seconds, errors=errors)


_PAGE = os.sysconf("SC_PAGE_SIZE")

#: Seconds to wait for the report of how a worker ended, and for what it had written before that.
_REPORT_WAIT = 0.5


class Worker(asyncio.Protocol):
    """A worker and the connection to it. `pidfd` stays ours when the process id goes to another process."""

    def __init__(self, pid: int, pidfd: int, stderr: int) -> None:
        self.pid = pid
        self._pidfd = pidfd
        self._stderr = stderr
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        #: The frame that is awaited, its greeting at first; None where the connection closes instead.
        self._awaited: asyncio.Future[kernel.Frame | None] = self._loop.create_future()
        #: Whether it can be asked, as far as is known.
        self.usable = True
        self.calls = 0
        #: Resident bytes when it became ready.
        self.first_size = 0
        #: The failure that we ended it for, where it was us and not the unit.
        self.ended_for: Failure | None = None
        #: Set when its end was reported; and how it ended, where that is known.
        self.reported = asyncio.Event()
        self.status: int | None = None
        for handle in (pidfd, stderr):  # until neither its pool nor a call refers to it any more
            weakref.finalize(self, os.close, handle)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if not self.busy:
            # It has nothing to say: something that a unit left behind writes.
            self.usable = False
            self.kill()
            return
        try:
            self._received += data
            frame = kernel.unpacked(self._received)
        except kernel.BadFrame as error:
            self._awaited.set_exception(error)
            return
        if frame is not None:
            self._awaited.set_result(frame)

    def connection_lost(self, error: Exception | None) -> None:
        self.usable = False
        if self.busy:
            self._awaited.set_result(None)
        else:
            self.kill()  # it may live, without its connection

    @property
    def busy(self) -> bool:
        """Whether something is awaited of it."""
        return not self._awaited.done()

    async def greets(self) -> bool:
        """Wait until it says that it is ready; whether it does before it ends, or something else is said."""
        try:
            return await self._awaited is not None and not self.reported.is_set()
        except kernel.BadFrame:
            return False

    async def ask(self, request: bytes) -> kernel.Frame | None:
        """Send a packed question and wait for its answer; None where it has ended, and how is known by then.

        Raises `BadFrame` for what cannot be the answer: a unit wrote it.
        """
        mark = random.getrandbits(32)
        if self._transport is not None and self.usable:
            self._received, self._awaited = bytearray(), self._loop.create_future()
            self._transport.write(kernel.marked(request, mark))
            frame = await self._awaited
            if frame is not None:
                if frame[0] != mark:  # the answer is still to come
                    raise kernel.BadFrame("another question's answer")
                return frame
        # It has ended, and how is about to be reported; or a unit has closed what is not its own.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.reported.wait(), _REPORT_WAIT)
        return None

    def report_end(self, status: int | None) -> None:
        """It has ended; what it has started may have its connection still, for a moment."""
        self.status = status
        self.reported.set()
        self._loop.call_later(_REPORT_WAIT, self.close)

    def close(self) -> None:
        """Hear no more of it."""
        if self._transport is not None:
            self._transport.abort()

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def size(self) -> int:
        """Resident bytes now; 0 when it has ended."""
        try:
            return int(Path(f"/proc/{self.pid}/statm").read_text("ascii").split()[1]) * _PAGE
        except (OSError, IndexError):
            return 0

    def stderr_text(self) -> str:
        """The last that it wrote to stderr in its last call: where a crash happened, for the log."""
        return kernel.read_memory(self._stderr)[-kernel.LOGGED :]

    def why_it_ended(self) -> Failure | None:
        """Why it ended, as the fault of the unit it ran; None when something outside has killed it."""
        if self.ended_for is not None:
            return self.ended_for
        # Not by select, which knows no descriptors from 1024 on: a busy proxy has more.
        ended = select.poll()
        ended.register(self._pidfd, select.POLLIN)
        if not self.reported.is_set() and not ended.poll(0):
            return Failure(Cause.CRASHED, "closed its worker's connection to the proxy")
        if self.status is None or self.status == -signal.SIGKILL:
            return None
        if self.status < 0:
            return Failure(Cause.CRASHED, f"crashed its worker process ({_signal_name(-self.status)})")
        return Failure(Cause.EXITED, f"ended its worker process with exit status {self.status}")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


log = logging.getLogger(__name__)

#: A longer line is reported in pieces.
_LONGEST = 4096
#: Seconds that the last lines may take once the process has ended.
_LAST_SECONDS = 1.0

#: What a plugin folder's interpreter is started with. Of the folder that our package is in it takes our own
#: code alone, as what else lies next to that may belong to another Python. Arguments: this folder, the
#: control socket's descriptor, and the process id of the proxy.
_PROGRAM = """
import sys
home, control, proxy = sys.argv[1:]
sys.path[0] = home
from ovirt_scheduler_proxy.worker import zygote
sys.path.remove(home)
zygote.main(int(control), int(proxy))
"""
#: The folder that our package is in.
_HOME = Path(__file__).parent.parent
_LONGEST_MESSAGE = 1 << 20

#: What belongs to the proxy's own relation with systemd, and secrets: neither must reach plugins.
_OURS = (
    *("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID"),
    *("OVIRT_PASSWORD", "OVIRT_TOKEN"),
)
#: Lets plugins know that what they return is taken, so that they need not print it as for the old proxy.
_RETURNS_ARE_TAKEN = {"OVIRT_SCHEDULER_PROXY_TAKES": "returned"}

# Guards the set of our own children: whatever else becomes a child of ours was left behind by a plugin.
_lock = threading.Lock()
_zygotes: set[int] = set()


class ZygoteProcess:
    """A running zygote process. It loads the plugins first, and then starts workers on demand."""

    def __init__(self, python: str, settings: dict[str, Any]) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _LONGEST_MESSAGE)
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _LONGEST_MESSAGE)
            try:
                self.process = _start(python, theirs.fileno())
            except OSError as error:
                ours.close()
                raise UserError(
                    f"the Python interpreter {python} of plugin folder {settings['folder']}"
                    f" cannot be started: {error.strerror}"
                ) from error
        self.control = ours
        #: The last line that it wrote to stderr, or the plugins while they are imported.
        self.complaint = ""
        complaining = self.process.stderr, settings["folder"]
        self._complaining = threading.Thread(
            target=self._log, args=complaining, name="complaints", daemon=True
        )
        self._complaining.start()
        #: What the folder's modules reported when they were loaded: see `worker.loading`.
        self.modules: list[dict[str, Any]] = []
        self._report(json.dumps(settings).encode())

    def wait_until_loaded(self, seconds: float) -> bool:
        """Wait until the plugins are loaded, so long for each; False when the process ended instead."""
        loading, cause = None, "its import ended the process"
        try:
            while (event := self.receive()) is not None:
                if event["event"] == "loaded":
                    self.control.setblocking(False)
                    return True
                if event["event"] == "loading":
                    loading = event["module"]
                elif event["event"] == "module":
                    loading = None
                    self.modules.append(event)
                else:
                    self.process.kill()
                    cause = "its import wrote into the proxy's connection"
                    break
                self.control.settimeout(seconds if loading else None)
        except TimeoutError:
            # What it has started goes with it, unless it is not to be spoken to.
            self.process.send_signal(kernel.PROXY_ENDED)
            try:
                self.process.wait(_LAST_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
            cause = f"its import took longer than {seconds:g} s"
        if loading is not None:
            self.modules.append({"module": loading, "units": [], "error": cause, "shareable": False})
        return False

    def spawn(self, eager: bool) -> None:
        """Ask for one more worker, which comes with an event "spawned", or "refused"; see `Zygote`."""
        self._report(b"spawn eager" if eager else b"spawn")

    def receive(self) -> dict[str, Any] | None:
        """The next event; None when the process has ended. Raises `BlockingIOError` when there is none.

        With "spawned" come the `worker` and the `connection` to it. One without a name is what a plugin wrote
        into a descriptor that is not its own.
        """
        try:
            message, handles, flags, _ = socket.recv_fds(self.control, _LONGEST_MESSAGE, 3)
        except ConnectionError:
            return None
        if not message:
            return None
        if flags & socket.MSG_CTRUNC:
            for handle in handles:
                os.close(handle)  # its worker ends once the other side is closed
            return {"event": "refused", "error": "the proxy has no file descriptors left"}
        event: dict[str, Any] = {"event": ""}
        with contextlib.suppress(msgspec.MsgspecError, RecursionError):
            event |= msgspec.json.decode(message, type=dict[str, Any])
        if (event["event"] == "spawned") != bool(handles):
            return {"event": ""}
        if handles:
            connection, pidfd, stderr = handles
            event["worker"] = Worker(event["pid"], pidfd, stderr)
            event["connection"] = socket.socket(fileno=connection)
        return event

    def close(self) -> None:
        """End the process with all its workers, and wait until they are gone."""
        self.control.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        with _lock:
            _zygotes.discard(self.process.pid)
        self._complaining.join(_LAST_SECONDS)

    def _log(self, stream: IO[bytes], folder: str) -> None:
        """Read in a thread of its own, for as long as a process has the other end open."""
        with stream:
            for line in iter(lambda: stream.readline(_LONGEST), b""):
                if text := line.decode(errors="replace").rstrip():
                    self.complaint = text
                    log.warning("%s: %s", folder, text)

    def _report(self, message: bytes) -> None:
        with contextlib.suppress(OSError):  # if it has ended, `receive` says so
            self.control.send(message)


def end_children(*, zygotes: bool = False) -> None:
    """End what a dead zygote left: its workers, and what their units had started, have come to us.

    With `zygotes`, everything that is left: one may have been loading when the proxy stopped.
    """
    with _lock:
        while children := set(kernel.children()) - (set() if zygotes else _zygotes):
            for child in children:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(child, 0)


def _start(python: str, control: int) -> subprocess.Popen[bytes]:
    with _lock:
        process = subprocess.Popen(  # noqa: S603  # the administrator names the interpreter
            [python, "-c", _PROGRAM, str(_HOME), str(control), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=[control],
            env={name: value for name, value in os.environ.items() if name not in _OURS} | _RETURNS_ARE_TAKEN,
        )
        _zygotes.add(process.pid)
    return process
