"""List the migrations that repair what is violated."""

DOCUMENTATION = r"""
module: plan_info
short_description: list the migrations that repair what is violated
description:
  - "Asks C(ovirt-enforcer plan): show which migrations would repair violated rules, and why."
version_added: "1.0.0"
options:
  cluster:
    description: >-
      Only this cluster, by name or id; else all.
    type: str
  strategy:
    description: >-
      Default: as configured, else optimal if OR-Tools is installed, else greedy.
    type: str
    choices: [optimal, greedy, random]
  seed:
    description: >-
      Of the strategy random: repeat the plan with this seed.
    type: int
  deadline:
    description: >-
      The time limit (default: as configured, else 27 if optimal, 5 if not).
    type: float
  repair:
    description: >-
      Which rules are repaired (default: as configured, else hard).
    type: str
extends_documentation_fragment:
  - ovirt_placement.core.command
  - ovirt_placement.core.command.asking
"""

EXAMPLES = r"""
- name: List the migrations that repair what is violated
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
        seed={"type": "int"},
        deadline={"type": "float"},
        repair={"type": "str"},
    )


if __name__ == "__main__":
    main()
