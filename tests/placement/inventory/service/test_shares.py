"""Users of this machine: what one has of the service at once is bounded, and keeps nothing from another."""

import os
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from time import monotonic

import pytest
from msgspec.structs import replace

from ovirt_placement.inventory.connection import (
    HEARD,
    LENGTH,
    Hangs,
    NoAnswer,
    NoService,
    Services,
    address,
    framed,
)
from ovirt_placement.inventory.publication import (
    Decide,
    Decided,
    Moments,
    Question,
    Refresh,
    State,
    Wake,
    ask,
    encoded,
)
from ovirt_placement.inventory.service import readers
from tests.kit.served import ServedInventory
from tests.placement.model.full_state import full_state, loaded

#: More than the kernel keeps of an answer that is not read.
_VMS = 3_000
_SECONDS, _BRIEF_SECONDS = 30.0, 0.2
STATE = Refresh(0.0)


class Users:
    """Who connects is the current user; connections stand until they are closed."""

    def __init__(self, served: ServedInventory, stack: ExitStack) -> None:
        self.current = 1
        self.directory = served.config.inventory.directory
        self._stack = stack

    def connect(self, question: Question | None) -> socket.socket:
        """Ask, if there is a question, until it is heard or its answer begins, which is left where it is."""
        connection = self._stack.enter_context(socket.socket(socket.AF_UNIX))
        connection.settimeout(_SECONDS)
        with address(self.directory) as path:
            connection.connect(path)
        if question is not None:
            connection.sendall(framed(encoded(question)))
            if not connection.recv(LENGTH.size):
                raise NoService
        return connection

    def state(self, seconds: float = _SECONDS) -> State:
        return ask(self.directory, STATE, seconds, State)


def answered(connection: socket.socket) -> bool:
    """Whether an answer comes to what was heard."""
    length: int = LENGTH.unpack(connection.recv(LENGTH.size, socket.MSG_WAITALL))[0]
    return len(connection.recv(length, socket.MSG_WAITALL)) == length > 0


def rest(connection: socket.socket) -> bytes:
    """What is still to be had of an answer before the connection ends."""
    found = b""
    with suppress(ConnectionResetError):
        while more := connection.recv(1 << 20):
            found += more
    return found


def wait_for_end(connection: socket.socket) -> None:
    """Wait until the other side has closed it, and read nothing."""
    poll = select.poll()
    poll.register(connection, 0)  # an end is reported in any case
    assert poll.poll(_SECONDS * 1000), "it is still open"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedInventory]:
    file = tmp_path / "placement.toml"
    file.write_text(
        f'[engine]\nurl = "https://e/ovirt-engine/api"\n[inventory]\ndirectory = "{tmp_path}/run"\n'
    )
    made = ServedInventory(file)
    snapshot = loaded(full_state())
    vms = tuple(replace(snapshot.vms[0], id=f"v{at}", name=f"vm number {at}") for at in range(_VMS))
    made.publish(replace(snapshot, vms=vms, affinity_groups=()), Moments(*(1.0 for _ in Moments._fields)))
    yield made
    made.close()


@pytest.fixture
def users(served: ServedInventory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Users]:
    with ExitStack() as stack:
        made = Users(served, stack)
        monkeypatch.setattr(readers, "_user_of", lambda writer: made.current)
        yield made


def test_states_that_are_not_taken_keep_none_from_another_user(users: Users) -> None:
    held = [users.connect(STATE) for _ in range(4)]
    with pytest.raises((NoAnswer, Hangs)):
        users.state(_BRIEF_SECONDS)
    users.current = 2
    assert len(users.state().changes.content) > 1
    users.current = 1
    held[0].close()
    assert len(users.state().changes.content) > 1


