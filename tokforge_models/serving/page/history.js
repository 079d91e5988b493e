/**
 * Chats, kept in this browser only.
 *
 * One key of localStorage a chat, `tokforge/chat/<id>`, so that two windows do not undo each
 * other's work: {id, title, changed, turns}. A turn of the user is {role: "user", text}; one of the
 * model {role: "assistant", runs, thoughts, end, figures} with `runs` as [text, who guessed it or
 * null], `end` as the server's finish_reason, "stopped" or "broken".
 */

const PREFIX = "tokforge/chat/";
const TITLE_LENGTH = 60;

/** A chat without turns, which is not kept until it has some. */
export function newChat() {
  return { id: crypto.getRandomValues(new Uint32Array(4)).join("-"), title: "", changed: 0, turns: [] };
}

/** The text of a turn. */
export const textOf = (turn) =>
  turn.role === "user" ? turn.text : turn.runs.map(([text]) => text).join("");

/** All chats that are kept, the latest first. What cannot be read is left alone. */
export function chats() {
  const found = [];
  for (let i = 0; i < localStorage.length; i += 1) {
    const key = localStorage.key(i);
    const chat = key.startsWith(PREFIX) && read(key);
    if (chat) found.push(chat);
  }
  return found.sort((one, other) => other.changed - one.changed);
}

/**
 * Keep a chat as it is now.
 * @returns {boolean} whether there was room
 */
export function keep(chat) {
  if (!chat.turns.length) return true;
  chat.title = textOf(chat.turns[0]).trim().replace(/\s+/g, " ").slice(0, TITLE_LENGTH);
  chat.changed = Date.now();
  try {
    localStorage.setItem(PREFIX + chat.id, JSON.stringify(chat));
    return true;
  } catch {
    return false;
  }
}

/** Delete a chat. */
export function forget(chat) {
  localStorage.removeItem(PREFIX + chat.id);
}

function read(key) {
  try {
    const chat = JSON.parse(localStorage.getItem(key));
    return Array.isArray(chat?.turns) ? chat : null;
  } catch {
    return null;
  }
}
