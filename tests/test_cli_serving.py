from __future__ import annotations

import importlib.util
import os
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


@pytest.mark.parametrize("key", [" ", "a\nb", "\x07"])
def test_a_variable_without_a_key_is_refused(home, monkeypatch, capsys, key):
    monkeypatch.setenv(serving.KEY_VARIABLE, key)
    code, err = refuse(capsys)
    assert code == 2
    assert f"{serving.KEY_VARIABLE} holds no key" in err


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
@pytest.mark.parametrize(("mode", "told"), [(0o600, False), (0o640, True), (0o604, True)])
def test_a_key_that_others_can_read_is_told(home, tmp_path, capsys, mode, told):
    file = tmp_path / "a key"
    file.write_text("open-sesame\n")
    file.chmod(mode)
    code, err = refuse(capsys, "--api-key", str(file))
    # It goes on to the next fault.
    assert code == 3
    assert ("other users can read the key" in err) == told
    assert (f"chmod 600 '{file}'" in err) == told
    assert "open-sesame" not in err


def test_a_key_and_none_exclude_each_other(home, tmp_path, capsys):
    code, err = refuse(capsys, "--no-api-key", "--api-key", str(tmp_path / "key"))
    assert code == 2
    assert "exclude each other" in err


@pytest.mark.parametrize(
    "words",
    [
        *(("--cors", text) for text in ("", "app.example", "https://a.b/", "https://u@a", "null")),
        *(("--cors", text) for text in ("ftp://a.b", "https://a.b:", "https://a.b:x", "https://")),
        *(("--allow-host", text) for text in ("", "a.b:80", "https://a.b", "*", "a b", "-", "a/b")),
        *(("--timeout", text) for text in ("nan", "inf", "0")),
        ("--max-tokens", "9" * 30),
    ],
)
def test_what_no_client_could_ever_say_is_refused(home, capsys, words):
    code, err = refuse(capsys, *words)
    assert code == 2
    assert words[0] in err


@pytest.mark.parametrize(
    "words",
    [
        *(("--cors", text) for text in ("*", "HTTPS://App.Example", "http://[::1]:3000")),
        *(("--cors", text) for text in ("http://localhost:3000", "http://my_app.local")),
        *(("--allow-host", text) for text in ("Phone.Home", "phone.home.", "my_phone", "phone-1")),
    ],
)
def test_what_a_client_can_say_goes_on_to_the_next_fault(home, capsys, words):
    assert refuse(capsys, *words)[0] == 3


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
