"""The hub of the tests is one: the real `hf` command downloads from it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hub import Hub, cut, running
from store_kit import make_files

FILES = {**make_files(weight_bytes=300_000), "sub/notes.md": b"# notes\n"}


def hf_download(hub: Hub, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the real client, with no cache and no token but what `env` gives it."""
    program = "import sys; from huggingface_hub.cli.hf import main; sys.exit(main())"
    words = ["download", "maker/demo", "--local-dir", str(folder / "got")]
    return subprocess.run(
        [sys.executable, "-c", program, *words],
        env={
            **{k: v for k, v in os.environ.items() if not k.startswith(("HF_", "HUGGING"))},
            "HF_ENDPOINT": hub.url,
            "HF_HOME": str(folder / "hf"),
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_UPDATE_CHECK": "1",
            **env,
        },
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def test_the_real_hf_download_works_against_it(tmp_path: Path) -> None:
    with running() as hub:
        commit = hub.commit("maker/demo", dict(FILES))
        ended = hf_download(hub, tmp_path)
        assert ended.returncode == 0, ended.stderr
        for path, data in FILES.items():
            assert (tmp_path / "got" / path).read_bytes() == data
        assert any(f"/resolve/{commit}/" in path for path in hub.paths())
        assert [seen for seen in hub.requests if seen.host == "cdn" and seen.method == "GET"]
        assert hub.sent > sum(map(len, FILES.values()))


def test_the_real_hf_download_survives_a_cut_and_keeps_its_token_from_the_cdn(
    tmp_path: Path,
) -> None:
    with running() as hub:
        hub.commit("maker/demo", dict(FILES))
        hub.repos["maker/demo"].token = "hf_secret"
        refused = hf_download(hub, tmp_path / "none")
        assert refused.returncode != 0
        hub.fault("weight", cut(100_000), times=1, host="cdn")
        ended = hf_download(hub, tmp_path, HF_TOKEN="hf_secret")
        assert ended.returncode == 0, ended.stderr
        weight = "llm.mnn.weight"
        assert (tmp_path / "got" / weight).read_bytes() == FILES[weight]
        assert hub.tokens_seen("hub") == {"Bearer hf_secret"}
        assert hub.tokens_seen("cdn") == set()


@pytest.mark.parametrize("path", ["config.json", "llm.mnn.weight"])
def test_ranges(path: str) -> None:
    import requests

    with running() as hub:
        hub.commit("maker/demo", dict(FILES))
        for url in (
            f"{hub.url}/maker/demo/resolve/main/{path}",
            f"{hub.url}/static/maker/demo/{path}",
        ):
            got = requests.get(url, headers={"Range": "bytes=3-9"}, timeout=10)
            assert got.status_code == 206
            assert got.content == FILES[path][3:10]
            assert got.headers["Content-Range"] == f"bytes 3-9/{len(FILES[path])}"
        assert hub.connections >= 2
