"""What would come of a change, before it is made: violated rules, migrations, and the failures survived."""
