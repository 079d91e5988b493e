"""Strict reading of YAML and JSON: every value knows its line, every mistake is told at once."""
