"""Every write, every hash, every lock."""
