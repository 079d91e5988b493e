from __future__ import annotations

import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from demo_pair import DRAFT, TARGET, needs_mnn
from tokforge_engine import (
    BundleDamaged,
    EngineCrashed,
    EngineError,
    GenerateOptions,
    InvalidRequest,
    Message,
    ModelSpec,
    RuntimeSettings,
    Sampling,
    Session,
)
from tokforge_engine.process import WorkerProcess

pytestmark = needs_mnn
posix = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")

# Tests share cores, where one thread is faster than two, and exact equality needs this memory.
EXACT = RuntimeSettings(memory="normal", threads=1)
SHIPPED = RuntimeSettings(memory="low", threads=1)
LONG = GenerateOptions(max_tokens=10_000, d=2, ignore_stop_tokens=True)


def spec(path, settings=EXACT, **more):
    return ModelSpec(path, settings, **more)


@pytest.fixture(scope="module")
def session():
    with Session(spec(TARGET), spec(DRAFT)) as session:
        yield session


@pytest.fixture(scope="module")
def exact():
    with Session(spec(TARGET, SHIPPED), spec(DRAFT, SHIPPED), numerics="exact") as session:
        yield session


def answer(session, prompt="Tell me about the sea.", **options):
    options.setdefault("max_tokens", 40)
    options.setdefault("ignore_stop_tokens", True)
    generation = session.generate(prompt, GenerateOptions(**options))
    pieces = list(generation)
    return pieces, generation.result


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_pieces_join_to_the_result(session):
    pieces, result = answer(session)
    assert "".join(piece.text for piece in pieces) == result.text != ""
    tokens = [token for piece in pieces for token in piece.tokens]
    assert tuple(token.id for token in tokens) == result.token_ids
    assert result.completion_tokens == len(result.token_ids) == 40
    assert result.finish_reason == "length"
    assert {token.drafted_by for token in tokens} <= {None, "demo-draft"}
    runs = [run for piece in pieces for run in piece.runs]
    assert all(run.text for run in runs)
    assert {run.drafted_by for run in runs} == {token.drafted_by for token in tokens}
    drafted = sum(token.drafted_by is not None for token in tokens)
    assert drafted == result.stats.accepted
    assert result.stats.emitted == 40 == 1 + result.stats.rounds + result.stats.accepted
    assert result.stats.prefill_seconds > 0
    assert result.stats.verify_seconds > 0


@pytest.mark.parametrize("d", [1, 2, 3, 5, 7])
def test_paired_text_equals_plain_text(session, d):
    _, plain = answer(session, f"Tell me {d} things about bread.", d=0, max_tokens=60)
    _, paired = answer(session, f"Tell me {d} things about bread.", d=d, max_tokens=60)
    assert paired.token_ids == plain.token_ids
    assert plain.stats.drafted == 0 < paired.stats.drafted


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_paired_text_equals_plain_text_on_20_prompts_of_200_tokens(session):
    for number in range(20):
        prompt = f"Question {number}: what do you know about the number {number * 37}?"
        _, plain = answer(session, prompt, d=0, max_tokens=200)
        _, paired = answer(session, prompt, d=1 + number % 5, max_tokens=200)
        assert paired.token_ids == plain.token_ids


def test_a_target_that_drafts_for_itself_is_accepted_whole():
    with Session(spec(TARGET), spec(TARGET, name="itself")) as session:
        _, result = answer(session)
    assert result.stats.accepted == result.stats.drafted > 0


def test_drafts_from_the_context_change_no_token_and_need_no_model(session):
    prompt = "Say again: one two three four five six seven eight. " * 6
    with Session(spec(TARGET), lookup=True) as alone:
        for d in (3, "auto"):
            pieces, result = answer(alone, prompt, d=d, max_tokens=80)
            _, plain = answer(session, prompt, d=0, max_tokens=80)
            assert result.token_ids == plain.token_ids
            tokens = [token for piece in pieces for token in piece.tokens]
            assert {token.drafted_by for token in tokens} <= {None, "lookup"}
            assert {count.name for count in result.stats.drafters} <= {"lookup"}
        assert alone.pid


