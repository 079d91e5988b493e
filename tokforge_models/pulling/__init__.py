"""From a source to a ready bundle: list, look, decide, act."""
