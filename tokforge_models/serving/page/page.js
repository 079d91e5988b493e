/** The page: one chat with the server's model, and what may be done to it. */

import { byId, element } from "./dom.js";
import { Gauges } from "./gauges.js";
import { chats, forget, keep, newChat, textOf } from "./history.js";
import { answer, pairing, Trouble } from "./server.js";
import { key, Settings } from "./settings.js";
import { ModelTurn, sends, UserTurn } from "./turns.js";

const NEAR_END_PX = 80;

const settings = new Settings();
const gauges = new Gauges();
const conversation = byId("conversation");
const question = byId("question");

let pair = null;
let chat = newChat();
let running = null;

// What runs

/** Learn what this server runs; `pair` is null until then, and again after trouble. */
async function meet() {
  pair = await pairing(key.get());
  settings.offer(pair);
  const helper = pair.draft ?? (pair.lookup ? "lookup" : null);
  document.title = `${pair.model} · tokforge`;
  byId("pair").replaceChildren(pair.model, ...(helper ? [element("small", {}, ` with ${helper}`)] : []));
  byId("welcome-title").textContent = `Ask ${pair.model} something`;
  byId("welcome-text").textContent = helper
    ? `${helper} guesses ahead, and ${pair.model} decides every token.`
    : `${pair.model} works without a draft.`;
  const told = [
    ["Target", pair.model],
    ["Draft", pair.draft ?? "none"],
    ["Lookup", pair.lookup ? "guesses from the text so far" : "off"],
    ["Why", pair.reason],
    ...pair.notes.map((note) => ["Note", note]),
  ];
  byId("pairing").replaceChildren(
    ...told.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]),
  );
  byId("legend").replaceChildren(
    ...(pair.draft ? [element("span", { class: "drafted" }, "Underlined"), `: guessed by ${pair.draft}. `] : []),
    ...(pair.lookup ? [element("span", { class: "drafted copied" }, "Dotted"), ": guessed from the text so far. "] : []),
    `The rest is ${pair.model}’s own.`,
  );
}

async function begin() {
  clearTrouble();
  try {
    await meet();
  } catch (error) {
    show(error, begin);
  }
}

// What goes wrong

function show(error, again) {
  if (!(error instanceof Trouble)) throw error;
  byId("trouble").replaceChildren(
    element("p", {}, error.message),
    element("button", { type: "button", class: "button", click: again }, "Try again"),
  );
  conversation.scrollTop = conversation.scrollHeight;
  if (error.wantsKey) askForKey(again);
}

function clearTrouble() {
  byId("trouble").replaceChildren();
}

function askForKey(then) {
  const dialog = byId("key-dialog");
  byId("key-form").onsubmit = () => {
    key.set(byId("key").value.trim());
    byId("key").value = "";
    then();
  };
  if (!dialog.open) dialog.showModal();
}

// The chat

function open(other) {
  stop();
  chat = other;
  gauges.clear();
  clearTrouble();
  byId("spoken").replaceChildren();
  byId("turns").replaceChildren(
    ...chat.turns.map((turn, place) => {
      if (turn.role === "user") return userNode(turn, place);
      const view = modelView(turn);
      view.finish();
      return view.node;
    }),
  );
  conversation.scrollTop = conversation.scrollHeight;
  list();
}

function userNode(turn, place) {
  return new UserTurn(turn, (text) => say(text, place)).node;
}

function modelView(turn, said) {
  return new ModelTurn(turn, pair?.model ?? "The model", { again: regenerate, said });
}

/** Say something, in place of everything from a turn on. */
function say(text, place = chat.turns.length) {
  stop();
  chat.turns.splice(place);
  const turns = byId("turns");
  while (turns.children.length > place) turns.lastChild.remove();
  const turn = { role: "user", text };
  chat.turns.push(turn);
  turns.append(userNode(turn, place));
  question.focus();
  return reply();
}

/** Answer the last thing that was said, once more if it was answered. */
function regenerate() {
  const last = chat.turns.at(-1);
  stop();
  if (last.role === "assistant") {
    chat.turns.pop();
    byId("turns").lastChild.remove();
  }
  question.focus();
  return reply();
}

async function reply() {
  clearTrouble();
  gauges.clear();
  const turn = { role: "assistant", runs: [], thoughts: "", end: "broken", figures: null };
  const messages = chat.turns.map((each) => ({ role: each.role, content: textOf(each) }));
  const spoken = byId("spoken");
  spoken.replaceChildren();
  const view = modelView(turn, (text) => spoken.append(element("p", {}, text)));
  const mine = { abort: new AbortController(), chat, turn, view };
  running = mine;
  chat.turns.push(turn);
  byId("turns").append(view.node);
  busy(true);
  saved();
  follow(true);
  try {
    if (pair === null) await meet();
    await listen(mine, { model: pair.model, messages, ...settings.request() });
    if (running === mine) settle(mine);
  } catch (error) {
    if (running !== mine) return;
    settle(mine);
    pair = null;
    show(error, regenerate);
  }
}