def test_a_request_may_choose_among_the_drafters_of_its_session():
    prompt = "Say again: one two three. " * 8
    with Session(spec(TARGET), spec(DRAFT), lookup=True) as session:
        answers = {
            (drafter, d): answer(session, prompt, d=d, drafter=drafter)[1]
            for drafter in ("model", "lookup", "any")
            for d in (2, "auto")
        }
    assert len({result.token_ids for result in answers.values()}) == 1
    for (drafter, d), result in answers.items():
        names = {count.name for count in result.stats.drafters}
        allowed = {"model": {"demo-draft"}, "lookup": {"lookup"}}
        assert names <= allowed.get(drafter, {"demo-draft", "lookup"})
        if d == 2 and drafter != "lookup":
            assert names == {"demo-draft"}


def test_what_auto_learns_outlives_the_session(tmp_path):
    file = tmp_path / "pair.json"
    for _ in range(2):
        with Session(spec(TARGET), spec(DRAFT), learned=file) as session:
            answer(session, d=0)
            before = file.read_bytes() if file.exists() else None
            answer(session, d="auto", max_tokens=120)
            assert file.read_bytes() != before
    document = json.loads(file.read_text())
    document["model"] = {"tried": [1000.0] * 8, "kept": [0.0] * 8}
    file.write_text(json.dumps(document))
    with Session(spec(TARGET), spec(DRAFT), learned=file) as session:
        # No round is needed for one token: what was known is trusted half, and that is all.
        answer(session, d="auto", max_tokens=1)
    assert json.loads(file.read_text())["model"] == {"tried": [500.0] * 8, "kept": [0.0] * 8}


def test_a_session_tells_what_forwards_take(session):
    assert len(session.costs.verify) == session.max_d + 1
    assert min(*session.costs.verify, session.costs.draft, session.costs.catch_up) > 0
    with Session(spec(TARGET)) as plain:
        assert plain.costs is None


def test_without_a_draft(session):
    with Session(spec(TARGET)) as alone:
        _, plain = answer(alone)
    _, paired = answer(session)
    assert plain.token_ids == paired.token_ids
    assert plain.stats.drafted == 0


def test_a_second_request_equals_the_first_whatever_was_between(session):
    _, first = answer(session)
    answer(session, "And what about bees?")
    _, second = answer(session)
    assert second.token_ids == first.token_ids
    assert second.stats.accepted == first.stats.accepted


def test_an_abandoned_generation_leaves_the_session_as_it_was(session):
    _, first = answer(session)
    for pieces in (1, 2):
        generation = session.generate("Count.", LONG)
        assert len(list(itertools.islice(generation, pieces))) == pieces
        generation.close()
        with pytest.raises(EngineError, match="not read to its end"):
            _ = generation.result
    _, second = answer(session)
    assert second.token_ids == first.token_ids


def test_a_new_generation_replaces_one_that_runs(session):
    old = session.generate("Count.", LONG)
    next(old)
    _, result = answer(session)
    assert result.completion_tokens == 40
    assert list(old) == []


def test_a_long_prompt_is_read_in_chunks_and_may_be_given_up(session):
    class GiveUpError(Exception):
        pass

    def give_up(done, total):
        raise GiveUpError

    long = "Tell me about the sea. " * 40
    seen = []
    generation = session.generate(
        long, GenerateOptions(max_tokens=4), on_prefill=lambda *at: seen.append(at)
    )
    list(generation)
    total = generation.result.prompt_tokens
    assert [done for done, _ in seen] == list(range(64, total, 64))
    assert {all_of_it for _, all_of_it in seen} == {total}
    with pytest.raises(GiveUpError):
        list(session.generate("First of all: " + long, on_prefill=give_up))
    _, again = answer(session, long, max_tokens=4)
    assert again.token_ids == generation.result.token_ids


