/** A Markdown tree as elements of the page. Text only ever becomes text nodes. */

import { element } from "./dom.js";
import { parse } from "./markdown.js";

/**
 * Shows a text that grows.
 *
 * What was read before stays in the page as it is, so selections, focus and readers of the screen
 * are not disturbed: only blocks from the first that changed are made again.
 */
export class Growing {
  /**
   * @param {Element} place is filled
   * @param {function(string)} finished is told the words of each block that will not change again
   */
  constructor(place, finished = () => {}) {
    this.place = place;
    this.finished = finished;
    this.shown = [];
    this.told = 0;
  }

  /**
   * Show all of the text as it is now.
   * @param {string} text
   * @param {Array<string|null>} by who guessed each character; null is the target itself
   */
  update(text, by) {
    const blocks = parse(text);
    const keys = blocks.map((block) => text.slice(block.start, block.end));
    let same = 0;
    while (same < keys.length && keys[same] === this.shown[same]) same += 1;
    while (this.place.childNodes.length > same) this.place.lastChild.remove();
    this.place.append(...blocks.slice(same).map((block) => blockNode(block, by)));
    this.shown = keys;
    this.tell(keys.length - 1);
  }

  /** The text is whole. */
  finish() {
    this.tell(this.shown.length);
  }

  tell(until) {
    for (; this.told < until; this.told += 1) {
      const block = this.place.childNodes[this.told];
      this.finished((block.querySelector(":scope > pre") ?? block).textContent);
    }
  }
}

function blockNode(block, by) {
  switch (block.kind) {
    case "heading":
      // The page's own headings stand above those of an answer.
      return element(`h${Math.min(6, block.level + 2)}`, {}, ...inlineNodes(block.inline, by));
    case "code":
      return codeBlock(block, by);
    case "quote":
      return element("blockquote", {}, ...block.blocks.map((inner) => blockNode(inner, by)));
    case "list": {
      const items = block.items.map((blocks) => element("li", {}, ...itemNodes(blocks, by)));
      return block.ordered
        ? element("ol", { start: block.first }, ...items)
        : element("ul", {}, ...items);
    }
    case "table":
      return tableNode(block, by);
    case "rule":
      return element("hr");
    default:
      return element("p", {}, ...inlineNodes(block.inline, by));
  }
}

/** An item's first paragraph stands without one, as people write lists. */
function itemNodes(blocks, by) {
  return blocks.flatMap((block, place) =>
    place === 0 && block.kind === "paragraph"
      ? inlineNodes(block.inline, by)
      : [blockNode(block, by)],
  );
}

function codeBlock(block, by) {
  const code = element("code", {}, ...leafNodes(block.leaf, by));
  const copy = element("button", { type: "button", class: "quiet" }, "Copy");
  copy.setAttribute("aria-label", "Copy this code");
  copy.addEventListener("click", () => copyText(block.leaf.text, copy));
  return element(
    "figure",
    { class: "code" },
    element("figcaption", {}, element("span", {}, block.language || "text"), copy),
    element("pre", { tabindex: 0, "aria-label": `Code, ${block.language || "text"}` }, code),
  );
}

/** Put a text on the clipboard, and say on the button whether that went well. */
export async function copyText(text, button) {
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed here";
  }
  button.addEventListener("blur", () => (button.textContent = label), { once: true });
}

function tableNode(block, by) {
  const row = (tag, cells) =>
    element("tr", {}, ...cells.map((cell) => element(tag, {}, ...inlineNodes(cell, by))));
  return element(
    "div",
    { class: "wide", tabindex: 0, role: "region", "aria-label": "Table" },
    element(
      "table",
      {},
      element("thead", {}, row("th", block.head)),
      element("tbody", {}, ...block.rows.map((cells) => row("td", cells))),
    ),
  );
}

function inlineNodes(inlines, by) {
  return inlines.flatMap((inline) => {
    switch (inline.kind) {
      case "code":
        return [element("code", {}, ...leafNodes(inline.leaf, by))];
      case "strong":
        return [element("strong", {}, ...inlineNodes(inline.inline, by))];
      case "emphasis":
        return [element("em", {}, ...inlineNodes(inline.inline, by))];
      case "link":
        return [linkNode(inline, by)];
      default:
        return leafNodes(inline.leaf, by);
    }
  });
}

function linkNode(inline, by) {
  const attributes = { href: inline.href, target: "_blank", rel: "noopener noreferrer" };
  return element("a", attributes, ...inlineNodes(inline.inline, by));
}

/** Text nodes, with a span around each stretch that one drafter guessed. */
function leafNodes({ text, at }, by) {
  const nodes = [];
  let from = 0;
  for (let i = 1; i <= text.length; i += 1) {
    const who = by[at[from]] ?? null;
    if (i < text.length && (by[at[i]] ?? null) === who) continue;
    const stretch = text.slice(from, i);
    nodes.push(who === null ? stretch : drafted(stretch, who));
    from = i;
  }
  return nodes;
}

function drafted(text, who) {
  const kind = who === "lookup" ? "drafted copied" : "drafted";
  return element("span", { class: kind }, text);
}
