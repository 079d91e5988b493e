/** The server, as the page asks it; whatever goes wrong is a `Trouble` with a sentence to show. */

/** What kept the server from answering. */
export class Trouble extends Error {
  /**
   * @param {string} sentence
   * @param {boolean} wantsKey whether the right key would help
   */
  constructor(sentence, wantsKey = false) {
    super(sentence);
    this.wantsKey = wantsKey;
  }
}

/** What runs, with whom and why: the server's `Pairing`. */
export async function pairing(key) {
  return (await ask("/pairing", { headers: authorization(key) })).json();
}

/**
 * The chunks of an answer as they come.
 * @param {object} request a body of /v1/chat/completions, which is asked to stream
 * @param {string} key the server's, or empty
 * @param {AbortSignal} signal ends it; the server then stops within a round
 */
export async function* answer(request, key, signal) {
  const response = await ask("/v1/chat/completions", {
    method: "POST",
    headers: { "content-type": "application/json", ...authorization(key) },
    body: JSON.stringify({ ...request, stream: true }),
    signal,
  });
  let whole = false;
  try {
    for await (const data of events(response.body)) {
      if (data === "[DONE]") {
        whole = true;
        continue;
      }
      const chunk = JSON.parse(data);
      if (chunk.error) throw new Trouble(sentence(0, chunk.error));
      yield chunk;
    }
  } catch (error) {
    if (error instanceof Trouble || signal.aborted) throw error;
    whole = false;
  }
  if (!whole) throw new Trouble("The connection broke before the answer was complete.");
}

/** The data of server-sent events; an event may arrive in any number of parts. */
export async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    held += part.value;
    const complete = held.split(/\r?\n\r?\n/);
    held = complete.pop();
    for (const event of complete) {
      const lines = event.split(/\r?\n/).filter((line) => line.startsWith("data:"));
      if (lines.length) yield lines.map((line) => line.slice(5).replace(/^ /, "")).join("\n");
    }
  }
}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, { ...options, cache: "no-store" });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Trouble("The server cannot be reached. Does tokforge serve still run?");
  }
  if (response.ok) return response;
  const error = await response.json().then((body) => body.error, () => ({}));
  const seconds = response.headers.get("retry-after");
  if (response.status === 401) {
    const tried = options.headers.authorization;
    throw new Trouble(tried ? "The server does not know this key." : "This server asks for its key.", true);
  }
  throw new Trouble(sentence(response.status, error, seconds));
}

/** Header values are bytes: the key's are those of UTF-8, as the server reads them. */
function authorization(key) {
  const bytes = new TextEncoder().encode(key);
  return key ? { authorization: `Bearer ${String.fromCharCode(...bytes)}` } : {};
}

function sentence(status, error, seconds) {
  const said = ended(error.message ?? `the server answered with status ${status}`);
  if (status === 429) return `The server is busy: ${said} Try again in ${seconds ?? "a few"} s.`;
  if (error.code === "engine_crashed") {
    return `The model stopped in the middle of its work: ${said} It is being loaded again.`;
  }
  return said[0].toUpperCase() + said.slice(1);
}

const ended = (text) => (/[.!?]$/.test(text) ? text : `${text}.`);
