"""What follows from parsers and questions: the reference, man pages, completions, and Ansible modules."""

import argparse
import configparser
import json
import os
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from unittest.mock import patch

import shtab
from argparse_manpage.manpage import Manpage

import ovirt_enforcer
from ovirt_placement.answers.question import Question, questions
from tests.docs.name_completion import adapted, complete_names
from tests.docs.shown import PARSERS, subcommands, summaries
from tests.paths import CHECKOUT

_SETUP = configparser.ConfigParser()
_SETUP.read(CHECKOUT / "setup.cfg")
RELEASE = _SETUP["metadata"]["version"]

HEAD = """\
# Reference of commands

Made from the commands themselves (`make reference`); `--help` says the same, with examples.
Exit statuses: [json.md](json.md#exit-statuses).

## Options of many commands

A command that has some of these names them below its own; `--config` is one of every command of
ovirt-placement and ovirt-enforcer.
"""

#: An option that means the same in this number of commands is explained once.
_MANY = 5
#: What every command of ours takes is not named at each.
_EVERYWHERE = "--config FILE"
#: A command that shares this number of arguments with one before it refers to that one.
_SHARED = 3


def commands_page() -> str:
    all_of_them = [one for parser in PARSERS.values() for one in subcommands(parser)]
    used = Counter(each for one in all_of_them for each in _rows(one) if each[0].startswith("-"))
    # An option that means several things stands here with the most frequent one.
    often = {called: row for (called, row), times in reversed(used.most_common()) if times >= _MANY}
    common = set(often.values())
    parts = [HEAD, *_list(sorted(common))]
    before: list[argparse.ArgumentParser] = []
    for parser in PARSERS.values():
        reported = summaries(parser)
        parts.append(f"## {parser.prog}\n\n{parser.description}\n")
        for one in subcommands(parser):
            parts.append(_section(one, reported.get(one.prog, ""), common, before))
            before.append(one)
    return "\n".join(parts)


def _section(
    parser: argparse.ArgumentParser, summary: str, common: set[str], before: list[argparse.ArgumentParser]
) -> str:
    """What it does, in its own words or else its parent's, and its arguments."""
    said = (parser.description or f"{summary[:1].upper()}{summary[1:]}.").strip()
    same = next((one for one in before if said == (one.description or "").strip()), None)
    lines = [f"### {parser.prog}", "", f"As {_linked(same)}." if same else _escaped(said), ""]
    rows = [each for each in _rows(parser) if each[1] not in common]
    like = max(before, key=lambda other: len(_in_common(rows, other)), default=parser)
    shared = _in_common(rows, like)
    if like is parser or len(shared) < _SHARED:
        shared = []
    lines += _list(row for _, row in rows if row not in {row for _, row in shared})
    if shared:
        lines += [f"As of {_linked(like)}: {_named(called for called, _ in shared)}.", ""]
    if also := [called for called, row in _rows(parser) if row in common and called != _EVERYWHERE]:
        lines += [f"[Also](#options-of-many-commands) {_named(also)}.", ""]
    return "\n".join(lines)


def _in_common(rows: Iterable[tuple[str, str]], other: argparse.ArgumentParser) -> list[tuple[str, str]]:
    others = set(_rows(other))
    return [each for each in rows if each in others]


def _linked(parser: argparse.ArgumentParser) -> str:
    return f"[{parser.prog}](#{parser.prog.lower().replace(' ', '-')})"


def _named(called: Iterable[str]) -> str:
    """Options without their values, which stand where they are explained."""
    return ", ".join(f"`{one.partition(' ')[0].rstrip(',')}`" for one in called)


def _list(rows: Iterable[str]) -> list[str]:
    listed = list(rows)
    return [*listed, ""] if listed else []


def _rows(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """Each argument as it is called with its line of the list."""
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction):
            continue
        meaning = (action.help or "").replace("%(default)s", str(action.default)).replace("%%", "%")
        called = _called(action)
        yield called, f"- `{called}`: {_escaped(meaning)}" if meaning else f"- `{called}`"


def _called(action: argparse.Action) -> str:
    shown = _metavar(action)
    if action.option_strings:
        value = "" if action.nargs == 0 or isinstance(action, argparse.BooleanOptionalAction) else f" {shown}"
        return ", ".join(action.option_strings) + value
    return f"[{shown}]" if action.nargs == "?" else shown


