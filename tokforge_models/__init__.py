"""Bundles of MNN chat models: registry, draft resolution, verified transfer, store."""
