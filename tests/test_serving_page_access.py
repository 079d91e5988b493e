"""The page for everybody: on a phone, by keyboard, by a reader of the screen, in both themes."""

from __future__ import annotations

import pytest

from browser import needs_chromium
from page_kit import ANSWERED, MET, RICH, Turnstile, asked, faults, say, turns
from serving_kit import crash, piece

pytestmark = [pytest.mark.slow, needs_chromium]


def test_a_reader_of_the_screen_hears_paragraphs_as_they_are_finished(page, model):
    model.gate = Turnstile()
    model.script = [[piece("One"), piece(" more.\n\nTwo"), piece(".")]]
    page.write("hi")
    page.press("Enter")
    spoken = "[...document.querySelectorAll('#spoken p')].map((p) => p.textContent).join('|')"
    model.gate.set()
    page.until("document.querySelector('.prose')?.textContent === 'One'")
    assert page.run(spoken) == ""
    model.gate.set()
    page.until(f"{spoken} === 'One more.'")
    model.gate.set()
    page.until(ANSWERED)
    assert page.run(spoken) == "One more.|Two."
    live = next(node for node in page.nodes() if node["role"]["value"] == "log")
    assert {"name": "live", "value": {"type": "token", "value": "polite"}} in live["properties"]


def test_motion_is_reduced_for_those_who_wish_it(page):
    knob = "getComputedStyle(document.querySelector('#mark'), '::before').transitionDuration"
    page.prefer(prefers_reduced_motion="no-preference")
    assert page.run(knob) != "0s"
    page.prefer(prefers_reduced_motion="reduce")
    assert page.run(knob) == "0s"


OUTSIDE = """[...document.querySelectorAll("body *")].filter((each) => {
  const box = each.getBoundingClientRect();
  const scroller = each.closest("pre, .wide");
  return box.width && !each.closest(".unseen, .skip, [popover]") && (scroller ?? each)
    .getBoundingClientRect().right > innerWidth + 0.5;
}).map((each) => each.outerHTML.slice(0, 80))"""


def test_a_phone_shows_all_of_it(browser, url, model):
    with browser.page(url, width=375, height=667) as page:
        page.until(MET)
        model.script = [[piece(RICH + "\n" + "long" * 60, "helper")]]
        page.click("#mark")
        say(page, "What? " + "w" * 90)
        assert page.run("[innerWidth, document.documentElement.scrollWidth]") == [375, 375]
        assert page.run(OUTSIDE) == []
        page.click("#menu")
        page.until("document.querySelector('#side').matches(':popover-open')")
        assert page.run("document.documentElement.scrollWidth") == 375
        page.press("Escape")
        page.until("!document.querySelector('#side').matches(':popover-open')")
        page.click("#menu")
        page.click("#new-chat")
        page.until("!document.querySelector('#side').matches(':popover-open')")
        assert turns(page) == []
        assert faults(page) == []


CONTROLS = {
    *("button", "textbox", "switch", "radio", "slider", "spinbutton", "link", "checkbox"),
    *("dialog", "form", "group", "region", "radiogroup", "DisclosureTriangle", "image", "log"),
}


def test_every_control_has_a_name(page, model):
    model.script = [[piece("<think>hm</think>" + RICH)], [piece("More.")]]
    say(page, "hi")
    say(page, "more")
    page.click(".user button")
    page.run("document.querySelector('#key-dialog').show()")
    controls = [node for node in page.nodes() if node["role"]["value"] in CONTROLS - {"form"}]
    roles = {node["role"]["value"] for node in controls}
    assert {"button", "textbox", "switch", "radio", "slider", "spinbutton", "link"} <= roles
    nameless = [node for node in controls if not node.get("name", {}).get("value", "").strip()]
    assert [node["role"]["value"] for node in nameless] == []


CONTRASTS = """(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const paint = (colours) => {
    canvas.globalAlpha = 1;
    canvas.clearRect(0, 0, 1, 1);
    for (const [colour, alpha] of colours) {
      canvas.globalAlpha = alpha;
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
    }
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((v) => v / 255)
      .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const grounds = [];
    for (let each = element; each; each = each.parentElement) {
      grounds.unshift([getComputedStyle(each).backgroundColor, 1]);
    }
    return grounds;
  };
  const found = [];
  const look = (element, colour, text) => {
    const grounds = behind(element);
    const one = luminance(paint(grounds));
    const other = luminance(paint([...grounds, [colour, 1]]));
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    found.push([Math.round(ratio * 100) / 100, text.trim().slice(0, 30)]);
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !element.checkVisibility()) continue;
    if (element.closest(".unseen, :disabled")) continue;
    look(element, getComputedStyle(element).color, texts.currentNode.data);
  }
  for (const field of document.querySelectorAll("textarea, input[type=number]")) {
    look(field, getComputedStyle(field).color, "a field");
    look(field, getComputedStyle(field, "::placeholder").color, "a place holder");
  }
  return found;
})()"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_all_text_can_be_read(page, model, theme):
    model.script = [
        [piece("<think>hm</think>" + RICH, "helper"), piece("\n\nx *y*", "lookup"), crash()]
    ]
    page.prefer(prefers_color_scheme=theme)
    page.click("#mark")
    page.write("hi")
    page.press("Enter")
    page.until("document.querySelector('#trouble p')")
    page.run("document.querySelector('.thoughts').open = true")
    page.run("document.querySelector('#key-dialog').show()")
    found = page.run(CONTRASTS)
    assert len(found) > 60
    assert min(found)[0] >= 4.5, sorted(found)[:9]


FOCUS = """(() => {
  const it = document.activeElement;
  const seen = [it, it.nextElementSibling].filter(Boolean).some((each) => {
    const style = getComputedStyle(each);
    return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  });
  return [it.id || it.name || it.textContent.trim() || it.className, seen];
})()"""


def test_it_is_used_without_a_mouse(page, model):
    assert page.run("document.activeElement.id") == "question"
    page.write("one")
    page.press("Enter", shift=True)
    page.write("two")
    page.press("Enter")
    page.until(ANSWERED)
    assert asked(model) == ["one\ntwo"]
    page.run("document.activeElement.blur(), document.querySelector('.skip').focus()")
    visited = [page.run(FOCUS)]
    while visited[-1][0] != "send":
        page.press("Tab")
        visited.append(page.run(FOCUS))
        assert len(visited) < 40, visited
    names = [name for name, _ in visited]
    assert names == [
        *("Skip to the message field", "new-chat", "one two", "×", "use-draft", "d"),
        *("temperature", "max-tokens", "theme", "mark", "conversation", "Edit", "Copy"),
        *("Regenerate", "question", "send"),
    ]
    assert [name for name, seen in visited if not seen] == []
    page.run("document.querySelector('.skip').focus()")
    page.press("Enter")
    page.until("document.activeElement.id === 'question'")


def test_settings_are_changed_without_a_mouse(page, model):
    page.run("document.querySelector('#mark').focus()")
    page.press(" ")
    assert page.run("document.documentElement.dataset.marked") == "true"
    page.run("document.querySelector('[name=d]:checked').focus()")
    page.press("ArrowRight")
    say(page, "hi")
    assert model.asked[0][1].d == 4
