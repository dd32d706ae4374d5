"""How our account logs in: its password, the single sign-on, and log-ins that were refused a moment ago.

The password is read from its file at each log-in, and only where no other user can have touched it. An engine
locks an account after a few wrong passwords: no log-in is tried that was refused lately. All processes of a
user remember it together, in memory that ends with the run of the machine: workers come and go, and each
would log in for itself. A password that is written again, or a file that is touched, is tried at once.

Source: what the engine's own SDK sends, and the engine's OAuthTokenServlet and its SsoLogoutServlet.
"""

import contextlib
import json
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec
import ovirtsdk4

from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.exchanges import Answer, Trust, ask_once
from ovirt_placement.engine.connection.failures import AWAY_STATUSES, Cause, LogInRefused, Unanswered
from ovirt_service.daemon import BackOff
from ovirt_service.errors import UserError
from ovirt_service.files import digest_name, memory_folder, one_locked, open_regular

_ROOT = 0
_LONGEST = 4096


class Password(NamedTuple):
    """A password, and a mark that is another one once the password has been written again."""

    text: str
    mark: str


def read_password(settings: EngineSettings, environment: Mapping[str, str] = os.environ) -> Password:
    """Read the password from its file, else from the variable OVIRT_PASSWORD.

    Raises `UserError` if there is none, or if others may read or write the file than us, root, and a group
    that root lets read it.
    """
    path = settings.password_file
    if path is None:
        if password := environment.get("OVIRT_PASSWORD"):
            return Password(password, digest_name(password, 8))
        raise UserError("no password: set password_file under [engine], or the variable OVIRT_PASSWORD")
    try:
        with open(open_regular(path), encoding="utf-8") as file:
            found = os.fstat(file.fileno())
            if reason := refusal(found, os.geteuid(), str(path)):
                raise UserError(reason)
            password = file.read(_LONGEST + 1).rstrip("\r\n")
    except OSError as error:
        raise UserError(f"{path}: cannot read the password: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: the password is not UTF-8 text") from None
    if len(password) > _LONGEST:
        raise UserError(f"{path}: is longer than {_LONGEST} characters, which no password is")
    if not password:
        raise UserError(f"{path}: is empty; write the password into it, alone on one line")
    # Another one for what stands there after it was written, or even touched.
    mark = f"{found.st_dev}:{found.st_ino}:{found.st_mtime_ns}:{found.st_ctime_ns}"
    return Password(password, mark)


def refusal(found: os.stat_result, uid: int, path: str) -> str | None:
    """Say why the user `uid` should not take a password from this file, and what to do; None if it may.

    Its owner alone may touch it. The one exception: root may let a group of services read it, since services
    of several users log in, and must still do so once root owns it.
    """
    touchable = stat.S_IMODE(found.st_mode) & (stat.S_IRWXG | stat.S_IRWXO)
    has_group = found.st_gid != _ROOT
    is_shared = found.st_uid == _ROOT and has_group and touchable == stat.S_IRGRP
    if touchable and not is_shared:
        return f"{path}: others may read the password: chmod 600 {path}"
    if found.st_uid in (uid, _ROOT):
        return None
    owning = f"chown {uid} {path}"
    if uid == _ROOT and has_group:
        owning = f"chown root {path} && chmod 640 {path}, which its group still reads"
    return (
        f"{path}: belongs to another user (uid {found.st_uid}), who may change the password:"
        f" run as that user, or {owning}"
    )


#: An engine locks an account for an hour after five refusals in a row, by its defaults.
_BACK_OFF: Final = BackOff(300.0, 3600.0)
#: A log-in that is not known to be right waits so long for another one's outcome.
_PATIENCE_SECONDS: Final = 5.0
#: Bytes of the digest that names an account's file.
_NAME_SIZE: Final = 12
#: What the engine says when it has a trouble of its own, whatever the password.
TROUBLES: Final = ("server_error", "temporarily_unavailable")

_Clock = Callable[[], float]


class _Refusal(NamedTuple):
    """The last refused log-in of an account, how many there were in a row, and what the engine said."""

    mark: str
    at: float
    refusals: int
    said: str


class LogIns:
    """The log-ins of one account at one engine, by all processes of this user."""

    def __init__(self, url: str, username: str, clock: _Clock | None = None) -> None:
        self._clock = clock or (lambda: time.clock_gettime(time.CLOCK_BOOTTIME))
        self._file = memory_folder("log-ins") / digest_name(f"{username} {url}", _NAME_SIZE)
        #: What could not be written there.
        self._unwritten: _Refusal | None = None
        #: The mark of the password with which this process has logged in.
        self._accepted = ""

    @contextmanager
    def trying(self, mark: str) -> Iterator[None]:
        """Log in within this, with the password of this mark.

        Raises `LogInRefused` without a log-in if the engine has refused that password lately.
        """
        self._check(mark)
        # One at a time tries what may be wrong.
        locks = [] if mark == self._accepted else [self._file.with_suffix(".lock")]
        with one_locked(locks, _PATIENCE_SECONDS):
            self._check(mark)
            try:
                yield
            except LogInRefused as refused:
                self._accepted = ""
                if refused.kind not in TROUBLES:
                    self._remember(mark, refused.said)
                raise
            if mark != self._accepted:
                self._accepted = mark
                with contextlib.suppress(OSError):
                    self._file.unlink(missing_ok=True)

    def _check(self, mark: str) -> None:
        last = self._last()
        if last is None or last.mark != mark:
            return
        rest = last.at + _BACK_OFF.pause_after(last.refusals) - self._clock()
        if rest > 0:
            raise LogInRefused(
                "not_tried",
                f"{last.said}; so that it does not lock the account, it is asked again in {rest / 60:.0f}"
                " min, or once the password is written again",
            )

    def _remember(self, mark: str, said: str) -> None:
        before = self._last()
        refusals = before.refusals + 1 if before is not None and before.mark == mark else 1
        refusal = _Refusal(mark, self._clock(), refusals, said)
        new = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        try:
            new.write_bytes(msgspec.json.encode(refusal))
            new.rename(self._file)
            self._unwritten = None
        except OSError:  # memory is full, or another user has taken the folder's name: then each by itself
            self._unwritten = refusal

    def _last(self) -> _Refusal | None:
        """What is remembered; a file of another run of the machine, or that is none, says nothing."""
        try:
            found = msgspec.json.decode(self._file.read_bytes(), type=_Refusal)
        except (OSError, msgspec.DecodeError):
            return self._unwritten
        return found if found.at <= self._clock() else None


