"""The Ansible modules that ask, as they follow from the questions: `<question>_info`."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator

import ovirt_enforcer
from ovirt_placement.answers.question import Question, questions

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
    answer(
        "{program}",
        {arguments},
    )


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
    words = [f'"{question.name}"', str(question.statuses)]
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
        arguments=",\n        ".join(words),
    )


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
