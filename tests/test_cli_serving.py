from __future__ import annotations

import importlib.util
import socket

import pytest

from tokforge_models.cli import serving
from tokforge_models.cli.app import run


def refuse(capsys, *words):
    code = run(["serve", "demo-chat", *words])
    return code, capsys.readouterr().err


def test_without_the_extra_it_says_what_to_install(home, monkeypatch, capsys):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "uvicorn" else find(name)
    )
    code, err = refuse(capsys)
    assert code == 7
    assert "not installed: uvicorn" in err
    assert "pip install 'tokforge-models[serve]'" in err


def test_other_machines_are_let_in_with_a_key_or_on_purpose(home, monkeypatch, capsys):
    monkeypatch.delenv(serving.KEY_VARIABLE, raising=False)
    code, err = refuse(capsys, "--host", "0.0.0.0")
    assert code == 2
    assert "there is no key" in err
    # With one, or without on purpose, it goes on to the next fault.
    assert refuse(capsys, "--host", "0.0.0.0", "--no-api-key")[0] == 3
    monkeypatch.setenv(serving.KEY_VARIABLE, "k")
    assert refuse(capsys, "--host", "0.0.0.0")[0] == 3


@pytest.mark.parametrize("content", [b"", b" \n", b"a\nb", b"\xff", b"a\x00"])
def test_a_key_file_without_a_key_is_refused(home, tmp_path, capsys, content):
    tmp_path.joinpath("key").write_bytes(content)
    code, err = refuse(capsys, "--api-key", str(tmp_path / "key"))
    assert code == 2
    assert "holds no key" in err


def test_a_key_file_that_is_none_is_refused(home, tmp_path, capsys):
    assert refuse(capsys, "--api-key", str(tmp_path / "none"))[0] == 6
    assert refuse(capsys, "--api-key", str(tmp_path))[0] == 6


def test_a_port_that_is_taken_is_said_before_anything_is_loaded(home, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, err = refuse(capsys, "--port", str(port))
    assert code == 2
    assert f"cannot listen at 127.0.0.1 port {port}" in err


def test_a_target_that_is_not_there_is_said(home, capsys):
    code, err = refuse(capsys, "--port", "0")
    assert code == 3
    assert "tokforge pull demo-chat" in err
    assert run(["serve", "no-such-model"]) == 3
