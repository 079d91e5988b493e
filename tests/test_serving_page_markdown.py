"""What models write, as the page shows it: read and rendered by the browser that will do it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from browser import chromium, needs_chromium
from serving_kit import ScriptedModel, listening_server

pytestmark = [pytest.mark.slow, needs_chromium]

# Elements and attributes that an answer may become, whatever it says.
ALLOWED = {
    *("p", "h3", "h4", "h5", "h6", "blockquote", "ul", "ol", "li", "hr", "strong", "em", "code"),
    *("a", "figure", "figcaption", "button", "pre", "span", "div"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}
ATTRIBUTES = {"href", "target", "rel", "class", "type", "start", "tabindex", "aria-label", "role"}

SHOWN = """(async (text, pieces) => {
  const { Growing } = await import("/rendering.js");
  const by = [...text].flatMap((c) => Array(c.length).fill(/[A-Z]/.test(c) ? "helper" : null));
  const told = [[], []];
  const places = told.map(() => document.createElement("div"));
  const [whole, grown] = places.map((place, k) => new Growing(place, (t) => told[k].push(t)));
  whole.update(text, by);
  let length = 0;
  for (const piece of pieces) {
    length += piece;
    grown.update(text.slice(0, length), by);
  }
  grown.update(text, by);
  whole.finish();
  grown.finish();
  const all = [...places[0].querySelectorAll("*")];
  return {
    html: places[0].innerHTML,
    grown: places[1].innerHTML,
    told,
    tags: all.map((each) => each.localName),
    attributes: all.flatMap((each) => each.getAttributeNames()),
    links: all.filter((each) => each.localName === "a")
      .map((each) => [each.href, each.rel, each.target, each.textContent]),
    drafted: all.filter((each) => each.classList.contains("drafted")).map((e) => e.textContent),
    plain: all.concat(places[0]).flatMap((each) => [...each.childNodes])
      .filter((node) => node.nodeType === 3 && !node.parentNode.closest(".drafted, figcaption"))
      .map((node) => node.data),
  };
})"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with (
        listening_server(ScriptedModel()) as url,
        chromium(tmp_path_factory.mktemp("profile")) as browser,
        browser.page(url) as page,
    ):
        yield page


def shown(page, text, pieces=()):
    return page.run(f"{SHOWN}({json.dumps(text)}, {json.dumps(pieces)})")


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("a\nb\n\nc", "<p>a\nb</p><p>c</p>"),
        ("# one\n### three ##\n####### seven", "<h3>one</h3><h5>three</h5><p>####### seven</p>"),
        ("*a* **b** ***c***", "<p><em>a</em> <strong>b</strong> <strong><em>c</em></strong></p>"),
        ("_a_ snake_case_name __b__", "<p><em>a</em> snake_case_name <strong>b</strong></p>"),
        ("*a **b** c*", "<p><em>a <strong>b</strong> c</em></p>"),
        ("2 * 3 * 4, **open", "<p>2 * 3 * 4, **open</p>"),
        (r"\*a\* \\", "<p>*a* \\</p>"),
        ("`a*b*` ``a`b`` `open", "<p><code>a*b*</code> <code>a`b</code> `open</p>"),
        ("- a\n- b\n  - c\n\n- d", "<ul><li>a</li><li>b<ul><li>c</li></ul></li><li>d</li></ul>"),
        ("3. a\n4. b\ngoes on", '<ol start="3"><li>a</li><li>b\ngoes on</li></ol>'),
        ("1. a\n\n   b\n\nc", '<ol start="1"><li>a<p>b</p></li></ol><p>c</p>'),
        ("a\n- b", "<p>a</p><ul><li>b</li></ul>"),
        (
            "> a\n> > b\n\nc",
            "<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote><p>c</p>",
        ),
        ("---\n* * *\n- -", "<hr><hr><ul><li><ul><li></li></ul></li></ul>"),
        ("<b>a</b> &amp;", "<p>&lt;b&gt;a&lt;/b&gt; &amp;amp;</p>"),
        ("[a](javascript:b) [c](d) [e](data:f)", "<p>[a](javascript:b) [c](d) [e](data:f)</p>"),
        ("snake\\_case", "<p>snake_case</p>"),
    ],
)
def test_markdown(page, text, html):
    assert shown(page, text)["html"] == html


