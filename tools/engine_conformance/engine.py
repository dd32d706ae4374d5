"""Runs the engine's classes from a folder: a JVM that reads questions and writes answers, a line each."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Thread
from typing import IO, Any

from tools.engine_conformance.questions import Question

SOURCES = Path(__file__).parent / "java" / "conformance"


class EngineError(Exception):
    """The folder does not hold what is needed, or the JVM ended."""


class Engine:
    """The engine's classes in a JVM of their own. To be closed."""

    def __init__(self, folder: Path) -> None:
        self._compiled = tempfile.TemporaryDirectory()
        classes = f"{_class_path(folder)}"
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