# The single sign-on, which is asked by forms.

LOG_IN: Final = "sso/oauth/token"
LOG_OUT: Final = "services/sso-logout"
_SCOPE: Final = "ovirt-app-api"
#: The engine forgets a session by itself: its end is not waited for any longer.
_LOG_OUT_SECONDS: Final = 0.5
_LONGEST_TOKEN: Final = 4096
VARIABLE: Final = "OVIRT_TOKEN"
_HEADERS: Final = {"Accept": "application/json", "User-Agent": f"PythonSDK/{ovirtsdk4.get_version()}"}


def url_of(settings: EngineSettings) -> str:
    """Where the API is; raises `UserError` where no engine is configured."""
    if not settings.url:
        raise UserError("no engine: set url under [engine] in the configuration, or the variable OVIRT_URL")
    return settings.url.rstrip("/")


def post_form(
    settings: EngineSettings,
    path: str,
    form: Mapping[str, str],
    seconds: float,
    ended: Callable[[], bool] = lambda: False,
) -> Answer:
    """Ask the single sign-on; raises `Unanswered`, also where `ended` breaks that off."""
    parts = urlsplit(settings.url or "")
    return ask_once(
        f"{parts.scheme}://{parts.netloc}/ovirt-engine/{path}",
        {"scope": _SCOPE, **form},
        _HEADERS,
        trust=Trust(settings.ca_file, settings.insecure),
        seconds=seconds,
        ended=ended,
    )


def log_in_form(name: str | None, password: str) -> dict[str, str]:
    return {"grant_type": "password", "username": name or "", "password": password}


def object_of(answer: Answer) -> dict[str, Any] | None:
    """What the single sign-on says; None where it is no object of JSON."""
    try:
        said = json.loads(answer.body)
    except (ValueError, RecursionError):
        return None
    said = said[0] if isinstance(said, list) and said else said
    return said if isinstance(said, dict) else None


class SingleSignOn:
    """The single sign-on of one engine, for one account; for any thread."""

    def __init__(
        self, settings: EngineSettings, environment: Mapping[str, str], ended: Callable[[], bool]
    ) -> None:
        """The password is read for each log-in again; `ended` breaks off what is under way."""
        self._settings = settings
        self._environment = environment
        self._log_ins = LogIns((settings.url or "").rstrip("/"), settings.username or "")
        self._ended = ended

    def log_in(self) -> str:
        """Give a new token.

        Raises `LogInRefused`, also without asking if the engine has refused the password lately,
        `Unanswered`, and `UserError` if the password cannot be read.
        """
        password = read_password(self._settings, self._environment)
        form = log_in_form(self._settings.username, password.text)
        with self._log_ins.trying(password.mark):
            answer = self._ask_sso(LOG_IN, form, self._settings.timeout_seconds, self._ended)
            if "error" in answer:
                raise _refused(answer)
            token = answer.get("access_token")
            if not isinstance(token, str) or not sendable(token):
                raise Unanswered(Cause.NO_ENGINE, "the log-in was answered without a token")
        return token

    def log_out(self, token: str) -> None:
        """Have the engine forget a token; raises `Unanswered` if it does not say so soon."""
        self._ask_sso(LOG_OUT, {"token": token}, _LOG_OUT_SECONDS, lambda: False)

    def _ask_sso(
        self, path: str, form: Mapping[str, str], seconds: float, ended: Callable[[], bool]
    ) -> dict[str, Any]:
        answer = post_form(self._settings, path, form, seconds, ended)
        if answer.status in AWAY_STATUSES:
            raise Unanswered(Cause.UNSENT, f"HTTP status {answer.status}")
        said = object_of(answer)
        if said is None:
            raise Unanswered(Cause.NO_ENGINE, "the log-in was not answered with an object of JSON")
        return said


def _refused(answer: Mapping[str, Any]) -> LogInRefused:
    """Read both spellings: OAuth's, and the one that the engine has for the scope of its API."""
    if "error_description" in answer:
        return LogInRefused(str(answer["error"]), str(answer["error_description"]))
    return LogInRefused(str(answer.get("error_code")), str(answer["error"]))


def sendable(token: str) -> bool:
    """Whether this may stand in a header."""
    return token.isascii() and token.isprintable() and 0 < len(token) <= _LONGEST_TOKEN and " " not in token


def given_token(environment: Mapping[str, str] = os.environ) -> str | None:
    """The token of the variable, if it is set. Raises `UserError` for one that no header can hold."""
    token = environment.get(VARIABLE)
    if not token:
        return None
    if not sendable(token):
        raise UserError(
            f"{VARIABLE}: is no token of the engine: it has spaces, or other characters than ASCII"
        )
    return token
