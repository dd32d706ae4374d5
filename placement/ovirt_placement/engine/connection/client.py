"""Connects to the engine through its SDK, and sorts what can go wrong into what to do about it."""

from __future__ import annotations

import logging
import os
import stat
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import ovirtsdk4
from ovirtsdk4 import http

from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.failures import (
    SDK_ERRORS,
    EngineAway,
    EngineFault,
    EngineSetupError,
    failure_of_answer,
    failure_of_transport,
    fault_of,
)
from ovirt_placement.engine.connection.sso import SdkConnection
from ovirt_service.errors import UserError

__all__ = ["EngineAway", "EngineConnection", "EngineFault", "EngineSetupError", "connect"]

_log = logging.getLogger(__name__)

_CHANGED = frozenset({200, 201, 202})


class EngineConnection:
    """One authenticated way to an engine, for any thread; made at the first request, and again after a loss.

    Every method raises `EngineAway` when the engine does not answer (asking again later may help),
    `EngineSetupError` when a person must set something right, and `EngineFault` when the engine refuses.
    """

    def __init__(self, settings: EngineSettings, environment: Mapping[str, str] = os.environ) -> None:
        """Check the settings; raises `UserError` if something is missing or must not be read."""
        self.url, self.username = _address(settings)
        self.settings = settings
        self._environment = environment
        self._lock = threading.RLock()
        self._sdk: SdkConnection | None = None
        read_password(settings, environment)

    @property
    def sdk(self) -> ovirtsdk4.Connection:
        """The SDK's connection; its errors are the SDK's own, see `failures.failure_of`."""
        with self._lock:
            if self._sdk is None:
                self._sdk = self._open()
            return self._sdk

    def get(self, path: str, **query: str | int | bool) -> bytes:
        """Read `/vms` and the like as the XML that the engine sent: token, renewal and TLS are the SDK's."""
        words = {name: _word(value) for name, value in query.items()}
        answer = self._exchange(http.Request(method="GET", path=path, query=words))
        if answer.code == 200 and _is_xml(answer.headers):
            return bytes(answer.body)
        raise failure_of_answer(answer.code, fault_of(answer.body), self.settings, path)

    def send(self, method: str, path: str, body: bytes = b"") -> bytes:
        """Change something by POST, PUT or DELETE, in XML as `get` reads it; return the answer."""
        request = http.Request(method=method, path=path, body=body.decode() or None)
        answer = self._exchange(request)
        if answer.code in _CHANGED:
            return bytes(answer.body)
        raise failure_of_answer(answer.code, fault_of(answer.body), self.settings, path)

    def _exchange(self, request: http.Request) -> http.Response:
        with self._lock:
            try:
                sdk = self.sdk
                return sdk.wait(sdk.send(request))
            except SDK_ERRORS as error:
                self.forget()
                raise failure_of_transport(error, self.settings) from None

    def close(self) -> None:
        """Log out, if the engine is there to be told and no request is under way that nobody awaits."""
        if not self._lock.acquire(timeout=1.0):
            return
        try:
            sdk, self._sdk = self._sdk, None
            if sdk is not None:
                sdk.close()
        except SDK_ERRORS as error:
            _log.debug("not logged out: %s", error)
        finally:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self) -> SdkConnection:
        settings = self.settings
        return SdkConnection(
            url=self.url,
            username=self.username,
            password=read_password(settings, self._environment),
            ca_file=None if settings.ca_file is None else str(settings.ca_file),
            insecure=settings.insecure,
            timeout=max(1, round(settings.timeout_seconds)),
        )

    def forget(self) -> None:
        """Drop a connection that failed: the SDK keeps the failed request, and its token may be void."""
        with self._lock:
            sdk, self._sdk = self._sdk, None
        if sdk is not None:
            sdk.close(logout=False)


def connect(settings: EngineSettings) -> EngineConnection:
    """Prepare a connection; nothing is sent before the first request.

    Raises `UserError` if the settings name no engine or user, or the password cannot be had.
    """
    return EngineConnection(settings)


def read_password(settings: EngineSettings, environment: Mapping[str, str] = os.environ) -> str:
    """Read the password from its file, else from the variable OVIRT_PASSWORD.

    Raises `UserError` if there is none, or if others than the file's owner may read the file.
    """
    path = settings.password_file
    if path is None:
        if password := environment.get("OVIRT_PASSWORD"):
            return password
        raise UserError("no password: set password_file under [engine], or the variable OVIRT_PASSWORD")
    try:
        with path.open(encoding="utf-8") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & (stat.S_IRWXG | stat.S_IRWXO):
                raise UserError(f"{path}: others may read the password: chmod 600 {path}")
            password = file.read().rstrip("\r\n")
    except OSError as error:
        raise UserError(f"{path}: cannot read the password: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: the password is not UTF-8 text") from None
    if not password:
        raise UserError(f"{path}: is empty; write the password into it, alone on one line")
    return password


def _address(settings: EngineSettings) -> tuple[str, str]:
    if not settings.url:
        raise UserError("no engine: set url under [engine] in the configuration, or the variable OVIRT_URL")
    if not settings.url.startswith(("https://", "http://")):
        raise UserError(f"[engine] url: {settings.url}: write https://ENGINE/ovirt-engine/api")
    if not settings.username:
        raise UserError("no user: set username under [engine], or the variable OVIRT_USERNAME")
    if settings.ca_file is not None and not settings.insecure and not os.access(settings.ca_file, os.R_OK):
        raise UserError(f"[engine] ca_file: {settings.ca_file}: cannot be read")
    return settings.url.rstrip("/"), settings.username


def _word(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_xml(headers: Any) -> bool:
    types = [line for line in headers if line.lower().startswith("content-type:")]
    return bool(types) and "xml" in types[-1].lower()