def test_a_drafts_reading_of_a_long_prompt_may_be_given_up(session):
    long = "Tell me about the sea. " * 60
    generation = session.generate(long, LONG)
    next(generation)
    generation.close()
    _, again = answer(session, long, d=0, max_tokens=4)
    _, paired = answer(session, long, d=2, max_tokens=4)
    assert paired.token_ids == again.token_ids


@pytest.mark.parametrize("d", [1, 2, 3, 5, 7])
def test_exact_numerics_make_paired_text_plain_text_in_the_shipped_format(exact, d):
    for place in ("sea", "moon", "north"):
        _, plain = answer(exact, f"Tell me {d} things about the {place}.", d=0, max_tokens=80)
        _, paired = answer(exact, f"Tell me {d} things about the {place}.", d=d, max_tokens=80)
        assert paired.token_ids == plain.token_ids
        assert paired.stats.drafted > 0


@pytest.mark.parametrize("seed", range(3))
def test_sampled_text_is_the_same_paired_and_plain(exact, seed):
    sampling = Sampling(temperature=0.9, top_k=40, top_p=0.95, repetition_penalty=1.1, seed=seed)
    _, plain = answer(exact, d=0, max_tokens=80, sampling=sampling)
    _, paired = answer(exact, d="auto", max_tokens=80, sampling=sampling)
    _, fixed = answer(exact, d=3, max_tokens=80, sampling=sampling)
    assert paired.token_ids == fixed.token_ids == plain.token_ids
    assert plain.seed == paired.seed == seed
    assert fixed.stats.drafted > 0


def test_without_a_seed_one_is_drawn_and_told(session):
    _, first = answer(session, sampling=Sampling(temperature=1.0))
    _, other = answer(session, sampling=Sampling(temperature=1.0))
    assert first.token_ids != other.token_ids
    _, again = answer(session, sampling=Sampling(temperature=1.0, seed=first.seed))
    assert again.token_ids == first.token_ids
    _, greedy = answer(session)
    assert greedy.seed is None


def test_lengths_picked_on_the_way_change_no_token(exact, session):
    for each in (exact, session):
        _, plain = answer(each, d=0, max_tokens=150)
        _, paired = answer(each, d="auto", max_tokens=150)
        assert paired.token_ids == plain.token_ids


def test_exact_numerics_are_the_same_with_and_without_a_draft(exact):
    _, paired = answer(exact, max_tokens=80)
    with Session(spec(TARGET, SHIPPED), numerics="exact") as alone:
        _, plain = answer(alone, max_tokens=80)
    assert paired.token_ids == plain.token_ids


def chat_of(session, turns, **options):
    """Each turn's result of one growing chat."""
    chat, results = [], []
    for turn in range(turns):
        chat.append(Message("user", f"Tell me {turn + 2} things about number {turn}."))
        _, result = answer(session, chat, **options)
        chat.append(Message("assistant", result.text))
        results.append(result)
    return results


def test_a_chat_reads_each_token_once(session):
    results = chat_of(session, 30, max_tokens=9, ignore_stop_tokens=False, d="auto")
    read = 0
    for result in results:
        assert result.stats.reused == read
        assert result.stats.prefilled == result.prompt_tokens - read
        # The last emitted token, a stop token or not, has not been through a forward.
        read = result.prompt_tokens + result.stats.emitted - 1
    assert [result.stats.forgotten for result in results[1:]] == [0] * 29


def test_a_chat_is_the_same_paired_and_plain_bit_for_bit(exact):
    plain = chat_of(exact, 4, max_tokens=25, d=0)
    paired = chat_of(exact, 4, max_tokens=25, d=3)
    with Session(spec(TARGET, SHIPPED), numerics="exact") as fresh:
        alone = chat_of(fresh, 4, max_tokens=25)
    for one, other, third in zip(plain, paired, alone, strict=True):
        assert one.token_ids == other.token_ids == third.token_ids


