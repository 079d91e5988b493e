/** The turns of a chat as the page shows them. */

import { element } from "./dom.js";
import { copyText, Growing } from "./rendering.js";
import { textOf } from "./history.js";

const ENDS = {
  length: "cut at the limit of tokens",
  stopped: "stopped",
  broken: "not complete",
};

const quiet = (text, onclick) =>
  element("button", { type: "button", class: "quiet", click: onclick }, text);

/** What the user said, with a way to say it otherwise. */
export class UserTurn {
  /**
   * @param {object} turn
   * @param {function(string)} resend is told the new text
   */
  constructor(turn, resend) {
    this.turn = turn;
    this.resend = resend;
    this.words = element("p", { class: "words" }, turn.text);
    this.edit = quiet("Edit", () => this.open());
    this.tools = element("div", { class: "tools" }, this.edit);
    this.node = element("article", { class: "user", "aria-label": "You" }, this.words, this.tools);
  }

  open() {
    const field = element("textarea", { rows: 2, "aria-label": "Edit your message" });
    field.value = this.turn.text;
    const send = () => field.value.trim() && this.resend(field.value.trim());
    const form = element(
      "form",
      { class: "edit" },
      field,
      element(
        "div",
        { class: "actions" },
        element("button", { type: "button", class: "button", click: () => this.close(form) }, "Cancel"),
        element("button", { type: "submit", class: "button strong" }, "Send again"),
      ),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      send();
    });
    field.addEventListener("keydown", (event) => {
      if (sends(event)) {
        event.preventDefault();
        send();
      } else if (event.key === "Escape") {
        event.stopPropagation();
        this.close(form);
      }
    });
    this.node.replaceChildren(form);
    field.focus();
  }

  close() {
    this.node.replaceChildren(this.words, this.tools);
    this.edit.focus();
  }
}

/** What the model says: grows while it does, and then tells how it went. */
export class ModelTurn {
  /**
   * @param {object} turn
   * @param {string} name the model's
   * @param {object} acts `again()` asks once more, `said(text)` is told each finished block
   */
  constructor(turn, name, { again, said = () => {} }) {
    this.turn = turn;
    this.by = [];
    this.body = element("div", { class: "prose" });
    this.growing = new Growing(this.body, said);
    this.thoughts = element("p");
    this.thinking = element(
      "details",
      { class: "thoughts", "aria-label": "Thoughts", hidden: true },
      element("summary", {}, "Thoughts"),
      this.thoughts,
    );
    this.figures = element("p", { class: "figures" });
    this.copy = quiet("Copy", () => copyText(textOf(turn), this.copy));
    this.again = quiet("Regenerate", again);
    this.again.classList.add("again");
    this.tools = element("div", { class: "tools", hidden: true }, this.figures, this.copy, this.again);
    this.node = element("article", { class: "model", "aria-label": name }, this.thinking, this.body, this.tools);
    this.node.setAttribute("aria-busy", "true");
  }

  /** Show the turn as it is now. */
  update() {
    const { runs, thoughts } = this.turn;
    const length = runs.reduce((sum, [text]) => sum + text.length, 0);
    if (this.by.length !== length) {
      this.by = runs.flatMap(([text, who]) => Array(text.length).fill(who));
      this.growing.update(textOf(this.turn), this.by);
    }
    if (thoughts && this.thoughts.textContent !== thoughts) {
      this.thinking.hidden = false;
      this.thoughts.textContent = thoughts;
    }
  }

  /** The turn is over. */
  finish() {
    this.update();
    this.growing.finish();
    this.node.removeAttribute("aria-busy");
    this.tools.hidden = false;
    this.figures.textContent = told(this.turn);
  }
}

/** How an answer went, in a line. */
function told({ end, figures }) {
  const parts = [];
  if (figures) {
    parts.push(figures.tokens === 1 ? "1 token" : `${figures.tokens} tokens`);
    if (figures.speed) parts.push(`${Math.round(figures.speed)} tokens/s`);
    if (figures.drafted) parts.push(`${figures.accepted} of ${figures.drafted} guesses accepted`);
  }
  if (ENDS[end]) parts.push(ENDS[end]);
  return parts.join(" · ");
}

/** Whether a key sends: Enter, but not while a word is being composed. */
export const sends = (event) => event.key === "Enter" && !event.shiftKey && !event.isComposing;
