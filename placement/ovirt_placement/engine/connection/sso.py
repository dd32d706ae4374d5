"""The SDK's connection, with a time limit on its log-in, and with changes that are sent only once."""

from __future__ import annotations

import io
import json
from typing import Any
from urllib.parse import urlencode

import ovirtsdk4
import pycurl

#: A web server answers these for an engine that starts or stops.
AWAY_STATUSES = frozenset({502, 503, 504})


class NotAnEngine(Exception):
    """What answered the log-in is no engine's single sign-on."""


class SdkConnection(ovirtsdk4.Connection):  # type: ignore[misc] # the SDK has no types
    """As its base, but a log-in that gets no answer ends when a request's time is over, and see `send`."""

    def send(self, request: Any) -> Any:
        """Send what changes something over a connection of its own.

        When a kept connection breaks before the answer, curl sends the request again by itself, though the
        engine may have carried it out: a migration or a policy's unit would be asked for twice.
        """
        context = super().send(request)
        if request.method != "GET":
            curl = context[0]
            curl.setopt(pycurl.FRESH_CONNECT, 1)
        return context

    def _get_sso_response(self, url: str, params: Any = "") -> Any:
        body = io.BytesIO()
        curl = pycurl.Curl()
        try:
            curl.setopt(pycurl.URL, url)
            curl.setopt(pycurl.POST, 1)
            curl.setopt(pycurl.COPYPOSTFIELDS, urlencode(params))
            curl.setopt(pycurl.HTTPHEADER, ["Accept: application/json"])
            curl.setopt(pycurl.USERAGENT, f"PythonSDK/{ovirtsdk4.get_version()}")
            curl.setopt(pycurl.TIMEOUT, self._timeout)
            curl.setopt(pycurl.SSL_VERIFYPEER, 0 if self._insecure else 1)
            curl.setopt(pycurl.SSL_VERIFYHOST, 0 if self._insecure else 2)
            if self._ca_file is not None:
                curl.setopt(pycurl.CAINFO, self._ca_file)
            curl.setopt(pycurl.WRITEFUNCTION, body.write)
            curl.perform()
            status = curl.getinfo(pycurl.HTTP_CODE)
        finally:
            curl.close()
        if status in AWAY_STATUSES:
            raise pycurl.error(pycurl.E_COULDNT_CONNECT, f"HTTP status {status}")
        try:
            return json.loads(body.getvalue())
        except ValueError:
            raise NotAnEngine("the log-in was not answered with JSON") from None
