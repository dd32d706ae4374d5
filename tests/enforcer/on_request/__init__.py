"""What people ask for: plans as of now, and that one is carried out."""
