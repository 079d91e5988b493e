/** What the user has set: kept in this browser, asked of the server with every message. */

import { byId, element } from "./dom.js";

const PLACE = "tokforge/settings";
const KEY_PLACE = "tokforge/key";

/** The server's key, until this tab is closed. */
export const key = {
  get: () => sessionStorage.getItem(KEY_PLACE) ?? "",
  set: (value) => sessionStorage.setItem(KEY_PLACE, value),
};

/** The controls of the page and what they are set to. */
export class Settings {
  constructor() {
    this.form = byId("settings");
    this.mark = byId("mark");
    this.values = read();
    this.mark.checked = Boolean(this.values.mark);
    this.form.elements.theme.value = this.values.theme ?? "system";
    byId("use-draft").checked = this.values.draft ?? true;
    byId("temperature").value = this.values.temperature ?? 0;
    this.apply();
    for (const source of [this.form, this.mark]) {
      source.addEventListener("input", (event) => this.changed(event.target));
    }
    this.form.addEventListener("submit", (event) => event.preventDefault());
  }

  /** Offer what this server can do. */
  offer(pairing) {
    const lengths = ["auto", ...Array(pairing.max_d + 1).keys()].map(String);
    const wanted = lengths.includes(this.values.d) ? this.values.d : String(pairing.d);
    byId("length-choices").replaceChildren(
      ...lengths.map((d) =>
        element(
          "label",
          {},
          element("input", { type: "radio", name: "d", value: d, checked: d === wanted }),
          element("span", {}, d === "auto" ? "Auto" : d),
        ),
      ),
    );
    const most = byId("max-tokens");
    most.max = pairing.max_tokens;
    most.value = Math.min(this.values.maxTokens ?? Infinity, pairing.max_tokens);
    const drafts = pairing.draft !== null || pairing.lookup;
    byId("drafting").disabled = !drafts;
    this.apply();
  }

  /** The settings as fields of a request. */
  request() {
    const drafts = byId("use-draft").checked && !byId("drafting").disabled;
    const d = this.form.elements.d.value;
    return {
      ...(drafts ? { d: d === "auto" ? d : Number(d) } : { draft: "none" }),
      temperature: Number(byId("temperature").value),
      max_tokens: Number(byId("max-tokens").value),
    };
  }

  changed(control) {
    const most = byId("max-tokens");
    const { values } = this;
    if (control === this.mark) values.mark = this.mark.checked;
    else if (control === most && most.validity.valid) values.maxTokens = Number(most.value);
    else if (control.name === "theme" || control.name === "d") values[control.name] = control.value;
    else if (control.id === "use-draft") values.draft = control.checked;
    else if (control.id === "temperature") values.temperature = Number(control.value);
    this.apply();
    try {
      localStorage.setItem(PLACE, JSON.stringify(values));
    } catch {
      // A browser without room for it forgets the settings, and works.
    }
  }

  apply() {
    const root = document.documentElement;
    root.dataset.theme = this.form.elements.theme.value;
    root.dataset.marked = this.mark.checked;
    byId("legend").hidden = !this.mark.checked;
    byId("lengths").disabled = !byId("use-draft").checked;
    byId("temperature-shown").value = Number(byId("temperature").value).toFixed(1);
  }
}

function read() {
  try {
    return { ...JSON.parse(localStorage.getItem(PLACE)) };
  } catch {
    return {};
  }
}
