"""Compares our copies of the engine's units with the engine: `python -m tools.engine_conformance DIR`."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Thread
from typing import IO, Any

from tools.engine_conformance.comparing import Comparison, Difference, compare
from tools.engine_conformance.questions import Question
from tools.engine_conformance.units import UNITS

SOURCES = Path(__file__).parent / "java" / "conformance"


class EngineError(Exception):
    """The folder does not hold what is needed, or the JVM ended."""


class Engine:
    """The engine's classes in a JVM of their own. To be closed."""

    def __init__(self, folder: Path) -> None:
        self._compiled = tempfile.TemporaryDirectory()
        classes = _class_path(folder)
        sources = sorted(str(path) for path in SOURCES.glob("*.java"))
        built = subprocess.run(
            ["javac", "-nowarn", "-Xlint:-deprecation", "-d", self._compiled.name, "-cp", classes, *sources],
            capture_output=True,
            text=True,
        )
        if built.returncode:
            raise EngineError(
                f"{folder} does not hold the engine's classes, or others than these:\n{built.stderr}"
            )
        self._process = subprocess.Popen(
            [
                "java",
                "-Xmx1g",
                "-XX:-OmitStackTraceInFastThrow",
                "-cp",
                f"{self._compiled.name}:{classes}",
                "conformance.Main",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, questions: Sequence[Question]) -> list[Any]:
        """The engine's answers, in the order of the questions; a dict with `raised` where it threw."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        writing = Thread(target=_write, args=(stdin, questions))
        writing.start()
        answers = [stdout.readline() for _ in questions]
        writing.join()
        if not all(answers):
            raise EngineError("the JVM ended before it had answered")
        return [_decoded(line) for line in answers]

    def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
        self._compiled.cleanup()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _class_path(folder: Path) -> str:
    """Every jar at any depth, and the folder itself, for classes that are in no jar."""
    jars = sorted(str(path) for path in folder.rglob("*.jar"))
    return ":".join([str(folder), *jars])


def _write(stdin: IO[str], questions: Iterable[Question]) -> None:
    for question in questions:
        stdin.write(question.line() + "\n")
    stdin.flush()


def _decoded(line: str) -> Any:
    answer = json.loads(line)
    return answer.get("answer", answer)


#: How many differences of a copy are printed and written down.
_SHOWN = 3


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tools.engine_conformance", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR", help="the engine's compiled classes, as jars")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--questions", type=int, metavar="N", help="for each unit")
    parser.add_argument("--unit", action="append", choices=sorted(UNITS), help="only these")
    parser.add_argument("--copy", action="append", help="only these: product, simulator")
    parser.add_argument("--write", type=Path, metavar="DIR", help="where differences are written")
    options = parser.parse_args(arguments)
    if not options.folder.is_dir():
        parser.error(f"{options.folder}: no such folder")
    differing = 0
    with Engine(options.folder) as engine:
        for name in options.unit or UNITS:
            unit, started = UNITS[name], time.monotonic()
            number = options.questions or unit.number
            found = compare(unit, engine.ask, unit.questions(options.seed, number), options.copy)
            for copy, comparison in found.items():
                differing += len(comparison.differences)
                print(_told(name, copy, comparison), f"({time.monotonic() - started:.0f} s)", flush=True)
                for at, difference in enumerate(comparison.differences[:_SHOWN]):
                    print("  ", json.dumps({"engine": _once(difference.engine), "ours": difference.ours}))
                    if options.write:
                        write(options.write / f"{copy}-{name}-{at + 1}.json", difference)
    return 1 if differing else 0


def _told(unit: str, copy: str, comparison: Comparison) -> str:
    switched = "".join(f", {number} by {name}" for name, number in sorted(comparison.switched.items()))
    return f"{unit}, {copy}: {comparison.asked} asked, {len(comparison.differences)} differ{switched}"


def _once(answer: Any) -> Any:
    """Each of several runs once."""
    if not isinstance(answer, list):
        return answer
    return [one for at, one in enumerate(answer) if one not in answer[:at]]


def write(path: Path, difference: Difference) -> None:
    """In the form of a state file, with the request and both answers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    question = difference.question
    content = {
        "name": path.stem,
        "unit": difference.unit,
        "copy": difference.copy,
        **question.state,
        "request": question.request,
        "engine": _once(difference.engine),
        difference.copy: difference.ours,
    }
    path.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
