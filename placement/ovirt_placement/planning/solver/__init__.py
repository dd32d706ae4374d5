"""Where VMs are to end: step by step, and by constraint programming, which needs OR-Tools; and why not."""
