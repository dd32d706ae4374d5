"""Options that all modules have."""


class ModuleDocFragment(object):
    DOCUMENTATION = r"""
options:
  config:
    description: The configuration that the command reads; else that of the system.
    type: path
  command_path:
    description: The folder that the commands of ovirt-placement are in; else they are searched on the path.
    type: path
  token:
    description:
      - A token of the engine, such as C(ovirt_auth.token), in place of the user and the password that are
        configured.
    type: str
requirements:
  - ovirt-placement on the machine that the task runs on
author:
  - the authors of ovirt-placement (@ovirt-placement)
"""
    CHANGING = r"""
options:
  fail_if:
    description:
      - Conditions, such as C(violated) or C(moves>5).
      - Where one is true, nothing is changed and the task fails.
    type: list
    elements: str
    default: []
attributes:
  check_mode:
    description: The command checks everything, and writes nothing.
    support: full
  diff_mode:
    description: What the change concerns, before and afterwards.
    support: full
"""
    ASKING = r"""
attributes:
  check_mode:
    description: It changes nothing at all.
    support: full
"""
