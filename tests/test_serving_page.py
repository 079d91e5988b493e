"""The page at /, before a person: a real Chromium, and a scripted model behind a real server."""

from __future__ import annotations

import json
import struct
import threading

import pytest

from browser import Failed, needs_chromium
from command import tokforge
from demo_pair import needs_mnn
from page_kit import ANSWERED, MET, Turnstile, asked, faults, say, turns
from serving_kit import crash, listening_server, piece, serving
from tokforge_engine import Piece, Run, Token
from tokforge_models.serving.security import Access

pytestmark = [pytest.mark.slow, needs_chromium]


def test_nothing_is_loaded_from_elsewhere_and_nothing_is_missing(page, url):
    loaded = page.run("performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert f"{url}/page.js" in loaded
    assert all(name.startswith(f"{url}/") for name in loaded)
    assert page.complaints() == []


def test_what_runs_is_told_with_the_reason(page):
    assert page.text("#pair") == "talker with helper"
    assert "they belong together" in page.text("#pairing")
    assert page.run("document.title") == "talker · tokforge"


def test_an_answer_arrives_while_it_is_made(page, model):
    model.gate = Turnstile()
    model.script = [[piece("Hello"), piece(" wor", "helper"), piece("ld.\n\n"), piece("Bye.")]]
    page.write("hi")
    page.press("Enter")
    for shown in ("Hello", "Hello wor", "Hello world."):
        model.gate.set()
        page.until(f"document.querySelector('.prose')?.textContent === {json.dumps(shown)}")
        assert page.run(
            "document.querySelector('#send').hidden && !document.querySelector('#stop').hidden"
        )
        assert page.run("document.querySelector('.model').getAttribute('aria-busy')") == "true"
    model.gate.set()
    page.until(ANSWERED)
    assert turns(page) == ["hi", "Hello world.\n\nBye."]
    assert page.text(".figures").startswith("4 tokens")
    assert page.run("document.activeElement.id") == "question"
    ((chat, options),) = model.asked
    assert [(each.role, each.content) for each in chat] == [("user", "hi")]
    assert (options.d, options.max_tokens, options.sampling.temperature) == (3, 64, 0)


@pytest.mark.parametrize("way", ["button", "key"])
def test_an_answer_is_stopped(page, model, way):
    model.gate = Turnstile()
    model.script = [[piece("Once"), piece(" upon"), piece(" a")], [piece("Well.")]]
    page.write("a tale")
    page.press("Enter")
    model.gate.set()
    page.until("document.querySelector('.prose')?.textContent === 'Once'")
    if way == "button":
        page.click("#stop")
    else:
        page.press("Escape")
    assert model.answers[0].cancelled.wait(20)
    assert turns(page) == ["a tale", "Once"]
    assert "stopped" in page.text(".figures")
    model.gate = None
    say(page, "and then?")
    assert asked(model) == ["a tale", "Once", "and then?"]
    assert turns(page)[2:] == ["and then?", "Well."]


def test_an_answer_is_made_again(page, model):
    model.script = [[piece("One.")], [piece("Two.")]]
    say(page, "count")
    page.click(".again")
    page.until("document.querySelector('.prose')?.textContent === 'Two.'")
    page.until(ANSWERED)
    assert turns(page) == ["count", "Two."]
    assert asked(model, 0) == asked(model, 1) == ["count"]


def test_a_message_is_said_otherwise_and_the_chat_goes_on_from_there(page, model):
    model.script = [[piece("A.")], [piece("B.")], [piece("C.")]]
    say(page, "first")
    say(page, "second")
    page.click(".user button")
    page.press("Escape")
    assert page.run("document.activeElement.textContent") == "Edit"
    assert turns(page) == ["first", "A.", "second", "B."]
    page.press("Enter")
    page.until("document.activeElement.matches('.edit textarea')")
    page.run("document.activeElement.select()")
    page.write("another")
    page.press("Enter")
    page.until("document.querySelector('.prose')?.textContent === 'C.'")
    assert turns(page) == ["another", "C."]
    assert asked(model) == ["another"]


def test_tokens_of_the_draft_are_marked_by_more_than_colour(page, model):
    model.script = [[piece("A"), piece(" b", "helper"), piece(" c", "lookup"), piece(" d")]]
    say(page, "hi")
    style = """[...document.querySelectorAll('.prose .drafted')].map((each) => {
      const style = getComputedStyle(each);
      return [each.textContent, style.textDecorationLine, style.textDecorationStyle,
        style.backgroundColor === 'rgba(0, 0, 0, 0)'];
    })"""
    assert page.run(style) == [[" b", "none", "solid", True], [" c", "none", "solid", True]]
    assert page.run("document.querySelector('#legend').hidden")
    page.click("#mark")
    marked = [[" b", "underline", "solid", False], [" c", "underline", "dotted", False]]
    assert page.run(style) == marked
    assert "guessed by helper" in page.text("#legend")
    page.reload()
    page.until(f"{MET} && {ANSWERED}")
    assert page.run(style) == marked


def test_the_theme_is_the_systems_or_the_users(page):
    dark = "getComputedStyle(document.body).backgroundColor === 'rgb(25, 24, 22)'"
    page.prefer(prefers_color_scheme="light")
    assert not page.run(dark)
    page.prefer(prefers_color_scheme="dark")
    assert page.run(dark)
    page.click("[name=theme][value=light]")
    assert not page.run(dark)
    page.prefer(prefers_color_scheme="light")
    page.click("[name=theme][value=dark]")
    page.reload()
    page.until(MET)
    assert page.run(dark)


def test_how_far_is_guessed_is_set_for_each_message(page, model):
    for choice, d in (("0", 0), ("2", 2), ("auto", "auto"), ("7", 7)):
        page.click(f"[name=d][value='{choice}']")
        say(page, "hi")
        assert model.asked[-1][1].d == d
    page.reload()
    page.until(MET)
    assert page.run("document.querySelector('#settings').elements.d.value") == "7"
    page.click("#use-draft")
    assert page.run("document.querySelector('[name=d]').matches(':disabled')")
    say(page, "hi")
    assert model.asked[-1][1].d == 0
    page.click("#use-draft")
    say(page, "hi")
    assert model.asked[-1][1].d == 7


def test_temperature_and_limit_are_asked_for(page, model):
    page.run("document.querySelector('#temperature').focus()")
    for _ in range(3):
        page.press("ArrowRight")
    assert page.text("#temperature-shown") == "0.3"
    page.run("document.querySelector('#max-tokens').select()")
    page.write("5")
    say(page, "hi")
    options = model.asked[0][1]
    assert options.max_tokens == 5
    assert options.sampling.temperature == pytest.approx(0.3)


def test_speed_and_acceptance_are_shown_and_told(page, model):
    def guessed(text, drafted, accepted):
        return Piece((Run(text, None),), (Token(1), Token(2)), (), drafted, accepted)

    model.script = [[guessed("a", 3, 3), guessed(" b", 6, 4), guessed(" c", 9, 6)]]
    assert page.run("document.querySelector('#live').hidden")
    say(page, "hi")
    assert not page.run("document.querySelector('#live').hidden")
    pictures = {n["name"]["value"] for n in page.nodes() if n["role"]["value"] == "image"}
    told = " ".join(pictures)
    assert "Speed while answering: now" in told
    assert "guesses of the draft were accepted" in told
    points = page.run("document.querySelector('#speed-chart .line').getAttribute('points')")
    assert len(points.split()) == 2


def test_thoughts_are_folded_away(page, model):
    model.script = [[piece("<think>\nhm\n</think>\n\nYes.")]]
    say(page, "hi")
    assert turns(page) == ["hi", "Yes."]
    assert not page.run("document.querySelector('.thoughts').open")
    page.click(".thoughts summary")
    assert "hm" in page.text(".thoughts")
    say(page, "sure?")
    assert asked(model) == ["hi", "Yes.", "sure?"]


ATTACK = """<script>globalThis.ran = 1</script>
<img src=x onerror="globalThis.ran = 2"> <svg onload="globalThis.ran = 3">

[click](javascript:globalThis.ran=4) ![see](https://example.org/spy.png)

`<iframe src=/>` <style>body { display: none }</style>"""


def test_what_a_model_says_is_never_run(page, model):
    model.script = [[piece(ATTACK)]]
    say(page, "<b onclick=1>attack</b>")
    assert "<script>globalThis.ran = 1</script>" in page.text(".prose")
    assert "onerror" in page.text(".prose")
    assert page.text(".words") == "<b onclick=1>attack</b>"
    inside = "document.querySelectorAll('#turns :is(script, img, svg, iframe, style, b)').length"
    assert page.run(inside) == 0
    links = "[...document.querySelectorAll('#turns a')].map((link) => [link.href, link.rel])"
    assert page.run(links) == [["https://example.org/spy.png", "noopener noreferrer"]]
    page.reload()
    page.until(f"{MET} && {ANSWERED}")
    assert page.run("typeof ran") == "undefined"
    loaded = page.run("performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert not [name for name in loaded if "spy" in name or name.endswith("/x")]


@pytest.mark.parametrize(
    "attempt",
    [
        "document.body.innerHTML = '<b>a</b>'",
        "document.createElement('script').textContent = 'globalThis.ran = 1'",
        "document.createElement('script').src = '/page.js'",
        "document.body.setAttribute('onclick', 'globalThis.ran = 1')",
        "document.createElement('iframe').srcdoc = 'a'",
    ],
)
def test_the_browser_takes_no_text_for_html_or_script(browser, url, attempt):
    with browser.page(url) as page:
        page.until(MET)
        with pytest.raises(Failed, match="requires 'Trusted"):
            page.run(attempt)


def test_the_browser_asks_nobody_else(browser, url):
    with browser.page(url) as page:
        page.until(MET)
        page.run(
            """(() => {
              const image = document.createElement("img");
              image.src = "http://127.0.0.1:9/spy.png";
              const style = document.createElement("link");
              style.rel = "stylesheet";
              style.href = "http://127.0.0.1:9/spy.css";
              document.head.append(image, style);
              fetch("http://127.0.0.1:9/spy").catch(() => {});
            })()"""
        )
        page.until("violations.length >= 3")
        directives = {told.partition(":")[0] for told in page.run("violations")}
        assert directives == {"img-src", "style-src-elem", "connect-src"}


def test_a_full_queue_is_told_and_tried_again(browser, model):
    with listening_server(model, most_waiting=0) as url, browser.page(url) as page:
        page.until(MET)
        model.gate = threading.Event()
        ask = {"model": "talker", "messages": [{"role": "user", "content": "x"}]}
        body = f"JSON.stringify({json.dumps(ask)})"
        headers = '{"content-type": "application/json"}'
        other = (
            f"fetch('/v1/chat/completions', {{method: 'POST', headers: {headers}, body: {body}}})"
        )
        page.run(f"globalThis.other = {other}, 0")
        page.until("fetch('/health').then((r) => r.json()).then((h) => h.running)")
        page.write("hi")
        page.press("Enter")
        page.until("document.querySelector('#trouble').innerText.includes('The server is busy')")
        assert turns(page) == ["hi"]
        model.gate.set()
        page.run("other.then((reply) => reply.text())")
        page.click("#trouble button")
        page.until(ANSWERED)
        assert turns(page) == ["hi", "Hi."]
        assert page.text("#trouble") == ""
        assert faults(page) == []


def test_a_model_that_dies_leaves_what_it_said(page, model):
    model.script = [[piece("Half"), crash()], [piece("Whole.")]]
    page.write("hi")
    page.press("Enter")
    page.until("document.querySelector('#trouble').innerText.includes('SIGKILL')")
    assert page.text("#trouble").startswith("The model stopped in the middle of its work")
    assert turns(page) == ["hi", "Half"]
    assert "not complete" in page.text(".figures")
    page.click("#trouble button")
    page.until("document.querySelector('.prose')?.textContent === 'Whole.'")
    assert turns(page) == ["hi", "Whole."]


def test_a_refusal_is_told_as_the_server_says_it(page):
    page.run("document.querySelector('#max-tokens').select()")
    page.write("999")
    page.write("")
    page.run("document.querySelector('#question').focus()")
    page.write("hi")
    page.press("Enter")
    page.until("document.querySelector('#trouble').innerText.includes('at most 64')")


def test_a_server_that_is_gone_is_told(browser, model):
    with listening_server(model) as url, browser.page(url) as page:
        page.until(MET)
        page.call("Network.enable")
        page.call(
            "Network.emulateNetworkConditions",
            offline=True,
            latency=0,
            downloadThroughput=-1,
            uploadThroughput=-1,
        )
        page.write("hi")
        page.press("Enter")
        page.until("document.querySelector('#trouble').innerText.includes('cannot be reached')")
        assert turns(page) == ["hi"]


def test_the_key_is_asked_for_and_kept_for_the_tab_alone(browser, model):
    with listening_server(model, access=Access("Schlüssel")) as url, browser.page(url) as page:
        page.until("document.querySelector('#key-dialog').open")
        assert "asks for its key" in page.run("document.querySelector('#trouble').innerText")
        page.write("wrong")
        page.press("Enter")
        page.until(
            "document.querySelector('#trouble').innerText.includes('does not know this key')"
        )
        page.until("document.querySelector('#key-dialog').open")
        page.write("Schlüssel")
        page.press("Enter")
        page.until(MET)
        say(page, "hi")
        assert turns(page) == ["hi", "Hi."]
        assert page.run("JSON.stringify(localStorage).includes('Schl')") is False
        page.reload()
        page.until(MET)
        assert not page.run("document.querySelector('#key-dialog').open")


def chats(page):
    return page.run("[...document.querySelectorAll('.chat')].map((each) => each.textContent)")


def test_chats_are_kept_chosen_and_deleted(page, model):
    say(page, "first")
    page.click("#new-chat")
    assert turns(page) == []
    say(page, "second")
    assert chats(page) == ["second", "first"]
    page.reload()
    page.until(f"{MET} && {ANSWERED}")
    assert turns(page) == ["second", "Hi."]
    page.click("li:nth-child(2) .chat")
    assert turns(page) == ["first", "Hi."]
    say(page, "go on")
    assert asked(model) == ["first", "Hi.", "go on"]
    assert chats(page) == ["first", "second"]
    page.answer_dialogs(accept=False)
    page.click("li:first-child .icon")
    assert chats(page) == ["first", "second"]
    page.answer_dialogs(accept=True)
    page.click("li:first-child .icon")
    assert (chats(page), turns(page)) == (["second"], [])
    say(page, "third")
    page.click("#delete-all")
    assert chats(page) == []
    page.reload()
    page.until(MET)
    assert (chats(page), turns(page)) == ([], [])


def test_a_page_that_is_left_keeps_what_was_said(page, model):
    model.gate = Turnstile()
    model.script = [[piece("Half"), piece(" whole")]]
    page.write("hi")
    page.press("Enter")
    model.gate.set()
    page.until("document.querySelector('.prose')?.textContent === 'Half'")
    page.reload()
    page.until(MET)
    assert turns(page) == ["hi", "Half"]
    assert model.answers[0].cancelled.wait(20)


def test_a_browser_without_room_says_so_and_goes_on(page):
    page.run("localStorage.setItem('x', 'x'.repeat(5 * 2 ** 20 - 60)), 0")
    page.write("hi")
    page.press("Enter")
    page.until("document.querySelector('#trouble').innerText.includes('no room')")
    page.until(ANSWERED)
    assert turns(page) == ["hi", "Hi."]


@needs_mnn
def test_the_real_pair_behind_a_real_server(browser, tmp_path):
    env = {
        "TOKFORGE_HOME": str(tmp_path / "home"),
        "TOKFORGE_CONFIG_DIR": str(tmp_path / "config"),
        "TOKFORGE_API_KEY": "",
    }
    assert tokforge("pull", "demo-chat", "demo-draft", env=env).code == 0
    with (
        serving("-d", "3", "--threads", "1", env=env) as running,
        browser.page(running.url) as page,
    ):
        page.until(MET)
        assert page.text("#pair") == "demo-chat with demo-draft"
        page.click("#mark")
        say(page, "What is a cat?")
        assert page.run("document.querySelectorAll('.prose .drafted').length") > 0
        assert "guesses accepted" in page.text(".figures")
        assert not page.run("document.querySelector('#live').hidden")
        assert page.complaints() == []
        width, height = struct.unpack(">II", page.picture()[16:24])
        assert (width, height) == (1280, 860)
