"""The workloads that ship: there, whole, and found by name."""

from __future__ import annotations

import pytest

from tokforge_models.errors import UsageError
from tokforge_models.measuring.workloads import QUICK, all_workloads, chosen


def test_every_workload_has_two_prompts_that_differ_from_the_start() -> None:
    workloads = all_workloads()
    assert len({workload.name for workload in workloads}) == len(workloads)
    texts = [text for workload in workloads for text in workload.prompts]
    # A common beginning would be read from the cache, and no prefill measured.
    assert len({text[:24] for text in texts}) == len(texts)
    assert all(len(workload.prompts) >= 2 for workload in workloads)
    assert not any("{document}" in text for text in texts)


def test_long_prompts_are_of_about_two_thousand_tokens() -> None:
    (long,) = (workload for workload in all_workloads() if workload.name == "long prompt")
    # English has about four characters a token in vocabularies of 50,000 and more.
    assert all(7_000 < len(text) < 10_000 for text in long.prompts)


def test_names_choose() -> None:
    assert [workload.name for workload in chosen(["code", "prose", "code"])] == ["code", "prose"]
    assert chosen([]) == all_workloads()
    assert [workload.name for workload in chosen([], quick=True)] == list(QUICK)
    assert all(len(workload.prompts) == 1 for workload in chosen(["German"], quick=True))


def test_an_unknown_name_is_told_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="'poems'; expected one of prose, code"):
        chosen(["prose", "poems"])