def test_who_does_not_take_the_answer_is_closed(users: Users, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as soon:
        soon.setattr(readers, "_TAKING_SECONDS", 0.05)
        held = [users.connect(STATE) for _ in range(4)]
        for one in held:
            wait_for_end(one)
    assert len(users.state().changes.content) > 1, "their places are free again"
    whole = len(framed(encoded(users.state())))
    assert all(len(rest(one)) < whole for one in held)


def test_connections_of_one_user_leave_room_for_others(users: Users, monkeypatch: pytest.MonkeyPatch) -> None:
    version = users.state().version
    monkeypatch.setattr(readers, "_MOST_OF_ONE_USER", 3)
    waiting = [users.connect(Wake(version)) for _ in range(2)]
    silent = users.connect(None)
    assert users.state().version, "in the place of the silent one"
    assert silent.recv(1) == b""
    waiting.append(users.connect(Wake(version)))
    with pytest.raises((NoService, OSError)):
        users.connect(Wake(version))
    users.current = 2
    assert users.state().version == version


@pytest.fixture
def goes_on(served: ServedInventory, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Until this is set, decisions about the VM `held` are not made."""
    found = threading.Event()

    def decide(question: Decide) -> Decided:
        if question.vm == "held":
            found.wait(_SECONDS)
        return Decided(["h1"])

    monkeypatch.setattr(served._readers, "_decide", decide)
    return found


def test_decisions_of_one_user_leave_threads_to_others(users: Users, goes_on: threading.Event) -> None:
    held = []
    for unit, most in (("AffinityFilter", 32), ("HaAdmissionFilter", 2)):
        users.current = 1
        held += [users.connect(Decide("filter", unit, ["h1"], "held")) for _ in range(most)]
        quick = Decide("filter", unit, ["h1"])
        with pytest.raises((NoAnswer, Hangs)):
            ask(users.directory, quick, _BRIEF_SECONDS, Decided)
        users.current = 2
        assert ask(users.directory, quick, _SECONDS, Decided).hosts == ["h1"]
    goes_on.set()
    assert all(answered(one) for one in held)


def test_a_slow_question_holds_up_no_quick_one(users: Users, goes_on: threading.Event) -> None:
    slow = Decide("filter", "HaAdmissionFilter", ["h1"], "held")
    held = []
    for users.current in (1, 2):
        held += [users.connect(slow) for _ in range(2)]
    users.current = 3
    with pytest.raises((NoAnswer, Hangs)):
        ask(users.directory, replace(slow, vm=""), _BRIEF_SECONDS, Decided)
    assert ask(users.directory, replace(slow, unit="AffinityFilter", vm=""), _SECONDS, Decided).hosts == [
        "h1"
    ]
    goes_on.set()
    assert all(answered(one) for one in held)


def test_an_idle_connection_is_kept_and_goes_first_when_room_is_needed(
    users: Users, served: ServedInventory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "_MOST_OF_ONE_USER", 3)
    monkeypatch.setattr(served._readers, "_decide", lambda question: Decided(["h1"]))
    question = Decide("filter", "AffinityFilter", ["h1"])
    silent, services = users.connect(None), Services()
    for _ in range(5):
        assert ask(users.directory, question, _SECONDS, Decided, services).hosts == ["h1"]
    waiting = users.connect(Wake(users.state().version))
    _, idle = services._kept[users.directory]
    users.connect(Wake(users.state().version))
    assert idle.recv(1, socket.MSG_PEEK) == b"", "it makes room"
    assert ask(users.directory, question, _SECONDS, Decided, services).hosts == ["h1"], (
        "by another connection"
    )
    assert silent.recv(1) == b"", "the next that is closed"
    assert waiting.fileno() > 0
    services.close()


def test_a_fork_asks_by_no_connection_of_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    services, (ours, theirs) = Services(), socket.socketpair()
    with ours, theirs:
        services._kept[Path("/run")] = os.getpid(), ours
        monkeypatch.setattr(os, "getpid", lambda: 1)
        assert services._borrow_connection(Path("/run")) is None
        assert theirs.recv(1) == b"", "the fork's copy is closed"


@pytest.mark.parametrize("question", ["wake", "refresh"])
def test_who_waits_and_leaves_takes_no_place(
    users: Users, served: ServedInventory, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    """As those who watch a cluster in which nothing changes: they ask again each second or two."""
    version = users.state().version
    monkeypatch.setattr(readers, "_MOST_OF_ONE_USER", 3)
    asked = Wake(version) if question == "wake" else Refresh(1e12, whole=True)
    for _ in range(12):
        users.connect(asked).close()
        ends = monotonic() + _SECONDS
        while served._readers._connected.total() and monotonic() < ends:
            threading.Event().wait(0.001)
    assert served._readers._connected.total() == 0


def test_who_was_answered_late_asks_again_by_the_same_connection(
    users: Users, served: ServedInventory
) -> None:
    connection = users.connect(Wake(users.state().version))
    whole = loaded(full_state())
    for moment, state in ((2.0, whole), (3.0, replace(whole, affinity_groups=())), (4.0, whole)):
        served.publish(state, Moments(*(moment for _ in Moments._fields)))
        assert answered(connection)
        connection.sendall(framed(encoded(Wake(users.state().version))))
        assert connection.recv(LENGTH.size) == HEARD