async function listen({ abort, turn, view }, request) {
  const telling = { provenance: true, timings_per_token: true };
  let frame = null;
  const draw = () => {
    frame = null;
    view.update();
    follow();
  };
  for await (const chunk of answer({ ...request, ...telling }, key.get(), abort.signal)) {
    if (abort.signal.aborted) return;
    const [choice] = chunk.choices;
    for (const origin of choice?.provenance ?? []) {
      if (origin.field === "content") turn.runs.push([origin.text, origin.drafted_by]);
      else turn.thoughts += origin.text;
    }
    if (chunk.timings) {
      turn.figures = figures(chunk.timings);
      if (choice.finish_reason) gauges.finish(chunk.timings);
      else gauges.add(chunk.timings);
    }
    if (choice?.finish_reason) turn.end = choice.finish_reason;
    frame ??= requestAnimationFrame(draw);
  }
}

const figures = (timings) => ({
  tokens: timings.predicted_n,
  speed: timings.predicted_per_second,
  drafted: timings.draft_n,
  accepted: timings.draft_n_accepted,
});

/** The running answer is over, however it went. */
function settle({ chat: its, turn, view }) {
  running = null;
  busy(false);
  if (turn.runs.length || turn.thoughts) {
    view.finish();
  } else {
    its.turns.splice(its.turns.indexOf(turn), 1);
    view.node.remove();
  }
  saved(its);
  follow();
}

function stop() {
  if (running === null) return;
  const { abort, turn } = running;
  abort.abort();
  turn.end = "stopped";
  settle(running);
}

function saved(which = chat) {
  if (!keep(which)) show(new Trouble("This browser has no room left for chats; delete some."), saved);
  list();
}

function busy(is) {
  byId("send").hidden = is;
  byId("stop").hidden = !is;
  document.documentElement.dataset.busy = is;
}

/** Stay at the end of the conversation, unless the reader has gone elsewhere in it. */
function follow(always = false) {
  const left = conversation.scrollHeight - conversation.scrollTop - conversation.clientHeight;
  if (always || left < NEAR_END_PX) conversation.scrollTop = conversation.scrollHeight;
}

// The list of chats

let listed = null;

function list() {
  const kept = chats();
  const now = JSON.stringify([chat.id, ...kept.map((each) => [each.id, each.title])]);
  // What has not changed is left as it is, with the focus that it may have.
  if (now === listed) return;
  listed = now;
  byId("chats").replaceChildren(
    ...kept.map((each) => {
      const current = each.id === chat.id;
      const choose = () => {
        open(each);
        closeSide();
      };
      return element(
        "li",
        {},
        element("button", { type: "button", class: "chat", "aria-current": current && "true", click: choose }, each.title),
        element(
          "button",
          { type: "button", class: "icon", "aria-label": `Delete “${each.title}”`, click: () => remove([each]) },
          "×",
        ),
      );
    }),
  );
  byId("no-chats").hidden = kept.length > 0;
  byId("delete-all").hidden = kept.length < 2;
}

function remove(some) {
  const what = some.length === 1 ? `“${some[0].title}”` : `all ${some.length} chats`;
  if (!confirm(`Delete ${what}? Nobody else has a copy.`)) return;
  if (some.some((each) => each.id === chat.id)) open(newChat());
  some.forEach(forget);
  list();
}

function closeSide() {
  if (byId("side").matches(":popover-open")) byId("side").hidePopover();
  question.focus();
}

// Events

byId("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = question.value.trim();
  if (!text || running !== null) return;
  question.value = "";
  say(text);
});
question.addEventListener("keydown", (event) => {
  if (!sends(event)) return;
  event.preventDefault();
  byId("composer").requestSubmit();
});
byId("stop").addEventListener("click", () => {
  stop();
  question.focus();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !byId("side").matches(":popover-open")) stop();
});
byId("new-chat").addEventListener("click", () => {
  open(newChat());
  closeSide();
});
byId("delete-all").addEventListener("click", () => remove(chats()));
byId("key-cancel").addEventListener("click", () => byId("key-dialog").close());
window.addEventListener("storage", list);
window.addEventListener("pagehide", () => {
  if (running !== null) keep(running.chat);
});

open(chats()[0] ?? chat);
begin();
