"""Threads that call the proxy as the engine does, and count the answers."""

from __future__ import annotations

import random
import threading
import time
import xmlrpc.client
from collections.abc import Sequence
from dataclasses import dataclass, field

from .asking import ask

CLIENTS = 4


@dataclass
class Tally:
    """What all clients have seen since the last window."""

    #: Seconds until each answer.
    times: list[float] = field(default_factory=list)
    #: Answers in which a unit failed.
    failed: int = 0
    #: What was wrong with answers, and why calls were not answered: sentences.
    wrong: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


class Clients:
    """They call until this many calls are made."""

    def __init__(self, url: str, hosts: Sequence[str], vms: Sequence[str], calls: int) -> None:
        self._url, self._hosts, self._vms = url, hosts, vms
        self._left = calls
        self._lock = threading.Lock()
        self._tally = Tally()
        self._threads = [threading.Thread(target=self._call_all, args=(seed,)) for seed in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    @property
    def left(self) -> int:
        return self._left

    @property
    def calling(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def take(self) -> Tally:
        with self._lock:
            tally, self._tally = self._tally, Tally()
        return tally

    def stop(self) -> None:
        with self._lock:
            self._left = 0
        for thread in self._threads:
            thread.join()

    def _call_all(self, seed: int) -> None:
        chance = random.Random(seed)
        with xmlrpc.client.ServerProxy(self._url) as proxy:
            while self._is_another_wanted():
                self._call(proxy, chance)

    def _is_another_wanted(self) -> bool:
        with self._lock:
            self._left -= 1
            return self._left >= 0

    def _call(self, proxy: xmlrpc.client.ServerProxy, chance: random.Random) -> None:
        began = time.monotonic()
        failed, wrong, lost = False, "", ""
        try:
            heard = ask(proxy, chance, self._hosts, chance.choice(self._vms))
            failed, wrong = heard.failed, heard.wrong
        except (OSError, xmlrpc.client.Error) as error:
            lost = repr(error)
        seconds = time.monotonic() - began
        with self._lock:
            self._tally.times.append(seconds)
            self._tally.failed += failed
            self._tally.wrong += [wrong] * bool(wrong)
            self._tally.lost += [lost] * bool(lost)
