"""Calls the commands of ovirt-placement: by the target's own Python, which may be 3.6, and nothing else."""

import contextlib
import json
import os
import tempfile

from ansible.module_utils.basic import AnsibleModule

OPTIONS = {
    "config": {"type": "path"},
    "command_path": {"type": "path"},
    "token": {"type": "str", "no_log": True},
}
FAIL_IF = {"fail_if": {"type": "list", "elements": "str", "default": []}}

#: The exit status of a change that a condition of fail_if has stopped.
_STOPPED = 3


def changing_options(**more):
    """The argument spec of a module that changes something."""
    return dict(OPTIONS, **dict(FAIL_IF, **more))


def ask(module, program, words, statuses=(0,), names=()):
    """What a command answers, as data, and its exit status; fails the task with its sentence otherwise.

    Names may begin as options do.
    """
    command = [_found(module, program)] + list(words) + ["--json"]
    if module.params["config"]:
        command += ["--config", module.params["config"]]
    command += ["--"] + list(names) if names else []
    token = module.params["token"]
    status, out, err = module.run_command(command, environ_update={"OVIRT_TOKEN": token} if token else {})
    try:
        answer = json.loads(out) if status in statuses else None
    except ValueError:
        answer = None
    if answer is None:
        module.fail_json(msg=err.strip() or out.strip() or "no answer", rc=status, cmd=command)
    return answer, status


def change(module, words, names=()):
    """Make a change, or try it in check mode, and end the module with what came of it."""
    words = list(words)
    if module.params["fail_if"]:
        words += ["--fail-if", ",".join(module.params["fail_if"])]
    if module.check_mode:
        words.append("--dry-run")
    answer, status = ask(module, "ovirt-placement", words, (0, _STOPPED), names)
    if status == _STOPPED:
        held = ", ".join(answer.get("fails", []))
        module.fail_json(msg="nothing was changed: %s" % held, answer=answer)
    diff = {"before": _text(answer["before"]), "after": _text(answer["after"])}
    module.exit_json(changed=answer["changed"], diff=diff, answer=answer)


def answer(program, command, statuses, **own):
    """Run a module that asks: its own options are the command's, and the answer ends it."""
    module = AnsibleModule(argument_spec=dict(OPTIONS, **own), supports_check_mode=True)
    words = ["--%s=%s" % (name, module.params[name]) for name in own if module.params[name] is not None]
    found, status = ask(module, program, [command] + words, statuses)
    module.exit_json(changed=False, answer=found, ok=status == 0)


@contextlib.contextmanager
def written(content):
    """A file with this content, which only we may read; the path of it."""
    handle, path = tempfile.mkstemp(suffix=".json")
    try:
        with os.fdopen(handle, "w") as file:
            json.dump(content, file)
        yield path
    finally:
        os.unlink(path)


def given(record):
    """What of a record was given."""
    return {name: value for name, value in record.items() if value is not None}


def _found(module, program):
    folder = module.params["command_path"]
    return module.get_bin_path(program, required=True, opt_dirs=[folder] if folder else None)


def _text(part):
    return "" if part in (None, []) else json.dumps(part, indent=2, sort_keys=True) + "\n"
