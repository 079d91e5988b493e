from __future__ import annotations

import numpy as np
import pytest

from tokforge_engine.choice import greedy
from tokforge_engine.errors import EngineError


def test_the_largest():
    assert greedy(np.array([0.5, -1.0, 3.0, 2.0], dtype=np.float32)) == 2


def test_of_equals_the_lowest_id():
    assert greedy(np.array([1.0, 3.0, 3.0, 3.0], dtype=np.float32)) == 1
    assert greedy(np.zeros(1000, dtype=np.float32)) == 0


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_refuses_rows_that_are_not_numbers(broken):
    with pytest.raises(EngineError, match="not numbers"):
        greedy(np.array([1.0, broken, 0.0], dtype=np.float32))


def test_a_banned_token_is_not_a_broken_row():
    assert greedy(np.array([-np.inf, 0.0], dtype=np.float32)) == 1
