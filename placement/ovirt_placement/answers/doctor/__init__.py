"""What `doctor` looks at, one file for each thing that can be wrong; each yields findings."""