def _metavar(action: argparse.Action) -> str:
    if isinstance(action.metavar, tuple):
        return " ".join(action.metavar)
    if action.choices is not None and action.metavar is None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    return action.metavar or action.dest.upper()


def _escaped(text: str) -> str:
    """Text in which nothing is a tag."""
    return re.sub(r"<(?=\w)", "&lt;", text)


def man_page(name: str) -> str:
    """A page of section 1; no date, so that it changes with the command alone."""
    parser = PARSERS[name]
    data = {
        "project_name": name,
        "version": RELEASE,
        "date": RELEASE,  # a date would change by itself
        "manual_title": "ovirt-placement",
        "manual_section": 1,
    }
    # Lines of usage break otherwise in each release of Python: a page of this kind is filled anyway.
    with patch.dict(os.environ, {"COLUMNS": "10000"}):
        return str(Manpage(parser, format="pretty", _data=data))


def completion(name: str, shell: str) -> str:
    preamble = complete_names(PARSERS[name])
    script = str(shtab.complete(PARSERS[name], shell=shell, preamble=preamble)).rstrip() + "\n"
    return adapted(script, shell)


_MODULE = '''"""{title}."""

DOCUMENTATION = r"""
module: {name}
short_description: {short}
description:
  - "Asks C({program} {command}): {summary}."
version_added: "1.0.0"
{options}
extends_documentation_fragment:
  - ovirt_placement.core.command
  - ovirt_placement.core.command.asking
"""

EXAMPLES = r"""
- name: {title}
  ovirt_placement.core.{name}:
{example}  register: found
"""

RETURN = r"""
answer:
  description: What the command prints with C(--json); see docs/json.md of ovirt-placement.
  returned: always
  type: dict
ok:
  description: Whether nothing is wrong.
  returned: always
  type: bool
"""

from ansible_collections.ovirt_placement.core.plugins.module_utils.command import answer


def main():
    answer({arguments})


if __name__ == "__main__":
    main()
'''


def modules() -> dict[str, str]:
    """The text of each module, by its name."""
    asked = (one for one in questions(ovirt_enforcer) if one.ansible is not None)
    return {f"{one.name.replace('-', '_')}_info": module(one) for one in asked}


def module(question: Question) -> str:
    """The module of a question: its options are those of the command that take one value."""
    short, options = question.ansible or "", list(_options(question))
    lines = ["options:" if options else "options: {}"]
    words = [f'"{question.command}"', f'"{question.name}"', str(question.statuses)]
    for name, kind, text, choices in options:
        folded = textwrap.fill(text, 100, initial_indent=" " * 6, subsequent_indent=" " * 6)
        lines += [f"  {name}:", f"    description: >-\n{folded}", f"    type: {kind}"]
        lines += [f"    choices: [{', '.join(choices)}]"] if choices else []
        spec = {"type": kind, **({"choices": choices} if choices else {})}
        words.append(f"{name}={json.dumps(spec)}")
    return _MODULE.format(
        title=f"{short[:1].upper()}{short[1:]}",
        name=f"{question.name.replace('-', '_')}_info",
        short=short,
        program=question.command,
        command=question.name,
        summary=question.summary,
        options="\n".join(lines),
        example="    cluster: blue\n" if any(name == "cluster" for name, *_ in options) else "",
        arguments=_in_layout(words),
    )


def _in_layout(words: Sequence[str]) -> str:
    """Arguments as the formatter has them."""
    line, lines = ", ".join(words), ",\n        ".join(words)
    return line if len(f"    answer({line})") <= 110 else f"\n        {lines},\n    "


def _options(question: Question) -> Iterator[tuple[str, str, str, list[str]]]:
    """Options with one value: the name, the type, the meaning and the choices of each."""
    own = ((name, one, str) for name, one in question.options.items())
    for name, parameter, hint in (
        *((n, one, hint) for n, (one, hint, _) in question.parameters.items()),
        *own,
    ):
        kinds = {hint, *getattr(hint, "__args__", ())}
        alone = not parameter.argument.keys() & {"action", "nargs"}
        if bool not in kinds and not parameter.positional and alone and parameter.given is None:
            text = parameter.help or ""
            option = (parameter.option or f"--{name}")[2:]
            choices = list(map(str, parameter.argument.get("choices", ())))
            kind = "int" if int in kinds else "float" if float in kinds else "str"
            yield option, kind, f"{text[:1].upper()}{text[1:]}.", choices
