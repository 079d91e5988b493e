"""The real pair that travels with the package, for tests that run MNN."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

import tokforge_models

PAIR = Path(
    os.environ.get("TOKFORGE_TEST_PAIR") or Path(tokforge_models.__file__).parent / "embedded"
)
TARGET = PAIR / "demo-chat"
DRAFT = PAIR / "demo-draft"

needs_mnn = pytest.mark.skipif(
    importlib.util.find_spec("MNN") is None or not TARGET.is_dir(),
    reason="MNN or the embedded pair is not installed",
)
