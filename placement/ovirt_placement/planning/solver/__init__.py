"""What needs OR-Tools: the best end by constraint programming, with a proof where time lasts; and why not."""
