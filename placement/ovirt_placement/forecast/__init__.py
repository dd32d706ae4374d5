"""What would come of a change, before it is made: broken rules, migrations, and the failures survived."""