@pytest.mark.parametrize(
    ("text", "words", "href"),
    [
        ('[a *b*](https://c.example/d_(e) "t").', "a b", "https://c.example/d_(e)"),
        ("see https://c.example/?q=1, or not", "https://c.example/?q=1", "https://c.example/?q=1"),
        ("(http://c.example).", "http://c.example", "http://c.example/"),
        ("![a cat](https://c.example/cat.png)", "a cat", "https://c.example/cat.png"),
    ],
)
def test_links_lead_to_the_web_and_are_told_nothing(page, text, words, href):
    told = shown(page, text)
    assert told["links"] == [[href, "noopener noreferrer", "_blank", words]]


def test_code_is_shown_as_it_is(page):
    told = shown(page, "```python\nif a < b:\n    *c*\n\n```\nd\n~~~\n```\ne")
    assert (
        '<pre tabindex="0" aria-label="Code, python"><code>if a &lt; b:\n    *c*\n</code></pre>'
        in told["html"]
    )
    assert "<code>```\ne</code>" in told["html"]
    assert "<p>d</p>" in told["html"]
    assert told["told"][0] == ["if a < b:\n    *c*\n", "d", "```\ne"]


def test_tables(page):
    told = shown(page, "| a | b \\| c |\n|:--|--:|\n| *1* | 2 |\n\nend | here")
    assert "<thead><tr><th>a</th><th>b | c</th></tr></thead>" in told["html"]
    assert "<tbody><tr><td><em>1</em></td><td>2</td></tr></tbody>" in told["html"]
    assert told["html"].endswith("<p>end | here</p>")


PARTS = st.sampled_from(
    [
        *(
            "a",
            "B",
            "aB c",
            "\n",
            "\n\n",
            " ",
            "  ",
            "    ",
            "*",
            "**",
            "***",
            "_",
            "__",
            "`",
            "``",
        ),
        *(
            "```",
            "~~~",
            "\n```py\n",
            "#",
            "\n# ",
            "\n- ",
            "\n  - ",
            "\n1. ",
            "\n> ",
            ">",
            "\n---\n",
        ),
        *("|", "\n| A | b |\n|---|---|\n", "[", "](", ")", "[A](https://a.example)", "\\", "\\*"),
        *(
            "http://b.example/C",
            "javascript:",
            "[a](javascript:b)",
            "![",
            "<script>alert(1)</script>",
        ),
        *("<img src=x onerror=alert(1)>", '"', "'", "&lt;", "🦊", "\t", "\r"),
    ]
)


@settings(max_examples=150)
@given(st.lists(PARTS, max_size=30).map("".join), st.lists(st.integers(1, 9), max_size=12))
def test_whatever_a_model_says(page, text, pieces):
    """Only harmless elements; each character keeps its origin; growing changes nothing."""
    told = shown(page, text, pieces)
    assert set(told["tags"]) <= ALLOWED
    assert set(told["attributes"]) <= ATTRIBUTES
    for href, rel, *_ in told["links"]:
        assert href.startswith(("http://", "https://"))
        assert rel == "noopener noreferrer"
    capitals = set("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    assert all(set(stretch) <= capitals for stretch in told["drafted"])
    assert not capitals & set("".join(told["plain"]))
    assert told["grown"] == told["html"]


@pytest.mark.parametrize("part", ["> ", "*a ", "**", "[", "`a``", "- ", "| ", "_a_ ", "![a]("])
def test_what_nests_or_never_closes_ends_soon(page, part):
    script = f"({{ parse }}) => parse({json.dumps(part)}.repeat(20_000)).length"
    assert page.run(f'import("/markdown.js").then({script})') == 1
