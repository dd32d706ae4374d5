"""Say whether highly available VMs would restart."""

DOCUMENTATION = r"""
module: ha_check_info
short_description: say whether highly available VMs would restart
description:
  - "Asks C(ovirt-placement ha-check): whether highly available VMs survive failing hosts."
version_added: "1.0.0"
options:
  cluster:
    description: >-
      Only this cluster, by name or id; else all.
    type: str
  failures:
    description: >-
      How many hosts or domains fail together; else as each cluster is set, else 1.
    type: int
  hosts:
    description: >-
      Only the failure of these hosts together.
    type: str
  steps:
    description: >-
      The limit of work: a step for each set of hosts and for each of its VMs; else 4000000.
    type: int
  processes:
    description: >-
      Spread the work over this many processes.
    type: int
  scheduler:
    description: >-
      Spread the work over the workers of this Dask scheduler, as in tcp://HOST:8786 (needs the
      extra `distributed`).
    type: str
extends_documentation_fragment:
  - ovirt_placement.core.command
  - ovirt_placement.core.command.asking
"""

EXAMPLES = r"""
- name: Say whether highly available VMs would restart
  ovirt_placement.core.ha_check_info:
    cluster: blue
  register: found
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
        "ovirt-placement",
        "ha-check",
        (0, 1),
        cluster={"type": "str"},
        failures={"type": "int"},
        hosts={"type": "str"},
        steps={"type": "int"},
        processes={"type": "int"},
        scheduler={"type": "str"},
    )


if __name__ == "__main__":
    main()
