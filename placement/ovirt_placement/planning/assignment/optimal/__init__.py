"""The best end of a plan, by constraint programming (CP-SAT of OR-Tools), with a proof where time lasts."""