def test_exact_numbers_do_not_depend_on_what_the_cache_holds(exact):
    for end in ("sea", "moon over the sea"):
        _, warm = answer(exact, f"Tell me about the {end}.")
        with Session(spec(TARGET, SHIPPED), numerics="exact") as fresh:
            _, cold = answer(fresh, f"Tell me about the {end}.")
        assert warm.token_ids == cold.token_ids


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc to see memory")
def test_a_thousand_turns_do_not_grow_the_worker():
    def resident(pid):
        status = Path("/proc", str(pid), "status").read_text()
        return int(re.search(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)[1]) * 1024

    whim = random.Random(7)
    with Session(spec(TARGET, SHIPPED), spec(DRAFT, SHIPPED), lookup=True) as session:
        loaded = resident(session.pid)
        chat, most, read = [], 0, 0
        for _ in range(1000):
            if read > 400:
                chat = []
            words = whim.choices(["sea", "cat", "tree", "house", "river"], k=whim.randint(1, 60))
            chat.append(Message("user", " ".join(words)))
            options = GenerateOptions(
                max_tokens=whim.randint(1, 24),
                d=whim.choice([0, 1, 2, 3, 5, 7, "auto"]),
                drafter=whim.choice(["any", "model", "lookup"]),
                sampling=Sampling(temperature=whim.choice([0.0, 0.8])),
                ignore_stop_tokens=True,
            )
            generation = session.generate(chat, options)
            if whim.random() < 0.1:
                next(generation)
                generation.close()
                chat.pop()
            else:
                text = "".join(piece.text for piece in generation)
                chat.append(Message("assistant", text))
                read = generation.result.prompt_tokens
            most = max(most, resident(session.pid))
    assert most - loaded <= 50e6


def test_an_edited_chat_goes_back_to_where_it_was_edited(session):
    first, *_ = chat_of(session, 3, max_tokens=9)
    chat = [
        Message("user", "Tell me 2 things about number 0."),
        Message("assistant", first.text),
        Message("user", "No, tell me of the sea."),
    ]
    _, edited = answer(session, chat)
    assert 0 < edited.stats.reused < edited.prompt_tokens
    assert edited.stats.forgotten > 0
    with Session(spec(TARGET), spec(DRAFT)) as fresh:
        _, again = answer(fresh, chat)
    assert again.token_ids == edited.token_ids


def test_a_score_says_what_the_target_thinks_and_leaves_the_session_as_it_was(session):
    _, plain = answer(session, d=0)
    scored = session.score("Tell me about the sea.", plain.token_ids)
    assert [each.token for each in scored] == list(plain.token_ids)
    assert all(each.ids[0] == each.token for each in scored)
    asked = session.score("Tell me about the sea.", plain.token_ids[:2], [[5, 6, 7], [8]])
    assert [each.ids for each in asked] == [(5, 6, 7), (8,)]
    _, again = answer(session)
    assert again.token_ids == plain.token_ids
    with pytest.raises(EngineError, match="token ids expected"):
        session.score("Hello.", [10**9, 1])
    with pytest.raises(InvalidRequest, match="expected an answer"):
        session.score("Hello.", [])


def test_the_reference_is_the_setting_that_does_not_round(session):
    with Session(spec(TARGET, SHIPPED), spec(DRAFT, SHIPPED), numerics="reference") as reference:
        _, result = answer(reference)
    _, normal = answer(session)
    assert result.token_ids == normal.token_ids


