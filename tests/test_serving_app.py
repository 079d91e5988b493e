from __future__ import annotations

import gzip
import json
import re
import socket
import threading
import urllib.error
import urllib.request
from urllib.parse import urlsplit

import openai
import pytest

from serving_kit import crash, listening_server, piece
from tokforge_engine import InvalidRequest, Likely, Message, Piece, Run, Token, TokenLogprobs
from tokforge_models.serving import app, page_files
from tokforge_models.serving.security import Access

HI = [{"role": "user", "content": "hi"}]
SUM = {
    "type": "function",
    "function": {
        "name": "sum",
        "description": "Adds.",
        "parameters": {"type": "object", "properties": {"of": {"type": "array"}}},
    },
}
CALLING = [
    piece("Let me see.\n<tool_"),
    piece('call>\n{"name": "sum", "argu', "helper"),
    piece('ments": {"of": [1'),
    piece(", 2]}}\n</tool_call>", "helper"),
]


@pytest.fixture
def client(url):
    return openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)


def ask(client, **more):
    return client.chat.completions.create(**{"model": "talker", "messages": HI, **more})


def fetch(url, body=None, *, method=None, **headers):
    """Status, headers and body of one request by hand."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    if data is not None:
        headers = {"content-type": "application/json", **headers}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url, data, named, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return reply.status, reply.headers, reply.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def error_of(reply):
    status, _, body = reply
    return status, json.loads(body)["error"]


def test_a_chat_is_answered_whole(client, model):
    answer = ask(client, max_tokens=5, seed=3, temperature=0.5, stop=["x"])
    assert answer.object == "chat.completion"
    assert answer.choices[0].message.content == "Hi."
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.model_dump(exclude_none=True) == {
        "prompt_tokens": 7,
        "completion_tokens": 1,
        "total_tokens": 8,
        "prompt_tokens_details": {"cached_tokens": 2},
    }
    timings = answer.model_extra["timings"]
    assert (timings["cache_n"], timings["prompt_n"], timings["prompt_ms"]) == (2, 5, 500.0)
    ((chat, options),) = model.asked
    assert chat == (Message("user", "hi"),)
    assert (options.max_tokens, options.stop, options.d) == (5, ("x",), 3)
    assert (options.sampling.seed, options.sampling.temperature) == (3, 0.5)


def test_a_chat_is_answered_as_it_comes(client, model):
    model.script = [[piece("He"), piece(""), piece("llo", "helper")]]
    stream = ask(client, stream=True, stream_options={"include_usage": True})
    chunks = list(stream)
    assert chunks[0].choices[0].delta.role == "assistant"
    texts = [chunk.choices[0].delta.content for chunk in chunks[1:3]]
    assert texts == ["He", "llo"]
    *_, last, usage = chunks
    assert last.choices[0].finish_reason == "stop"
    assert last.model_extra["timings"]["predicted_n"] == 3
    assert usage.choices == []
    assert usage.usage.total_tokens == 10
    assert all(chunk.usage is None for chunk in chunks[:-1])
    assert len({chunk.id for chunk in chunks}) == 1


def test_who_guessed_what_is_told_where_it_is_asked_for(client, model):
    model.script = [[piece("<think>hm</think>\n\n"), piece("A", "helper"), piece("B", "helper")]]
    answer = ask(client, extra_body={"provenance": True})
    message = answer.choices[0].message
    assert (message.content, message.model_extra["reasoning_content"]) == ("AB", "hm")
    assert answer.choices[0].model_extra["provenance"] == [
        {"text": "hm", "drafted_by": None, "field": "reasoning_content"},
        {"text": "AB", "drafted_by": "helper", "field": "content"},
    ]
    model.script = [[Piece((Run("A", "helper"),), (Token(1, "helper"),), (), 4, 3)]]
    chunks = list(
        ask(client, stream=True, extra_body={"provenance": True, "timings_per_token": True})
    )
    assert chunks[1].choices[0].model_extra["provenance"] == [
        {"text": "A", "drafted_by": "helper", "field": "content"}
    ]
    timings = chunks[1].model_extra["timings"]
    assert (timings["predicted_n"], timings["draft_n"], timings["draft_n_accepted"]) == (1, 4, 3)


def test_a_thought_that_the_template_opened_is_one(client, model):
    model.in_thought = True
    model.script = [[piece("Hm."), piece("</think>\n\nYes.")]]
    message = ask(client).choices[0].message
    assert (message.content, message.model_extra["reasoning_content"]) == ("Yes.", "Hm.")


def test_a_function_is_called(client, model):
    model.script = [CALLING]
    answer = ask(client, tools=[SUM])
    choice = answer.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == "Let me see."
    (call,) = choice.message.tool_calls
    assert (call.type, call.function.name) == ("function", "sum")
    assert json.loads(call.function.arguments) == {"of": [1, 2]}
    ((_, options),) = model.asked
    assert [json.loads(tool) for tool in options.tools] == [SUM]
    # The call and what it returned go back as the client has them.
    ask(
        client,
        tools=[SUM],
        messages=[
            *HI,
            choice.message,
            {"role": "tool", "tool_call_id": call.id, "content": "3"},
        ],
    )
    chat, _ = model.asked[1]
    assert chat[1].tool_calls[0].name == "sum"
    assert chat[2] == Message("tool", "3")


def test_a_call_is_streamed_as_it_comes(client, model):
    model.script = [CALLING]
    deltas = [chunk.choices[0].delta for chunk in ask(client, tools=[SUM], stream=True)]
    parts = [call for delta in deltas for call in delta.tool_calls or ()]
    assert (parts[0].index, parts[0].function.name, parts[0].function.arguments) == (0, "sum", "")
    assert parts[0].id.startswith("call_")
    assert [part.function.arguments for part in parts[1:]] == ['{"of": [1', ", 2]}"]
    assert "".join(delta.content or "" for delta in deltas) == "Let me see."
    with client.chat.completions.stream(model="talker", messages=HI, tools=[SUM]) as stream:
        model.script = [CALLING]
        final = stream.get_final_completion()
    assert final.choices[0].finish_reason in {"tool_calls", "stop"}


def test_log_probabilities_come_with_the_tokens(client, model):
    euro = Likely(9, "€".encode()[:2], -0.5)
    told = TokenLogprobs(Likely(8, b"A", -1e9), (euro,))
    model.script = [[Piece((Run("A", None),), (Token(8),), (told,))]] * 2
    answer = ask(client, logprobs=True, top_logprobs=1)
    (token,) = answer.choices[0].logprobs.content
    assert (token.token, token.logprob, token.bytes) == ("A", -9999.0, [65])
    assert token.top_logprobs[0].bytes == [0xE2, 0x82]
    assert model.asked[0][1].logprobs == 1
    text = client.completions.create(model="talker", prompt="x", logprobs=1)
    assert text.choices[0].logprobs.tokens == ["A"]
    assert text.choices[0].logprobs.text_offset == [0]


def test_a_text_goes_on(client, model):
    text = client.completions.create(model="talker", prompt="Once", max_tokens=3)
    assert (text.object, text.choices[0].text) == ("text_completion", "Hi.")
    ((chat, options),) = model.asked
    assert chat == (Message("user", "Once"),)
    assert options.raw
    model.script = [[piece("<think>"), piece("a")]]
    chunks = list(client.completions.create(model="talker", prompt=["Once"], stream=True))
    assert "".join(chunk.choices[0].text for chunk in chunks) == "<think>a"
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_models_are_listed(client):
    assert [model.id for model in client.models.list()] == ["talker"]
    assert client.models.retrieve("talker").owned_by == "tokforge"
    with pytest.raises(openai.NotFoundError, match="no such model"):
        client.models.retrieve("gpt-9")


def test_refusals_name_the_field(client):
    with pytest.raises(openai.BadRequestError) as refused:
        ask(client, n=2, extra_body={"best_of": 3})
    assert refused.value.param == "n"
    assert "best_of: unknown or not supported" in refused.value.message
    with pytest.raises(openai.NotFoundError) as unknown:
        ask(client, model="gpt-9")
    assert unknown.value.code == "model_not_found"


def test_what_goes_wrong_before_the_first_piece_has_a_status(client, model):
    model.script = [[InvalidRequest("the prompt is too long")]] * 2
    for stream in (False, True):
        with pytest.raises(openai.BadRequestError, match="the prompt is too long"):
            ask(client, stream=stream)


def test_what_goes_wrong_later_is_an_event_and_the_next_is_answered(client, model):
    model.script = [[piece("a"), crash()]]
    stream = ask(client, stream=True)
    assert [next(stream).choices[0].delta.content for _ in range(2)] == ["", "a"]
    with pytest.raises(openai.APIError, match="SIGKILL"):
        next(stream)
    assert ask(client).choices[0].message.content == "Hi."


def test_too_many_are_sent_away(model):
    model.gate = threading.Event()
    with listening_server(model, most_waiting=0) as url:
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)
        first = threading.Thread(target=ask, args=(client,))
        first.start()
        while not model.asked:
            pass
        with pytest.raises(openai.RateLimitError) as full:
            ask(client)
        assert int(full.value.response.headers["retry-after"]) >= 1
        status = json.loads(fetch(f"{url}/health")[2])
        assert status == {"status": "ok", "running": 1, "waiting": 0}
        model.gate.set()
        first.join()
        counts = fetch(f"{url}/metrics")[2].decode()
    assert 'tokforge_responses_total{path="/v1/chat/completions",status="429"} 1.0' in counts
    assert 'tokforge_answers_total{end="stop"} 1.0' in counts


def test_the_key_opens_what_has_a_lock(model):
    with listening_server(model, access=Access(key="Söß")) as url:
        for path in ("/v1/models", "/pairing", "/metrics", "/v1/models/talker"):
            assert error_of(fetch(url + path))[0] == 401
        status, error = error_of(fetch(f"{url}/v1/chat/completions", {}, authorization="Bearer x"))
        assert (status, error["code"]) == (401, "invalid_api_key")
        assert not model.asked
        for path in ("/health", "/docs", "/openapi.json"):
            assert fetch(url + path)[0] == 200
        right = "Bearer " + "Söß".encode().decode("latin-1")
        assert fetch(f"{url}/v1/models", authorization=right)[0] == 200


def test_a_foreign_name_is_not_answered(url):
    for name in ("evil.example", "localhost.evil.example:80", "127.0.0.1.evil.example", ""):
        assert error_of(fetch(f"{url}/health", host=name))[0] == 403
    for name in ("localhost:1", "LOCALHOST", "192.168.1.2:80", "[::1]:8080"):
        assert fetch(f"{url}/health", host=name)[0] == 200


def test_only_json_is_read_and_not_too_much(url, model):
    path = f"{url}/v1/chat/completions"
    assert error_of(fetch(path, b"{}", content_type="text/plain"))[0] == 415
    status, error = error_of(fetch(path, b"{", content_type="application/json; charset=utf-8"))
    assert (status, error["code"]) == (400, "invalid_json")
    for length in ("content-length: 9000000", "transfer-encoding: chunked"):
        connection = socket.create_connection(urlsplit(url)[1].split(":"), timeout=30)
        with connection, connection.makefile("rb") as reply:
            head = f"POST /v1/completions HTTP/1.1\r\nhost: localhost\r\n{length}\r\n"
            connection.sendall(f"{head}content-type: application/json\r\n\r\n".encode())
            if "chunked" in length:
                connection.sendall(b"%x\r\n" % 9_000_000 + b" " * (8 * 2**20 + 1))
            assert reply.readline().split()[1] == b"413"
    assert not model.asked


def test_paths_and_methods_that_are_not_there(url):
    assert error_of(fetch(f"{url}/v1/embeddings", {}))[0] == 404
    assert error_of(fetch(f"{url}/../../etc/passwd"))[0] == 404
    status, headers, _ = fetch(f"{url}/v1/chat/completions")
    assert (status, headers["allow"]) == (405, "POST")
    status, _, body = fetch(f"{url}/health", method="HEAD")
    assert (status, body) == (200, b"")


PATHS = {
    **dict.fromkeys(("/v1/models", "/v1/models/talker", "/pairing", "/metrics"), "GET, HEAD"),
    **dict.fromkeys(("/health", "/openapi.json", "/docs", "/", "/page.js"), "GET, HEAD"),
    **dict.fromkeys(("/v1/chat/completions", "/v1/completions"), "POST"),
}


@pytest.mark.parametrize("path", PATHS)
def test_every_path_says_which_methods_it_has(url, path):
    for method in ("OPTIONS", "PUT", "DELETE", "get", "HEADX", *({"POST"} - {PATHS[path]})):
        status, headers, _ = fetch(url + path, method=method)
        assert (status, headers["allow"]) == (405, PATHS[path])
    if PATHS[path] == "GET, HEAD":
        read, head = (fetch(url + path, method=method) for method in ("GET", "HEAD"))
        assert (head[0], head[2]) == (read[0], b"") == (200, b"")
        assert head[1]["content-type"] == read[1]["content-type"]


@pytest.mark.parametrize(
    "path",
    [
        *("/..%2fapp.py", "/%2e%2e/app.py", "/..%5capp.py", "//page.js", "/page.js/", "/PAGE.JS"),
        *("/page.js%00", "/%00", "/%ff", "/page/../page.js", "/index.html", "/v1%2fmodels"),
        *("/v1/models/", "/v1/models/Talker", "/v1/models/talker/", "/v1/models/talker%00"),
        *("/v1/models/%7Bmodel%7D", "/v1/models/../models/talker", "/HEALTH", "/health/"),
    ],
)
def test_a_path_is_what_it_is_or_nothing(url, path):
    if path == "/v1%2fmodels":
        # An escape means the character that it stands for.
        assert fetch(url + path)[0] == 200
    else:
        assert error_of(fetch(url + path))[0] == 404


@pytest.mark.parametrize("path", ["talker", "t%61lker", "%74alker", "talker?x=1"])
def test_a_model_is_found_however_its_name_is_escaped(url, path):
    assert json.loads(fetch(f"{url}/v1/models/{path}")[2])["id"] == "talker"


def test_a_body_in_another_encoding_is_refused(url, model):
    body = gzip.compress(json.dumps({"model": "talker", "messages": HI}).encode())
    path = f"{url}/v1/chat/completions"
    status, error = error_of(fetch(path, body, content_encoding="gzip"))
    assert (status, "without a content encoding" in error["message"]) == (415, True)
    whole = {"model": "talker", "messages": HI}
    assert fetch(path, whole, content_encoding="identity")[0] == 200


def test_who_would_be_sent_away_is_not_read_first(model):
    model.gate = threading.Event()
    with listening_server(model, most_waiting=0) as url:
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)
        first = threading.Thread(target=ask, args=(client,))
        first.start()
        while not model.asked:
            pass
        host, port = urlsplit(url)[1].split(":")
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            connection.sendall(
                b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n"
                b"content-type: application/json\r\ncontent-length: 1000\r\n\r\n"
            )
            assert connection.recv(1000).split()[1] == b"429"
        model.gate.set()
        first.join()


def test_a_fault_in_a_stream_that_was_begun_is_its_last_event(url, model, monkeypatch, caplog):
    def broken(*_):
        raise RuntimeError("the secret prompt")

    monkeypatch.setattr(app.ChatReader, "finish", broken)
    status, _, body = fetch(
        f"{url}/v1/chat/completions", {"model": "talker", "messages": HI, "stream": True}
    )
    *_, last, end = body.decode().split("\n\n")
    assert (status, end) == (200, "")
    assert json.loads(last.removeprefix("data: "))["error"]["type"] == "server_error"
    assert "RuntimeError at" in caplog.text
    assert "secret" not in caplog.text + body.decode()


def test_every_response_is_counted_by_a_path_of_ours(model):
    with listening_server(model, access=Access(key="k")) as url:
        for path in ("/", "/page.js", "/nowhere", "/secret?x", "/v1/models/secret", "/health"):
            fetch(url + path)
        fetch(f"{url}/health", host="evil.example")
        fetch(f"{url}/page.js", method="POST")
        counts = fetch(f"{url}/metrics", authorization="Bearer k")[2].decode()
    line = re.compile(r'tokforge_responses_total{path="(.+)",status="(.+)"} (.+)')
    told = [found.groups() for found in map(line.fullmatch, counts.splitlines()) if found]
    assert sorted(told) == [
        ("/", "200", "1.0"),
        ("/health", "200", "1.0"),
        ("/health", "403", "1.0"),
        ("/page.js", "200", "1.0"),
        ("/page.js", "405", "1.0"),
        ("/v1/models/{model}", "401", "1.0"),
        ("elsewhere", "404", "2.0"),
    ]


def test_a_page_that_a_browser_has_is_not_sent_again(url):
    status, headers, body = fetch(f"{url}/page.js")
    assert (status, bool(body)) == (200, True)
    etag = headers["etag"]
    for known in (etag, f"W/{etag}", f'"x", {etag}'):
        status, headers, body = fetch(f"{url}/page.js", if_none_match=known)
        assert (status, body, headers["etag"]) == (304, b"", etag)
    assert fetch(f"{url}/page.js", if_none_match='"x"')[0] == 200


def test_pages_of_other_origins_read_nothing_unless_they_may(model):
    asks = {"origin": "https://app.example", "access_control_request_method": "POST"}
    with listening_server(model) as url:
        assert fetch(f"{url}/v1/models", method="OPTIONS", **asks)[0] == 405
        assert fetch(f"{url}/v1/models", **asks)[1]["access-control-allow-origin"] is None
    with listening_server(model, access=Access("k", origins=("https://app.example",))) as url:
        status, headers, _ = fetch(f"{url}/v1/models", method="OPTIONS", **asks)
        assert (status, headers["access-control-allow-origin"]) == (200, "https://app.example")
        status, headers, _ = fetch(f"{url}/v1/models", **asks)
        assert (status, headers["access-control-allow-origin"]) == (401, "https://app.example")


def test_every_answer_is_careful_with_browsers(url):
    for path in ("/health", "/nothing", "/docs"):
        headers = fetch(url + path)[1]
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


def test_the_documentation_needs_nothing_from_elsewhere(url):
    status, headers, body = fetch(f"{url}/docs")
    page = body.decode()
    assert status == 200
    assert "script" not in headers["content-security-policy"]
    assert "<script" not in page
    assert "http://" not in page.replace("http://json-schema.org", "")
    assert "https://" not in page
    assert "/v1/chat/completions" in page
    assert "top_logprobs" in page


def test_the_document_holds_together(url):
    told = json.loads(fetch(f"{url}/openapi.json")[2])
    refs = set()

    def walk(value):
        if isinstance(value, dict):
            refs.update([value["$ref"]] if "$ref" in value else [])
            for each in value.values():
                walk(each)
        elif isinstance(value, list):
            for each in value:
                walk(each)

    walk(told)
    schemas = told["components"]["schemas"]
    assert refs
    assert {ref.rpartition("/")[2] for ref in refs} <= set(schemas)
    assert schemas["ChatRequest"]["properties"]["model"]["enum"] == ["talker"]
    assert schemas["ChatRequest"]["additionalProperties"] is False


def test_a_page_of_a_folder_is_served_and_nothing_else(tmp_path, model, monkeypatch):
    tmp_path.joinpath("index.html").write_text("<p>hello")
    tmp_path.joinpath("page.js").write_text("1")
    tmp_path.joinpath("notes.txt").write_text("secret")
    monkeypatch.setattr(app, "page_files", lambda: page_files.page_files(tmp_path))
    with listening_server(model) as url:
        status, headers, body = fetch(url)
        assert (status, body) == (200, b"<p>hello")
        assert headers["content-type"] == "text/html; charset=utf-8"
        assert "script-src 'self'" in headers["content-security-policy"]
        assert fetch(f"{url}/page.js")[1]["content-type"].startswith("text/javascript")
        assert fetch(f"{url}/notes.txt")[0] == 404
        assert fetch(f"{url}/index.html/../notes.txt")[0] == 404


def test_a_fault_of_ours_is_an_error_and_tells_nothing_of_the_request(
    url, model, monkeypatch, caplog, capfd
):
    def broken(*_):
        raise RuntimeError("the secret prompt")

    monkeypatch.setattr(app, "chat_order", broken)
    chat = {"model": "talker", "messages": [{"role": "user", "content": "the secret prompt"}]}
    status, error = error_of(fetch(f"{url}/v1/chat/completions", chat))
    assert (status, error["type"]) == (500, "server_error")
    assert "secret" not in error["message"]
    assert "RuntimeError at" in caplog.text
    out, err = capfd.readouterr()
    assert "secret" not in caplog.text + out + err


def test_what_runs_is_told(url):
    assert json.loads(fetch(f"{url}/pairing")[2]) == {
        "model": "talker",
        "draft": "helper",
        "lookup": True,
        "reason": "they belong together",
        "rule": "a-rule",
        "notes": [],
        "d": 3,
        "max_d": 7,
        "max_tokens": 64,
        "grammars": True,
    }
