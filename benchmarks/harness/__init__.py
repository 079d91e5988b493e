"""What the engine's benchmarks share: models that are watched, texts replayed, prices."""
