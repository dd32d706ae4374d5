"""A plugin whose units answer anything at all, by the seed of a call; some do worse than answer."""

import _thread
import contextlib
import ctypes
import os
import random
import sys
import threading
import time
import uuid
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

HOSTILE = 24

TEXTS = (
    "",
    " ",
    "vm",
    "\0",
    "\x1b[31m",
    "\ud800",
    *("]]>", "<a>&b;", "�￾", "é保\U0001f600", "a\nb\r\tc", "\x85 "),
)


class Odd(list):  # type: ignore[type-arg]
    def __iter__(self) -> Any:
        raise KeyError("odd")

    def __repr__(self) -> str:
        raise KeyError("odder")


class Unwelcome(Exception):
    refuses = True


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


def text(chance: random.Random) -> str:
    return "".join(chance.choices(TEXTS, k=chance.randint(0, 5))) * chance.choice((1, 1, 1, 5000))


def weight(chance: random.Random) -> Any:
    """A number, however large or small."""
    several: tuple[Any, ...] = (0, -1, 2**31, -(2**31) - 1, 2**63, 10**400, Fraction(1, 3), Fraction(10**400))
    inexact = (0.5, -0.0, 1e300, float("inf"), float("-inf"))
    return chance.choice((*several, *inexact, chance.randint(-9, 9), chance.random()))


def number(chance: random.Random) -> Any:
    """A weight, or what only looks like one."""
    return chance.choice((float("nan"), Decimal("1.5"), True, 1j, None, "1", weight(chance)))


def identity(chance: random.Random, hosts: Any) -> Any:
    dashed = str(uuid.UUID(int=chance.getrandbits(128)))
    return chance.choice(
        (dashed, dashed.upper(), dashed.replace("-", ""), f"{dashed}\n", text(chance), chance.choice(hosts))
    )


def anything(chance: random.Random, hosts: Any, depth: int = 0) -> Any:
    makers: list[Callable[[], Any]] = [
        lambda: number(chance),
        lambda: text(chance),
        lambda: identity(chance, hosts),
        lambda: text(chance).encode("utf-8", "replace"),
        lambda: Odd(hosts),
        lambda: iter(hosts),
        object,
    ]
    if depth < 3:
        several = [anything(chance, hosts, depth + 1) for _ in range(chance.randint(0, 3))]
        makers += [lambda: several, lambda: tuple(several), lambda: dict(enumerate(several))]
    return chance.choice(makers)()


def some(chance: random.Random, hosts: Any) -> Any:
    return chance.choice((list, tuple, set, frozenset))(chance.sample(hosts, chance.randint(0, len(hosts))))


def raised(chance: random.Random) -> BaseException:
    kind = chance.choice(
        (RuntimeError, Unwelcome, Mute, SystemExit, KeyboardInterrupt, MemoryError, GeneratorExit)
    )
    return kind(text(chance))


def answered(chance: random.Random, hosts: Any, right: Callable[[], Any]) -> Any:
    """Right, nearly right, wrong, printed, or none."""
    what = chance.randrange(8)
    if what < 3:
        return right()
    if what == 3:
        raise raised(chance)
    if what == 4:
        sys.stdout.write(text(chance).encode("utf-8", "replace").decode())
        print(right())
        return None
    if what == 5:
        sys.stderr.write(text(chance))
    return anything(chance, hosts)


class RandomFilter:
    properties_validation = "seed=[0-9]+;without_value=.*"

    def do_filter(self, hosts: Any, vm: str, args: Any) -> Any:
        chance = random.Random(args["seed"])
        return answered(chance, hosts, lambda: some(chance, hosts))


class RandomScore:
    def do_score(self, hosts: Any, vm: str, args: Any) -> Any:
        chance = random.Random(args["seed"])
        kind = chance.choice((weight, weight, number))
        return answered(chance, hosts, lambda: [(host, kind(chance)) for host in some(chance, hosts)])


class RandomBalance:
    def do_balance(self, hosts: Any, args: Any) -> Any:
        chance = random.Random(args["seed"])
        vm = chance.choice((str(uuid.UUID(int=chance.getrandbits(128))), identity(chance, hosts)))
        return answered(chance, hosts, lambda: (vm, some(chance, hosts)))


def scribble() -> None:
    for descriptor in range(3, 30):
        with contextlib.suppress(OSError):
            os.write(descriptor, os.urandom(64))


DEEDS: tuple[Callable[[], Any], ...] = (
    lambda: os._exit(3),
    lambda: ctypes.string_at(0),
    lambda: os.kill(os.getpid(), 9),
    lambda: os.closerange(0, 1000),
    scribble,
    os.fork,
    lambda: bytearray(4 << 30),
    lambda: [print("x" * 100_000) for _ in range(1000)],
    lambda: [threading.Thread(target=time.sleep, args=(60,), daemon=True).start() for _ in range(30)],
    lambda: _thread.start_new_thread(os._exit, (4,)),
    lambda: time.sleep(60),
    lambda: sys.settrace(lambda *_: 1 / 0),  # type: ignore[arg-type,return-value]
)


def _hostile(number: int) -> type:
    def do(self: Any, hosts: Any, *_: Any) -> Any:
        DEEDS[number % len(DEEDS)]()
        return hosts

    do.__doc__ = "".join(TEXTS) * number
    methods = {
        "do_filter": do,
        "do_score": do,
        "do_balance": do,
        "properties_validation": f"key_{number}=[0-9",
    }
    return type(f"Hostile{number}", (), methods)


for _number in range(HOSTILE):
    globals()[f"Hostile{_number}"] = _hostile(_number)
for _name in ("Ünit\ud800", "L" * 200, "", " "):
    globals()[_name] = _hostile(0)


class ManyParameters(RandomFilter):
    properties_validation = ";".join(f"key{number}=[0-9]" for number in range(2000))
