"""`tokforge chat`: its commands on a scripted session, and the real thing in a pseudo-terminal."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from command import COMMAND, tokforge
from demo_pair import DRAFT, needs_mnn
from tokforge_engine import GenerateOptions, Incompatible, InvalidRequest, Message, Piece, Run
from tokforge_models.cli.app import run
from tokforge_models.cli.chat import Talk
from tokforge_models.errors import UnknownBundle

STATS = SimpleNamespace(
    **dict.fromkeys(("rounds", "drafted", "accepted"), 0),
    **dict.fromkeys(("prefill_seconds", "decode_seconds", "draft_seconds", "verify_seconds"), 0.0),
    **dict.fromkeys(("other_seconds", "rollback_seconds", "tokens_per_second"), 0.0),
    **dict.fromkeys(("reused", "prefilled", "forgotten"), 0),
    drafters=(),
)


class Generation(Iterator[Piece]):
    def __init__(self, runs: list[Any]) -> None:
        self._runs = iter(runs)
        self.closed = False
        self.in_thought = False
        self.result = SimpleNamespace(stats=STATS, completion_tokens=3)

    def __next__(self) -> Piece:
        step = next(self._runs)
        if isinstance(step, BaseException):
            raise step
        return Piece((step,), ())

    def close(self) -> None:
        self.closed = True


class Session:
    """Answers what it is told to, and remembers what it was asked."""

    max_d = 7

    def __init__(self) -> None:
        self.alive = True
        self.answers: list[list[Any]] = []
        self.asked: list[tuple[list[tuple[str, str]], GenerateOptions]] = []
        self.generation: Generation | None = None

    def generate(
        self, chat: list[Message], options: GenerateOptions, *, on_prefill: object
    ) -> Generation:
        self.asked.append(([(message.role, message.content) for message in chat], options))
        self.generation = Generation(self.answers.pop(0) if self.answers else [Run("fine", None)])
        return self.generation


@pytest.fixture
def session() -> Session:
    return Session()


def pair_of(session: Session, draft: str | None = "demo-draft", d: int | str = "auto") -> Any:
    resolution = SimpleNamespace(lookup=True, draft=SimpleNamespace(id=draft) if draft else None)
    return SimpleNamespace(session=session, resolution=resolution, d=d)


class Loads:
    """Gives pairs by the name of their draft, and remembers which were asked for."""

    def __init__(self, **pairs: Any) -> None:
        self.pairs = pairs
        self.asked: list[str] = []

    def __call__(self, draft: str) -> Any:
        self.asked.append(draft)
        pair = self.pairs.get(draft)
        if pair is None or isinstance(pair, Exception):
            raise pair or UnknownBundle(f"no bundle is called {draft!r}", hint="tokforge ls")
        return pair


@pytest.fixture
def loads(session: Session) -> Loads:
    return Loads(auto=pair_of(session))


@pytest.fixture
def talk(loads: Loads) -> Talk:
    return Talk(loads, "auto", GenerateOptions(), [Message("system", "Be kind.")])


def test_each_turn_takes_the_whole_chat(talk: Talk, session: Session) -> None:
    talk.take("Hello")
    talk.take("And?")
    assert session.asked[0][0] == [("system", "Be kind."), ("user", "Hello")]
    assert session.asked[1][0][2:] == [("assistant", "fine"), ("user", "And?")]


def test_empty_lines_are_no_messages(talk: Talk, session: Session) -> None:
    talk.take("  \n")
    assert session.asked == []


def test_a_stopped_answer_is_kept_and_the_chat_goes_on(talk: Talk, session: Session) -> None:
    session.answers = [[Run("half an ", None), KeyboardInterrupt()]]
    talk.take("Hello")
    assert session.generation is not None
    assert session.generation.closed
    talk.take("Go on")
    assert session.asked[1][0][2:] == [("assistant", "half an "), ("user", "Go on")]


def test_a_message_that_is_refused_leaves_the_chat_as_it_was(
    talk: Talk, session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    session.answers = [[InvalidRequest("the prompt is too long")]]
    talk.take("Hello" * 999)
    assert "too long" in capsys.readouterr().err
    talk.take("Hello")
    assert len(session.asked[1][0]) == 2


def test_reset_begins_anew_with_the_system_message(talk: Talk, session: Session) -> None:
    talk.take("Hello")
    talk.take("/reset")
    talk.take("Hello again")
    assert session.asked[1][0] == [("system", "Be kind."), ("user", "Hello again")]


@pytest.mark.parametrize(
    ("lines", "drafter", "d"),
    [
        ([], "any", "auto"),
        (["/draft none"], "any", 0),
        (["/draft lookup"], "lookup", "auto"),
        (["/draft lookup", "/d 3"], "lookup", 3),
        (["/draft none", "/draft auto"], "any", "auto"),
        (["/d 5", "/d auto"], "any", "auto"),
        (["/d 8"], "any", "auto"),
        (["/d many"], "any", "auto"),
        (["/draft someone"], "any", "auto"),
        (["/nonsense"], "any", "auto"),
    ],
)
def test_commands_change_how_the_next_answer_is_made(
    talk: Talk, session: Session, lines: list[str], drafter: str, d: int | str
) -> None:
    for line in lines:
        talk.take(line)
    talk.take("Hello")
    ((_, options),) = session.asked
    assert (options.drafter, options.d) == (drafter, d)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        *(
            (f"/d {d}", f"/d takes a number of tokens; expected auto or 0 to 7; got '{d}'")
            for d in ("8", "99", "many", "-1")
        ),
        ("/draft someone", "no bundle is called 'someone'; kept auto and the conversation"),
        ("/draft", "expected auto, none, lookup or an id"),
        ("/nonsense", "there is no command /nonsense"),
        ("/save", "takes the name of a new file"),
        ("/stats", "nothing was answered yet"),
        ("/help", "/draft auto|none|lookup|ID"),
    ],
)
def test_what_a_command_says(
    talk: Talk, line: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    talk.take(line)
    ended = capsys.readouterr()
    assert says in ended.err
    assert ended.out == ""


def test_another_draft_is_loaded_and_the_conversation_goes_on(
    talk: Talk, session: Session, loads: Loads, capsys: pytest.CaptureFixture[str]
) -> None:
    other = Session()
    loads.pairs["other"] = pair_of(other, "other", d=2)
    talk.take("/d 5")
    talk.take("Hello")
    other.max_d = 3
    talk.take("/draft other")
    assert "the next answer reads the whole conversation again" in capsys.readouterr().err
    talk.take("And?")
    ((chat, options),) = other.asked
    assert chat == [
        ("system", "Be kind."),
        ("user", "Hello"),
        ("assistant", "fine"),
        ("user", "And?"),
    ]
    assert (options.drafter, options.d) == ("any", 2)
    talk.take("/draft auto")
    talk.take("Once more")
    assert loads.asked == ["auto", "other", "auto"]
    assert session.asked[-1][0][-1] == ("user", "Once more")


def test_what_is_loaded_already_is_not_loaded_again(talk: Talk, loads: Loads) -> None:
    for who in ("auto", "demo-draft", "none", "lookup", "auto"):
        talk.take(f"/draft {who}")
    assert loads.asked == ["auto"]


@pytest.mark.parametrize("alive", [True, False])
def test_a_draft_that_cannot_be_loaded_leaves_the_pair_from_before(
    talk: Talk, session: Session, loads: Loads, alive: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    talk.take("Hello")
    loads.pairs["other"] = Incompatible("other cannot draft for demo-chat", hint="another one")
    session.alive = alive
    talk.take("/draft other")
    ended = capsys.readouterr()
    assert "other cannot draft for demo-chat; kept auto and the conversation" in ended.err
    assert "another one" in ended.err
    assert loads.asked == ["auto", "other", *([] if alive else ["auto"])]
    talk.take("And?")
    assert len(session.asked[1][0]) == 4


def test_stats_are_those_of_the_last_answer(talk: Talk, capsys: pytest.CaptureFixture[str]) -> None:
    talk.take("Hello")
    talk.take("/stats")
    assert "3 tokens" in capsys.readouterr().err


def test_a_chat_is_saved_to_a_new_file_only(
    talk: Talk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    talk.take("Grüße")
    file = tmp_path / "chat.json"
    talk.take(f"/save {file}")
    saved = file.read_text(encoding="utf-8")
    assert json.loads(saved)[1:] == [
        {"role": "user", "content": "Grüße"},
        {"role": "assistant", "content": "fine"},
    ]
    talk.take("More")
    talk.take(f"/save {file}")
    assert "exists and is kept" in capsys.readouterr().err
    assert file.read_text(encoding="utf-8") == saved
    talk.take(f"/save {tmp_path / 'no' / 'such' / 'folder'}")
    assert "cannot be written" in capsys.readouterr().err


def test_thoughts_and_drafted_text_without_a_terminal_are_plain_text(
    talk: Talk, session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    session.answers = [[Run("<think>hm</th", "demo-draft"), Run("ink>yes", None)]]
    talk.take("Hello")
    assert capsys.readouterr().out == "hmyes\n"


def test_colours_show_who_guessed(
    session: Session, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    for no_color, shown in (
        ("", "\x1b[2mhm\x1b[0my\x1b[32me\x1b[0m\x1b[36ms\\x1b\x1b[0m\n"),
        ("1", "hmyes\\x1b\n"),
    ):
        monkeypatch.setenv("NO_COLOR", no_color)
        session.answers = [
            [
                Run("<think>hm</think>y", None),
                Run("e", "demo-draft"),
                Run("s\x1b", "lookup"),
            ]
        ]
        Talk(Loads(auto=pair_of(session)), "auto", GenerateOptions(), []).take("Hello")
        assert capsys.readouterr().out == shown


@pytest.fixture
def pair(home: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert run(["pull", "demo-chat", "demo-draft"]) == 0
    capsys.readouterr()
    return home


@needs_mnn
def test_lines_of_a_pipe_are_a_chat(pair: Path) -> None:
    ended = tokforge(
        *("chat", "demo-chat", "--max-tokens", "12"), stdin="Hello.\n/stats\nAnd you?\n/stats\n"
    )
    assert ended.code == 0
    assert len(ended.out.splitlines()) >= 2
    assert ended.err.count("tokens at") == 2
    assert "\x1b[" not in ended.out


@needs_mnn
def test_another_draft_in_the_middle_of_a_chat(pair: Path) -> None:
    assert run(["import", str(DRAFT), "--as", "mine"]) == 0
    lines = "Hello.\n/draft mine\nAnd you?\n/stats\n/draft nobody\nStill there?\n/stats\n"
    ended = tokforge("chat", "demo-chat", "-d", "2", "--max-tokens", "12", stdin=lines)
    assert ended.code == 0
    assert "demo-chat with mine" in ended.err
    assert "reads the whole conversation again" in ended.err
    assert "/draft nobody cannot be" in ended.err
    assert ended.err.count("drafted tokens accepted") == 2


ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A command in a pseudo-terminal; what it shows, without escape sequences."""

    def __init__(self, *words: str) -> None:
        import fcntl
        import pty
        import struct
        import termios

        self.pid, fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm", PROMPT_TOOLKIT_NO_CPR="1", NO_COLOR="")
            os.execv(sys.executable, [*COMMAND, *words])
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        self._fd: int | None = fd
        self._seen = ""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd is not None:
            os.kill(self.pid, signal.SIGKILL)
            self.end()

    def type(self, text: str) -> None:
        assert self._fd is not None
        os.write(self._fd, text.encode())

    def wait_for(self, pattern: str) -> None:
        """Read until `pattern` is on the screen; what came up to its end is gone then."""
        assert self._fd is not None
        deadline = time.monotonic() + 60
        while not (found := re.search(pattern, self._seen, re.DOTALL)):
            ready, _, _ = select.select([self._fd], [], [], deadline - time.monotonic())
            assert ready, f"{pattern!r} never came: {self._seen!r}"
            try:
                data = os.read(self._fd, 65536)
            except OSError:
                data = b""
            assert data, f"{pattern!r} never came, and it ended: {self._seen!r}"
            self._seen = ESCAPES.sub("", self._seen + data.decode(errors="replace"))
        self._seen = self._seen[found.end() :]

    def end(self) -> int:
        """Read to the end; the exit code."""
        assert self._fd is not None
        with contextlib.suppress(OSError):
            while os.read(self._fd, 65536):
                pass
        os.close(self._fd)
        self._fd = None
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@needs_mnn
@pytest.mark.skipif(os.name == "nt", reason="a pseudo-terminal of POSIX")
def test_a_chat_in_a_terminal(pair: Path, tmp_path: Path) -> None:
    with Terminal("chat", "demo-chat", "--max-tokens", "3000") as terminal:
        terminal.wait_for("Ctrl\\+D ends.*>")
        # A slip of the hand is mended with the line editor: Ctrl+A, then typed before it.
        terminal.type("Count on and on.\x01Please. \r")
        terminal.wait_for("on and on\\..*\n.*[a-z]")
        terminal.type("\x03")
        terminal.wait_for("\\(stopped\\).*>")
        # The line before it comes back with the arrow key.
        terminal.type("\x1b[A")
        terminal.wait_for("Please\\. Count")
        terminal.type("\x15never mind\x03")
        terminal.wait_for(">")
        terminal.type(f"/save {tmp_path / 'chat.json'}\r")
        terminal.wait_for("saved 2 messages.*>")
        terminal.type("\x04")
        assert terminal.end() == 0
    saved = json.loads((tmp_path / "chat.json").read_text(encoding="utf-8"))
    assert saved[0] == {"role": "user", "content": "Please. Count on and on."}


@needs_mnn
def test_a_line_that_is_no_text_is_a_sentence(pair: Path) -> None:
    ended = tokforge("chat", "demo-chat", "--max-tokens", "4", stdin=b"Hello.\n\xff\xfe\n")
    assert ended.code == 2
    assert "not UTF-8" in ended.err
    assert "Traceback" not in ended.err


@needs_mnn
def test_save_keeps_what_is_there_and_names_what_cannot_be(pair: Path, tmp_path: Path) -> None:
    new, kept = tmp_path / "talk.json", tmp_path / "kept.json"
    kept.write_text("mine", encoding="utf-8")
    names = (new, kept, tmp_path / "no" / "folder.json", "~nobody-x/y")
    lines = ["Hello.", *(f"/save {name}" for name in names)]
    ended = tokforge("chat", "demo-chat", "--max-tokens", "4", stdin="\n".join(lines))
    assert ended.code == 0
    assert [one["role"] for one in json.loads(new.read_text(encoding="utf-8"))] == [
        "user",
        "assistant",
    ]
    assert kept.read_text(encoding="utf-8") == "mine"
    assert "exists and is kept" in ended.err
    assert ended.err.count("cannot be") == 2
