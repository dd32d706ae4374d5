"""List the migrations that repair what is violated."""

DOCUMENTATION = r"""
module: plan_info
short_description: list the migrations that repair what is violated
description:
  - Asks C(ovirt-enforcer plan) for its plans. Nothing is migrated.
version_added: "1.0.0"
options:
  cluster:
    description: Only this cluster, by name or id; else all.
    type: str
  strategy:
    description: How the plan is made; else as it is configured.
    type: str
    choices: [optimal, greedy, random]
  repair:
    description: Which rules are repaired, such as C(hard,soft); else as it is configured.
    type: str
extends_documentation_fragment:
  - ovirt_placement.core.command
  - ovirt_placement.core.command.asking
"""

EXAMPLES = r"""
- name: Ask for the migrations
  ovirt_placement.core.plan_info:
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
        "ovirt-enforcer",
        "plan",
        (0, 3, 4),
        cluster={"type": "str"},
        strategy={"type": "str", "choices": ["optimal", "greedy", "random"]},
        repair={"type": "str"},
    )


if __name__ == "__main__":
    main()
