"""The server as users run it: a process of its own, the demo pair, clients that people have."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jsonschema
import openai
import pytest

from command import tokforge
from demo_pair import needs_mnn
from serving_kit import serving

pytestmark = needs_mnn
posix = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")

CAT = [{"role": "user", "content": "What is a cat?"}]
# Its stop token is never chosen, so it takes seconds.
LONG = {"max_tokens": 4000, "logit_bias": {"2": -100}, "stream": True}


def home_of(folder):
    """The environment of a home with the demo pair."""
    env = {
        "TOKFORGE_HOME": str(folder / "home"),
        "TOKFORGE_CONFIG_DIR": str(folder / "config"),
        "TOKFORGE_API_KEY": "",
    }
    assert tokforge("pull", "demo-chat", "demo-draft", env=env).code == 0
    return env


@pytest.fixture(scope="module")
def env(tmp_path_factory):
    return home_of(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def server(env):
    with serving("-d", "3", "--threads", "1", env=env) as running:
        yield running


def client_of(running):
    return openai.OpenAI(base_url=f"{running.url}/v1", api_key="any", max_retries=0)


@pytest.fixture
def client(server):
    return client_of(server)


def ask(client, **more):
    values = {"model": "demo-chat", "messages": CAT, "max_tokens": 24, **more}
    return client.chat.completions.create(**values)


def text_of(stream):
    return "".join(c.choices[0].delta.content or "" for c in stream if c.choices)


def counts_of(running):
    with urllib.request.urlopen(f"{running.url}/metrics") as reply:
        return reply.read().decode()


def metrics(running, name):
    lines = counts_of(running).splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


def health(running):
    try:
        with urllib.request.urlopen(f"{running.url}/health") as reply:
            return json.load(reply)
    except urllib.error.HTTPError as error:
        return json.load(error)


def curl(*words):
    ended = subprocess.run(
        ["curl", "--silent", "--show-error", "--no-buffer", *words],
        capture_output=True,
        check=True,
        timeout=60,
    )
    return ended.stdout.decode()


def test_whole_and_streamed_are_the_same(client):
    whole = ask(client, max_tokens=12)
    assert whole.choices[0].message.content
    assert whole.usage.completion_tokens == 12
    assert whole.choices[0].finish_reason == "length"
    timings = whole.model_extra["timings"]
    assert timings["draft_n"] >= timings["draft_n_accepted"] > 0
    chunks = list(ask(client, max_tokens=12, stream=True, stream_options={"include_usage": True}))
    assert text_of(chunks) == whole.choices[0].message.content
    assert chunks[-1].usage.completion_tokens == 12
    assert chunks[-2].choices[0].finish_reason == "length"


def test_a_stop_text_ends_the_answer(client):
    whole = ask(client).choices[0].message.content
    word = whole.split()[4]
    for stream in (False, True):
        answer = ask(client, stop=[word, "nowhere"], stream=stream)
        said = text_of(answer) if stream else answer.choices[0].message.content
        assert said == whole[: whole.index(word)]


def test_a_seed_draws_the_same_again_and_none_draws_another(client):
    def draw(**more):
        return ask(client, temperature=1.5, max_tokens=40, **more)

    one, same, other = draw(seed=11), draw(seed=11), draw(seed=12)
    assert one.choices[0].message.content == same.choices[0].message.content
    assert one.choices[0].message.content != other.choices[0].message.content
    assert one.model_extra["seed"] == 11
    assert draw().model_extra["seed"] not in {None, 11}


def test_a_biased_token_is_drawn_and_a_banned_one_is_not(client):
    first = ask(client, max_tokens=1, logprobs=True).choices[0].logprobs.content[0]
    assert first.logprob <= 0
    answer = client.completions.create(
        model="demo-chat", prompt="A cat", max_tokens=3, logit_bias={"300": 100}, logprobs=1
    )
    assert len(set(answer.choices[0].logprobs.tokens)) == 1
    with pytest.raises(openai.BadRequestError, match="token id with a bias"):
        ask(client, logit_bias={"99999999": 1})


def test_log_probabilities_are_of_the_tokens_that_came(client):
    choice = ask(client, logprobs=True, top_logprobs=3).choices[0]
    tokens = choice.logprobs.content
    assert b"".join(bytes(token.bytes) for token in tokens).decode() == choice.message.content
    assert all(len(token.top_logprobs) == 3 for token in tokens)
    assert all(token.logprob == token.top_logprobs[0].logprob for token in tokens)
    streamed = [
        token.token
        for chunk in ask(client, logprobs=True, stream=True)
        for token in (chunk.choices[0].logprobs.content if chunk.choices[0].logprobs else ())
    ]
    assert streamed == [token.token for token in tokens]


@pytest.mark.parametrize(
    "more",
    [
        {"d": 0},
        {"draft": "none"},
        {"draft": "lookup", "d": 2},
        {"draft": "model"},
        {"draft": "demo-draft", "d": 1},
    ],
)
def test_who_drafts_is_chosen_by_each_request(client, more):
    timings = ask(client, extra_body=more).model_extra["timings"]
    plain = more.get("draft") == "none" or more.get("d") == 0
    if plain or more.get("draft") == "model":
        assert bool(timings["draft_n"]) != plain


def test_a_schema_is_fulfilled_whatever_the_model_would_say(client):
    schema = {
        "type": "object",
        "properties": {
            "animal": {"enum": ["cat", "dog"]},
            "legs": {"type": "integer", "minimum": 0, "maximum": 8},
            "names": {"type": "array", "items": {"type": "string", "maxLength": 6}, "maxItems": 2},
        },
        "required": ["animal", "legs", "names"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "json_schema": {"name": "animal", "schema": schema}}
    for more in ({}, {"temperature": 1.8, "seed": 4}, {"extra_body": {"draft": "none"}}):
        answer = ask(client, response_format=form, max_tokens=400, **more)
        assert answer.choices[0].finish_reason == "stop"
        jsonschema.validate(json.loads(answer.choices[0].message.content), schema)
    loose = ask(client, response_format={"type": "json_object"}, max_tokens=8, temperature=1.9)
    assert loose.choices[0].message.content.startswith("{")


def test_tools_that_the_template_would_drop_are_refused(client):
    with pytest.raises(openai.BadRequestError, match="knows no tools"):
        tool = {"type": "function", "function": {"name": "sum"}}
        ask(client, tools=[tool], tool_choice="required")


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_sees_what_clients_see(server):
    data = json.dumps({"model": "demo-chat", "messages": CAT, "max_tokens": 4, "stream": True})
    events = curl(
        f"{server.url}/v1/chat/completions",
        *("-H", "content-type: application/json", "-d", data),
    ).split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    assert all(event.startswith("data: {") for event in events[:-2])
    status = curl("-o", os.devnull, "-w", "%{http_code}", f"{server.url}/nowhere")
    assert status == "404"


def test_whoever_hangs_up_frees_the_model_within_a_round(server, client):
    before = metrics(server, 'tokforge_answers_total{end="cancelled"}')
    stream = ask(client, **LONG)
    next(iter(stream))
    stream.close()
    lengths = metrics(server, 'tokforge_answers_total{end="length"}')
    ask(client, max_tokens=2)
    assert metrics(server, 'tokforge_answers_total{end="cancelled"}') == before + 1
    assert metrics(server, 'tokforge_answers_total{end="length"}') == lengths + 1


def test_what_is_said_is_never_logged(env):
    secret = "xyzzy-plugh"
    with serving(env=env) as running:
        client = client_of(running)
        ask(client, messages=[{"role": "user", "content": secret}])
        for bad in ({"temperature": secret}, {secret: 1}, {"response_format": {"type": secret}}):
            with pytest.raises(openai.BadRequestError):
                ask(client, messages=[{"role": "user", "content": secret}], extra_body=bad)
        port = int(running.url.rpartition(":")[2])
        for head in (
            f"GET /{secret}?{secret} HTTP/1.1\r\nHost: {secret}",
            f"GET /{secret}?{secret} HTTP/1.1\r\nHost: localhost\r\nX-{secret}: {secret}",
            f"POST /v1/completions?{secret} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0",
            secret,
        ):
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(f"{head}\r\n\r\n".encode())
                connection.recv(1000)
        counts = counts_of(running)
    assert running.process.wait(20) == 0
    assert secret not in "".join(running.said)
    assert secret not in counts


@posix
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_soon_and_running_streams_hear_of_it(env, number):
    with serving(env=env) as running:
        stream = ask(client_of(running), **LONG)
        next(iter(stream))
        running.process.send_signal(number)
        with pytest.raises(openai.APIError, match="shutting down"):
            list(stream)
        assert running.process.wait(10) == 0


@posix
def test_a_killed_worker_fails_one_answer_and_the_next_is_made(env):
    with serving(env=env) as running:
        client = client_of(running)
        stream = ask(client, **LONG)
        next(iter(stream))
        first = running.worker()
        os.kill(first, signal.SIGKILL)
        with pytest.raises(openai.APIError, match="SIGKILL"):
            list(stream)
        assert ask(client).choices[0].message.content
        # And one that dies while nobody asks costs nobody an answer.
        second = running.worker()
        assert second != first
        os.kill(second, signal.SIGKILL)
        assert ask(client).choices[0].message.content
        assert metrics(running, "tokforge_engine_restarts_total") == 2


@posix
def test_a_worker_that_is_killed_while_it_reads_costs_nobody_an_answer(env):
    long = [{"role": "user", "content": "What is a cat? " * 60}]
    with serving(env=env) as running:
        client = client_of(running)
        for stream in (False, True):
            worker = running.worker()
            with ThreadPoolExecutor(1) as pool:
                answer = pool.submit(ask, client, messages=long, stream=stream, max_tokens=4)
                while not health(running)["running"]:
                    pass
                os.kill(worker, signal.SIGKILL)
                said = answer.result(60)
            assert text_of(said) if stream else said.choices[0].message.content
        assert metrics(running, "tokforge_engine_restarts_total") == 2


@posix
def test_a_bundle_that_is_served_is_not_removed_and_its_damage_is_told_and_mended(tmp_path):
    env = home_of(tmp_path)
    with serving(env=env) as running:
        client = client_of(running)
        refused = tokforge("rm", "demo-chat", env=env)
        assert refused.code == 7
        assert "in use by `tokforge serve demo-chat`" in refused.err
        (weight,) = tmp_path.glob("home/bundles/demo-chat/*/llm.mnn.weight")
        weight.rename(tmp_path / "weight")
        weight.write_bytes(b"damaged")
        # What is loaded is not touched by it.
        assert ask(client, max_tokens=2).choices
        os.kill(running.worker(), signal.SIGKILL)
        for _ in range(2):
            with pytest.raises(openai.InternalServerError, match="demo-chat is damaged") as told:
                ask(client, max_tokens=2)
            assert told.value.status_code == 503
        assert health(running)["status"] == "failed"
        assert tokforge("verify", "demo-chat", "--repair", env=env).code == 0
        assert ask(client, max_tokens=2).choices
        assert health(running)["status"] == "ok"
        # Whoever runs the server sees it too.
        assert "the models cannot be loaded: demo-chat is damaged" in "".join(running.said)


def test_a_second_server_on_one_home_needs_another_port_alone(env, server):
    taken = tokforge("serve", "demo-chat", "--port", server.url.rpartition(":")[2], env=env)
    assert taken.code == 2
    assert taken.err.splitlines()[0].endswith(f": {os.strerror(errno.EADDRINUSE)}")
    with serving(env=env) as second:
        assert ask(client_of(second), max_tokens=2).choices
        assert ask(client_of(server), max_tokens=2).choices


def test_a_key_from_the_environment_or_a_file_is_asked_for(env, tmp_path):
    tmp_path.joinpath("key").write_text("open-sesame\n")
    for words, more in (
        (("--api-key", str(tmp_path / "key")), {}),
        ((), {"TOKFORGE_API_KEY": "open-sesame"}),
    ):
        with serving(*words, env={**env, **more}) as running:
            with pytest.raises(openai.AuthenticationError):
                ask(client_of(running))
            client = openai.OpenAI(base_url=f"{running.url}/v1", api_key="open-sesame")
            assert ask(client, max_tokens=1).choices
            assert "open-sesame" not in "".join(running.said)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_no_request_that_can_be_made_up_makes_the_server_fail(env, tmp_path):
    checks = (
        *("not_a_server_error", "status_code_conformance", "content_type_conformance"),
        *("response_schema_conformance", "negative_data_rejection"),
    )
    with serving("--max-tokens", "4", "-d", "2", "--threads", "1", env=env) as running:
        ended = subprocess.run(
            [
                *(shutil.which("schemathesis", path=Path(sys.executable).parent), "run"),
                *(f"{running.url}/openapi.json", "--checks", ",".join(checks)),
                *("--phases", "examples,coverage,fuzzing", "--max-examples", "40", "--seed", "1"),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout
        assert ask(client_of(running), max_tokens=1).choices


@pytest.mark.slow
def test_many_clients_lose_no_answer_and_memory_does_not_grow():
    script = Path(__file__).parent.parent / "benchmarks" / "serve_load.py"
    ended = subprocess.run(
        [sys.executable, script, "--clients", "32", "--seconds", "12"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
