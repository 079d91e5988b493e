"""What is on disk, in which state, and what it must be."""
