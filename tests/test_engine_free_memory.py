from __future__ import annotations

import sys

import pytest

from tokforge_engine.free_memory import (
    free_bytes,
    parse_available,
    parse_groups,
    parse_vm_stat,
)

MEMINFO = """\
MemTotal:       24683568 kB
MemFree:        13865960 kB
MemAvailable:      10000 kB
Buffers:          415100 kB
"""
linux = pytest.mark.skipif(sys.platform in {"win32", "darwin"}, reason="reads files of Linux")


def write(root, **files):
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_here_there_is_some():
    assert free_bytes() > 2**20


@linux
def test_without_groups_it_is_what_the_machine_has(tmp_path):
    write(tmp_path, proc__meminfo=MEMINFO)
    assert free_bytes(tmp_path) == 10_240_000


@linux
def test_nothing_told_is_none(tmp_path):
    assert free_bytes(tmp_path) is None
    assert free_bytes(write(tmp_path, proc__meminfo="MemTotal: x\n")) is None


@linux
@pytest.mark.parametrize(
    ("group", "where"),
    [("/", ""), ("/box", "box/"), ("/box/inner", "box/"), ("/of/the/host", "")],
)
def test_a_limit_of_version_2_counts_wherever_it_stands(tmp_path, group, where):
    write(tmp_path, proc__meminfo=MEMINFO, proc__self__cgroup=f"0::{group}\n")
    folder = tmp_path / "sys/fs/cgroup" / where
    write(folder, memory_dot_max="5000000\n", memory_dot_current="2000000\n")
    assert free_bytes(tmp_path) == 3_000_000
    write(folder, memory_dot_stat="anon 5\ninactive_file 500000\nactive_file 7\n")
    assert free_bytes(tmp_path) == 3_500_000
    write(folder, memory_dot_max="max\n")
    assert free_bytes(tmp_path) == 10_240_000


@linux
def test_the_narrowest_of_several_limits_counts(tmp_path):
    write(tmp_path, proc__meminfo=MEMINFO, proc__self__cgroup="0::/a/b\n")
    for name, limit in (("a", 4_000_000), ("a/b", 6_000_000)):
        write(
            tmp_path / "sys/fs/cgroup" / name,
            memory_dot_max=f"{limit}\n",
            memory_dot_current="1000000\n",
        )
    assert free_bytes(tmp_path) == 3_000_000


@linux
def test_a_limit_of_version_1(tmp_path):
    write(tmp_path, proc__meminfo=MEMINFO, proc__self__cgroup="4:memory:/box\n1:cpu:/\n0::/\n")
    write(
        tmp_path / "sys/fs/cgroup/memory/box",
        memory_dot_limit_in_bytes="8000000\n",
        memory_dot_usage_in_bytes="9000000\n",
        memory_dot_stat="total_inactive_file 100\n",
    )
    assert free_bytes(tmp_path) == 0
    # No limit is a very large number there.
    write(tmp_path / "sys/fs/cgroup/memory/box", memory_dot_limit_in_bytes="9223372036854771712\n")
    assert free_bytes(tmp_path) == 10_240_000


def test_groups_that_lead_elsewhere_are_not_followed():
    assert parse_groups("0::/../../etc\n4:memory:relative\nnonsense\n") == (None, None)
    assert parse_groups("9:cpu,memory:/x\n0::/\n") == ("/", "/x")


def test_available_memory_of_linux():
    assert parse_available(MEMINFO) == 10_240_000
    assert parse_available("MemFree: 1 kB\n") is None


VM_STAT = """\
Mach Virtual Memory Statistics: (page size of 16384 bytes)
Pages free:                               10.
Pages active:                            900.
Pages inactive:                           20.
Pages speculative:                         3.
Pages wired down:                        700.
Pages purgeable:                           4.
"File-backed pages":                      50.
"""


def test_available_memory_of_macos():
    assert parse_vm_stat(VM_STAT) == 37 * 16384
    assert parse_vm_stat("") is None
    assert parse_vm_stat("(page size of 4096 bytes)\n") is None
