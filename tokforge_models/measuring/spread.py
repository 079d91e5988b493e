"""How sure a median is, and whether the device slowed down meanwhile. Pure.

The rule for *noisy*: as far as the spread tells, the medians of two runs like this one may be more
than 5 % apart in more than one case of twenty. From n repetitions with standard deviation s, two
medians differ by less than t(n - 1) * sqrt(2) * 1.2533 * s / sqrt(n) in 19 of 20 cases, where t is
Student's and 1.2533 (the root of pi / 2) is how much less sure a median is than a mean.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

TOLERANCE = 0.05
# Student's t for 95 % in the middle, by degrees of freedom from 1.
_STUDENT = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
)
_MANY = 2.0
_MEDIAN_OVER_MEAN = math.sqrt(math.pi / 2)


def median(values: Sequence[float]) -> float | None:
    """The median, or None of nothing."""
    return statistics.median(values) if values else None


def apart(values: Sequence[float]) -> float | None:
    """How far two medians of such values may lie apart, as a share of the median.

    Returns:
        a share that is exceeded in one case of twenty; None where fewer than two values, or a
        median of 0, say nothing.
    """
    middle = median(values)
    if len(values) < 2 or not middle:
        return None
    freedom = len(values) - 1
    student = _STUDENT[freedom - 1] if freedom <= len(_STUDENT) else _MANY
    deviation = statistics.stdev(values) / middle
    return student * math.sqrt(2) * _MEDIAN_OVER_MEAN * deviation / math.sqrt(len(values))


def noisy(values: Sequence[float]) -> bool:
    """Whether a second run may well find another median; true where nothing tells."""
    share = apart(values)
    return share is None or share > TOLERANCE


def drift(relative: Sequence[float]) -> float | None:
    """By how much the speed changed from the first third of a run to its last.

    Args:
        relative: speeds in the order in which they were measured, each over the median speed of
            the same prompt decoded in the same way.

    Returns:
        -0.1 for a device that became a tenth slower; None of fewer than six speeds.
    """
    third = len(relative) // 3
    if third < 2:
        return None
    return statistics.median(relative[-third:]) / statistics.median(relative[:third]) - 1


def geometric_mean(ratios: Sequence[float]) -> float | None:
    """The mean of ratios, or None of nothing."""
    return statistics.geometric_mean(ratios) if ratios else None
