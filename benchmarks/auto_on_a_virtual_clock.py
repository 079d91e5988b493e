"""What `d = auto` gains over fixed lengths, on a clock that only forwards move.

    python benchmarks/auto_on_a_virtual_clock.py

No model runs: the draft is right with given chances, and each forward takes a given time
(`tests/virtual_pair.py`). The figures are exact and the same on every machine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from statistics import mean

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from tokforge_engine.auto import AutoPolicy
from tokforge_engine.costs import Costs
from tokforge_engine.learned import Learned
from tokforge_engine.policy import FixedLength, Policy
from virtual_pair import DEAR, FLAT, STEEP, VirtualPair, best

CURVES = {
    "flat, D = 0.2 V(1)": FLAT,
    "steep, D = 0.08 V(1)": STEEP,
    "steep, D = V(1)": DEAR,
}
# What a trained draft shows: mostly sure, and right the more often the surer it is.
CHANCES = (0.3, 0.4, 0.5, 0.65, 0.78, 0.88, 0.95, 0.99)
OFTEN = (1, 1, 1, 1, 1, 1, 2, 4)
SEEDS = range(16)


def auto(pair: VirtualPair, learned: Learned | None = None) -> AutoPolicy:
    """Auto for a virtual draft."""
    return AutoPolicy(pair.costs, pair, None, learned, clock=pair.clock)  # type: ignore[arg-type]


def one_chance(costs: Costs, chance: float) -> tuple[float, float, float]:
    """Of the best fixed length: the first 128 tokens, 2,000 more, 128 of the next session."""
    first, more, later = [], [], []
    for seed in SEEDS:
        pair = VirtualPair(costs, [chance], seed=seed)
        learned = Learned()
        policy = auto(pair, learned)
        first.append(pair.run(policy, 128))
        more.append(pair.run(policy, 2000))
        later.append(pair.run(auto(pair, learned), 128))
    limit = best(costs, chance)
    return mean(first) / limit, mean(more) / limit, mean(later) / limit


def confident(
    costs: Costs, scale: float, make: Callable[[VirtualPair], Policy], *, shows: bool = True
) -> float:
    """Tokens a second with a draft that is sure to different degrees."""
    chances = [chance * scale for chance in CHANCES]
    pairs = [VirtualPair(costs, chances, OFTEN, seed=seed, shows=shows) for seed in SEEDS]
    return mean(pair.run(make(pair), 2000) for pair in pairs)


def main() -> None:
    """Print both tables."""
    print("one chance at each place: auto of the best fixed length's speed,")
    print("first 128 tokens / 2,000 more / 128 of the next session")
    chances = (0.0, 0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
    print(f"{'chance':22}", *(f"{chance:<18}" for chance in chances))
    for name, costs in CURVES.items():
        found = (one_chance(costs, chance) for chance in chances)
        print(f"{name:22}", *(" / ".join(f"{ratio:.2f}" for ratio in each) for each in found))
    print()
    print("a draft that is sure to eight degrees: of plain speed")
    print(f"{'':22} {'scale':>6} {'best fixed':>14} {'auto':>6} {'without confidence':>19}")
    for name, costs in list(CURVES.items())[:2]:
        for scale in (1.0, 0.9, 0.7, 0.4):
            fixed = {
                d: confident(costs, scale, lambda pair, d=d: FixedLength(pair, d))  # type: ignore[misc]
                for d in range(8)
            }
            d = max(fixed, key=fixed.__getitem__)
            blind = confident(costs, scale, auto, shows=False)
            sees = confident(costs, scale, auto)
            print(
                f"{name:22} {scale:6} {f'{fixed[d]:.3f} (d = {d})':>14} {sees:6.3f} {blind:19.3f}"
            )


if __name__ == "__main__":
    main()
