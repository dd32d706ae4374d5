"""The pages for developers hold what they promise."""
