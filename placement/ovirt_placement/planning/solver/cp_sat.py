"""CP-SAT: OR-Tools' `cp_model`, loaded without the pandas that it imports.

`cp_model` names two classes of pandas in signatures, and calls pandas only where a caller hands it series,
which we never do; but importing pandas takes longer than solving a small cluster, at each `ovirt-enforcer
plan`. OR-Tools' inner layer, `cp_model_helper`, needs no pandas either, but is another in each version.

So the module is executed with an `import` of its own, in which `pandas` is a stand-in. No other module and no
other thread sees it: `sys.modules` is left alone, what imports pandas gets it, and `cp_model` itself gets
it as soon as it is asked for series.
"""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ortools.sat.python import cp_model as cp_model

#: OpenBLAS, with which numpy comes, reads it.
_THREADS = "OPENBLAS_NUM_THREADS"
_NAME = "ortools.sat.python.cp_model"


class _Signatures(ModuleType):
    """What `cp_model` needs of pandas while it is loaded: a class for each name in its signatures."""

    def __getattr__(self, name: str) -> type:
        return type(name, (), {})


class _OnceUsed(ModuleType):
    """pandas, imported where something of it is used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module("pandas"), name)


def _import(name: str, *arguments: Any, **options: Any) -> ModuleType:
    return _Signatures(name) if name == "pandas" else builtins.__import__(name, *arguments, **options)


@contextmanager
def _without_threads() -> Iterator[None]:
    """Numpy begins a thread for each core when it is loaded, for algebra that planning has none of."""
    before = os.environ.get(_THREADS)
    os.environ[_THREADS] = "1"
    try:
        yield
    finally:
        del os.environ[_THREADS]
        if before is not None:
            os.environ[_THREADS] = before


@_without_threads()
def _load() -> ModuleType:
    if _NAME in sys.modules or "pandas" in sys.modules:
        return import_module(_NAME)  # nothing is left to be saved
    spec = find_spec(_NAME)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module named {_NAME!r}", name=_NAME)
    module = module_from_spec(spec)
    vars(module)["__builtins__"] = {**vars(builtins), "__import__": _import}
    sys.modules[_NAME] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[_NAME]
        raise
    vars(module)["pd"] = _OnceUsed("pandas")
    return module


if not TYPE_CHECKING:
    cp_model = _load()