def test_a_stop_text_ends_the_answer_before_it(session):
    _, whole = answer(session)
    stop = whole.text[len(whole.text) // 2 :][:3]
    pieces, result = answer(session, stop=(stop,))
    assert result.text == whole.text[: whole.text.index(stop)]
    assert "".join(piece.text for piece in pieces) == result.text
    assert result.finish_reason == "stop"
    assert whole.token_ids[: result.completion_tokens] == result.token_ids


def test_a_chat_with_a_system_message(session):
    _, bare = answer(session, "Hello.")
    chat = [Message("system", "You are a lighthouse."), Message("user", "Hello.")]
    _, result = answer(session, chat)
    assert result.prompt_tokens > bare.prompt_tokens
    _, again = answer(session, [Message("user", "Hello.")])
    assert again.token_ids == bare.token_ids


def test_the_end_of_the_context_ends_the_answer():
    with Session(spec(TARGET, context_length=48), spec(DRAFT, context_length=40)) as session:
        _, result = answer(session, "Hello.", max_tokens=500)
        assert result.finish_reason == "length"
        assert result.prompt_tokens + result.completion_tokens == 48
        with pytest.raises(InvalidRequest, match="too long for demo-chat: expected at most 47"):
            answer(session, "Hello. " * 100)
        _, again = answer(session, "Hello.", max_tokens=500)
        assert again.token_ids == result.token_ids


def test_requests_out_of_range_are_refused(session):
    with pytest.raises(InvalidRequest, match="d expected 0 to 7 in this session, got 8"):
        session.generate("Hello.", GenerateOptions(d=8))
    with pytest.raises(InvalidRequest, match="no messages"):
        session.generate([])
    with pytest.raises(InvalidRequest, match="max_d expected 0 to 15"):
        Session(spec(TARGET), max_d=16)


def test_a_closed_session_says_so():
    session = Session(spec(TARGET))
    pid = session.pid
    session.close()
    assert gone(pid)
    session.close()
    with pytest.raises(InvalidRequest, match="closed"):
        session.generate("Hello.")


def test_a_chat_template_that_loops_is_ended(tmp_path, monkeypatch):
    copy = shutil.copytree(TARGET, tmp_path / "loops")
    config = json.loads((copy / "llm_config.json").read_text())
    config["jinja"]["chat_template"] = "{% for i in range(1000000000) %}x{% endfor %}"
    (copy / "llm_config.json").write_text(json.dumps(config))
    monkeypatch.setattr("tokforge_engine.session._SILENCE_SECONDS", 2.0)
    with Session(spec(copy)) as session:
        with pytest.raises(EngineCrashed, match="said nothing for 2 s while generating"):
            answer(session)
        assert gone(session.pid)
        with pytest.raises(EngineCrashed, match="has ended"):
            session.generate("Hello.")


def test_nothing_is_written_into_a_bundle(tmp_path):
    copies = [shutil.copytree(path, tmp_path / path.name) for path in (TARGET, DRAFT)]
    before = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")}
    with Session(*(spec(copy) for copy in copies)) as session:
        answer(session)
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")} == before


@posix
@pytest.mark.parametrize("name", ["SIGSEGV", "SIGKILL"])
def test_a_worker_that_dies_while_generating_is_one_error(name):
    with Session(spec(TARGET), spec(DRAFT)) as session:
        generation = session.generate("Count.", LONG)
        next(generation)
        os.kill(session.pid, getattr(signal, name))
        with pytest.raises(EngineCrashed, match=f"died of {name} while generating with demo-chat"):
            list(generation)
        assert gone(session.pid)


@pytest.mark.parametrize("which", [TARGET.name, DRAFT.name])
def test_a_bundle_that_goes_while_it_is_loaded_is_said_to(tmp_path, monkeypatch, which):
    copies = {path.name: shutil.copytree(path, tmp_path / path.name) for path in (TARGET, DRAFT)}
    send = WorkerProcess.send

    def move_and_send(worker, order):
        copies[which].rename(tmp_path / "elsewhere")
        send(worker, order)

    monkeypatch.setattr(WorkerProcess, "send", move_and_send)
    with pytest.raises(BundleDamaged, match=f"{which} was moved or changed while it was loaded"):
        Session(*(spec(copy) for copy in copies.values()), load_timeout=10)


STARVED = f"""
import pathlib, resource
from tokforge_engine import *
if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (250 << 20, 250 << 20))
    settings = RuntimeSettings(memory="normal", threads=1)
    try:
        Session(ModelSpec(pathlib.Path({str(TARGET)!r}), settings), load_timeout=20, force=True)
    except EngineError as error:
        print(error.exit_code, error.message, flush=True)
"""


@posix
def test_memory_that_runs_out_is_one_error_that_says_so():
    done = subprocess.run(
        [sys.executable, "-c", STARVED],
        capture_output=True,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        check=True,
    )
    assert done.stdout.startswith("8 ")
    assert "ran out of memory" in done.stdout
    assert done.stderr == ""


def cut(file, size):
    def hurt(bundle):
        content = bundle.joinpath(file).read_bytes()
        bundle.joinpath(file).write_bytes(content[:size])

    return hurt


def write(file, content):
    return lambda bundle: bundle.joinpath(file).write_bytes(content)


def change(file, **keys):
    def hurt(bundle):
        content = json.loads(bundle.joinpath(file).read_text())
        bundle.joinpath(file).write_text(json.dumps({**content, **keys}))

    return hurt


@pytest.mark.parametrize("which", ["demo-chat", "demo-draft"])
@pytest.mark.parametrize(
    ("hurt", "exit_code"),
    [
        pytest.param(lambda b: b.joinpath("llm.mnn.weight").unlink(), 5, id="no-weight"),
        pytest.param(cut("llm.mnn.weight", 1000), 5, id="weight-cut"),
        pytest.param(cut("llm.mnn.weight", -1), 5, id="weight-one-byte-short"),
        pytest.param(cut("llm.mnn", 5000), 5, id="graph-cut"),
        pytest.param(cut("llm.mnn", -40), 8, id="graph-cut-at-its-very-end"),
        pytest.param(write("llm.mnn", bytes(range(256)) * 99), 5, id="graph-random"),
        pytest.param(write("llm.mnn.weight", bytes(range(256)) * 99), 5, id="weight-random"),
        pytest.param(change("llm_config.json", hidden_size=512), 5, id="hidden-size-does-not-fit"),
        pytest.param(change("llm_config.json", hidden_size="x"), 5, id="hidden-size-is-text"),
        pytest.param(write("config.json", b'{"llm_model": '), 5, id="config-broken"),
        pytest.param(write("llm_config.json", b"\0\0"), 5, id="llm-config-broken"),
        pytest.param(lambda b: b.joinpath("tokenizer.mtok").unlink(), 5, id="no-tokenizer"),
        pytest.param(cut("tokenizer.mtok", 500), 8, id="tokenizer-cut"),
        pytest.param(shutil.rmtree, 5, id="no-bundle"),
    ],
)
def test_a_damaged_bundle_is_one_line_of_error(tmp_path, which, hurt, exit_code):
    copies = {path.name: shutil.copytree(path, tmp_path / path.name) for path in (TARGET, DRAFT)}
    hurt(copies[which])
    with pytest.raises(EngineError) as caught:
        Session(spec(copies["demo-chat"]), spec(copies["demo-draft"]))
    assert caught.value.exit_code == exit_code
    assert which in str(caught.value)
    assert "\n" not in str(caught.value)


def test_weights_of_nonsense_end_within_the_time_for_loading(tmp_path):
    bundle = shutil.copytree(TARGET, tmp_path / "demo-chat")
    weight = bundle / "llm.mnn.weight"
    weight.write_bytes(b"\xa5" * weight.stat().st_size)
    with pytest.raises(EngineError) as caught, Session(spec(bundle), load_timeout=5) as session:
        answer(session)
    assert caught.value.exit_code == 8


def test_a_draft_with_another_vocabulary_is_refused(tmp_path):
    other = shutil.copytree(DRAFT, tmp_path / "other")
    tokenizer = other / "tokenizer.mtok"
    tokenizer.write_bytes(tokenizer.read_bytes().replace("Ġthe".encode(), "Ġteh".encode()))
    with pytest.raises(EngineError, match="other cannot draft for demo-chat: token") as caught:
        Session(spec(TARGET), spec(other))
    assert caught.value.exit_code == 7
    assert "' the'" in str(caught.value)


def test_mnn_that_is_not_installed_is_said_with_advice(tmp_path, monkeypatch):
    tmp_path.joinpath("MNN").mkdir()
    tmp_path.joinpath("MNN", "__init__.py").write_text("raise ImportError('no MNN here')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(EngineError, match="MNN cannot be imported here") as caught:
        Session(spec(TARGET))
    assert caught.value.exit_code == 8
    assert "pip install MNN" in caught.value.hint


def test_an_mnn_that_lacks_a_call_names_it(tmp_path, monkeypatch):
    tmp_path.joinpath("MNN").mkdir()
    tmp_path.joinpath("MNN", "__init__.py").write_text("")
    tmp_path.joinpath("MNN", "llm.py").write_text("create = lambda path: None")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(EngineError, match=r"lacks apply_chat_template, erase_history, forward"):
        Session(spec(TARGET))


def test_importing_the_engine_imports_neither_mnn_nor_numpy():
    code = "import sys, tokforge_engine; print({'MNN', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


PARENT = f"""
import pathlib, sys
from tokforge_engine import *
if __name__ == "__main__":
    target, draft = (ModelSpec(pathlib.Path(path)) for path in {[str(TARGET), str(DRAFT)]!r})
    try:
        with Session(target, draft) as session:
            print(session.pid, flush=True)
            options = GenerateOptions(max_tokens=10_000_000, ignore_stop_tokens=True)
            for piece in session.generate("Count.", options):
                print("piece", flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@pytest.fixture
def parent():
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PARENT)], stdout=subprocess.PIPE, text=True
    ) as process:
        child = int(process.stdout.readline())
        assert process.stdout.readline() == "piece\n"
        yield process, child
        process.kill()


def wait_until_gone(pid):
    """Wait for a process that is not ours: its parent, init, may take a moment to reap it."""
    while not gone(pid):
        with Path("/proc", str(pid), "stat").open() as file:
            if file.read().rsplit(")", 1)[1].split()[0] == "Z":
                return


@posix
def test_ctrl_c_in_the_parent_leaves_no_child(parent):
    process, child = parent
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=10)
    assert rest.endswith("interrupted\n")
    assert gone(child)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc to see a zombie")
def test_a_child_whose_parent_is_killed_ends_by_itself(parent):
    process, child = parent
    process.kill()
    process.wait()
    wait_until_gone(child)


def test_another_thread_may_cancel_a_running_generation(session):
    generation = session.generate("Tell me about the sea.", LONG)
    assert next(generation).tokens
    canceller = threading.Thread(target=generation.cancel)
    canceller.start()
    tokens = sum(len(piece.tokens) for piece in generation)
    canceller.join()
    assert tokens < LONG.max_tokens - 1
    with pytest.raises(EngineError, match="not read to its end"):
        _ = generation.result
    generation.cancel()
    assert answer(session)[1].completion_tokens == 40


def test_raw_text_is_continued_without_the_template(session):
    templated = answer(session, "The sea is", max_tokens=1)[1]
    raw = answer(session, "The sea is", max_tokens=1, raw=True)[1]
    assert 0 < raw.prompt_tokens < templated.prompt_tokens


def test_a_session_knows_whether_its_worker_runs():
    session = Session(spec(TARGET))
    assert session.alive
    session.close()
    assert not session.alive
