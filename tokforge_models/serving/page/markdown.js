/**
 * Markdown, as chat models write it, read into a tree. Pure: text in, plain objects out.
 *
 * Blocks: {kind, start, end, ...} with `start` and `end` as offsets of the source. Kinds: paragraph
 * and heading (level) with `inline`; code (language) with `leaf`; quote with `blocks`; list
 * (ordered, first) with `items`, each a list of blocks; table (head, rows) with cells of inlines;
 * rule. Inlines: text and code with `leaf`; strong and emphasis with `inline`; link (href) with
 * `inline`. A leaf is {text, at}: `at[i]` is where character i stands in the source, so that a
 * reader can tell who wrote it. Raw HTML is text like any other; a picture is a link to it.
 */

const FENCE = /^ {0,3}(`{3,}|~{3,}) *([^\s`]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})[ \t]+/;
const RULE = /^ {0,3}(?:(?:\* *){3,}|(?:- *){3,}|(?:_ *){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^ {0,3}(?:[-*+]|(\d{1,9})[.)])(?: +|$)/;
const TABLE_RULE = /^ *\|? *:?-+:? *(?:\| *:?-+:? *)*\|? *$/;
const LINK = /!?\[((?:[^[\]\\]|\\.|\[[^[\]]*\])*)\]\(\s*<?([^\s<>()]*(?:\([^\s()]*\)[^\s<>()]*)*)>?(?:\s+"[^"]*")?\s*\)/y;
const BARE_LINK = /https?:\/\/[^\s<>"'`[\]]*[^\s<>"'`[\].,;:!?)]/y;
const ESCAPED = /\\[!-/:-@[-`{-~]/y;
const TICKS = /`+/y;
const WORD = /[\p{L}\p{N}]/u;

// Deeper than any answer that means it; text that nests on and on must not exhaust the stack.
const DEEPEST = 8;

/** All blocks of a text. */
export function parse(text) {
  let at = 0;
  const lines = text.split("\n").map((line) => {
    const begins = at;
    at += line.length + 1;
    return { text: line, at: begins };
  });
  return readBlocks(lines, 0);
}

/** The address where it is one that a page may lead to, else null. */
export function safeAddress(href) {
  try {
    const url = new URL(href);
    return url.protocol === "http:" || url.protocol === "https:" ? url.href : null;
  } catch {
    return null;
  }
}

const isBlank = (line) => line.text.trim() === "";
const cut = (line, n) => ({ text: line.text.slice(n), at: line.at + Math.min(n, line.text.length) });
const indent = (line) => line.text.length - line.text.trimStart().length;

function begins(line, next) {
  return [FENCE, HEADING, RULE, QUOTE, ITEM].some((mark) => mark.test(line.text)) || isTable(line, next);
}

function isTable(line, next) {
  return next !== undefined && line.text.includes("|") && next.text.includes("|") && TABLE_RULE.test(next.text);
}

function readBlocks(lines, depth) {
  const blocks = [];
  let i = 0;
  while (i < lines.length) {
    if (isBlank(lines[i])) {
      i += 1;
      continue;
    }
    const [block, used] = depth < DEEPEST ? readBlock(lines, i, depth) : readParagraph(lines, i);
    const last = lines[i + used - 1];
    blocks.push({ ...block, start: lines[i].at, end: last.at + last.text.length });
    i += used;
  }
  return blocks;
}

/** One block from line i on, and how many lines it takes. */
function readBlock(lines, i, depth) {
  const line = lines[i];
  let found;
  if ((found = FENCE.exec(line.text))) return readFence(lines, i, found);
  if ((found = HEADING.exec(line.text))) {
    const body = cut(line, found[0].length);
    const title = { text: body.text.replace(/(?:^|[ \t]+)#*[ \t]*$/, ""), at: body.at };
    return [{ kind: "heading", level: found[1].length, inline: readInline([title]) }, 1];
  }
  if (RULE.test(line.text)) return [{ kind: "rule" }, 1];
  if (QUOTE.test(line.text)) return readQuote(lines, i, depth);
  if (ITEM.test(line.text)) return readList(lines, i, depth);
  if (isTable(line, lines[i + 1])) return readTable(lines, i);
  return readParagraph(lines, i);
}

function readFence(lines, i, [opening, fence, language]) {
  const inner = [];
  const pad = opening.length - opening.trimStart().length;
  let used = 1;
  for (; i + used < lines.length; used += 1) {
    const line = lines[i + used];
    const mark = line.text.trim();
    if (mark.length >= fence.length && mark === fence[0].repeat(mark.length)) {
      used += 1;
      break;
    }
    inner.push(cut(line, Math.min(pad, indent(line))));
  }
  return [{ kind: "code", language, leaf: join(inner) }, used];
}

function readQuote(lines, i, depth) {
  const inner = [];
  while (i + inner.length < lines.length) {
    const line = lines[i + inner.length];
    const mark = QUOTE.exec(line.text);
    if (!mark) break;
    inner.push(cut(line, mark[0].length));
  }
  return [{ kind: "quote", blocks: readBlocks(inner, depth + 1) }, inner.length];
}

function readList(lines, i, depth) {
  const [, number] = ITEM.exec(lines[i].text);
  const ordered = number !== undefined;
  const items = [];
  let used = 0;
  while (i + used < lines.length) {
    const line = lines[i + used];
    const mark = ITEM.exec(line.text);
    if (!mark || (mark[1] !== undefined) !== ordered || RULE.test(line.text)) break;
    const width = mark[0].length;
    const inner = [cut(line, width)];
    used += 1;
    while (i + used < lines.length && goesOn(lines, i + used, Math.min(width, indent(line) + 2))) {
      const next = lines[i + used];
      inner.push(cut(next, Math.min(width, indent(next))));
      used += 1;
    }
    items.push(readBlocks(inner, depth + 1));
    let blanks = 0;
    while (i + used + blanks < lines.length && isBlank(lines[i + used + blanks])) blanks += 1;
    const after = lines[i + used + blanks];
    if (blanks && after !== undefined && ITEM.test(after.text)) used += blanks;
  }
  return [{ kind: "list", ordered, first: ordered ? Number(number) : 1, items }, used];
}

/** Whether line i still belongs to a list's item: indented, or the same paragraph. */
function goesOn(lines, i, width) {
  const line = lines[i];
  if (!isBlank(line)) {
    return indent(line) >= width || (!isBlank(lines[i - 1]) && !begins(line, lines[i + 1]));
  }
  const next = lines[i + 1];
  return next !== undefined && !isBlank(next) && indent(next) >= width;
}

function readTable(lines, i) {
  const rows = [];
  let used = 2;
  while (i + used < lines.length && lines[i + used].text.includes("|")) {
    rows.push(readCells(lines[i + used]));
    used += 1;
  }
  return [{ kind: "table", head: readCells(lines[i]), rows }, used];
}

function readCells(line) {
  const bounds = [...line.text.matchAll(/(?<!\\)\|/g)].map((found) => found.index);
  const edges = [-1, ...bounds, line.text.length];
  const cells = edges.slice(1).map((end, k) => {
    const cell = cut({ text: line.text.slice(0, end), at: line.at }, edges[k] + 1);
    return cut({ text: cell.text.trimEnd(), at: cell.at }, indent(cell));
  });
  if (cells[0].text === "") cells.shift();
  if (cells.length && cells[cells.length - 1].text === "") cells.pop();
  return cells.map((cell) => readInline([cell]));
}

function readParagraph(lines, i) {
  let used = 1;
  while (i + used < lines.length) {
    const line = lines[i + used];
    if (isBlank(line) || begins(line, lines[i + used + 1])) break;
    used += 1;
  }
  return [{ kind: "paragraph", inline: readInline(lines.slice(i, i + used)) }, used];
}

/** Lines as one leaf, with the line breaks between them. */
function join(lines) {
  const at = [];
  lines.forEach((line, k) => {
    if (k > 0) at.push(line.at - 1);
    for (let c = 0; c < line.text.length; c += 1) at.push(line.at + c);
  });
  return { text: lines.map((line) => line.text).join("\n"), at };
}

const part = ({ text, at }, from, to) => ({ text: text.slice(from, to), at: at.slice(from, to) });

function readInline(lines) {
  return inlines(join(lines), 0, false);
}

function inlines(leaf, depth, inLink) {
  const { text } = leaf;
  const found = [];
  const unclosed = new Set();
  let plain = 0;
  let i = 0;

  const take = (inline, end) => {
    if (plain < i) found.push({ kind: "text", leaf: part(leaf, plain, i) });
    if (inline) found.push(inline);
    plain = i = end;
  };

  while (i < text.length) {
    const special = nextInline(leaf, i, depth, inLink, unclosed);
    if (special === null) i += 1;
    else if (special.skip) {
      take(null, i + 1);
      i += 1;
    } else take(special.inline, special.end);
  }
  take(null, i);
  return found;
}

/** What begins at i, if it is more than text: an inline with its end, or a mark to leave out. */
function nextInline(leaf, i, depth, inLink, unclosed) {
  const { text } = leaf;
  switch (text[i]) {
    case "\\":
      return match(ESCAPED, text, i) ? { skip: true } : null;
    case "`":
      return codeAt(leaf, i, unclosed);
    case "*":
    case "_":
      return depth < DEEPEST ? emphasisAt(leaf, i, depth, inLink, unclosed) : null;
    case "!":
    case "[": {
      const link = !inLink && match(LINK, text, i);
      const href = link && safeAddress(link[2]);
      if (!href) return null;
      const from = text.indexOf("[", i) + 1;
      const label = part(leaf, from, from + link[1].length);
      const inline = inlines(label, depth + 1, true);
      return { inline: { kind: "link", href, inline }, end: i + link[0].length };
    }
    case "h": {
      const begins = !inLink && (i === 0 || !WORD.test(text[i - 1]));
      const link = begins && match(BARE_LINK, text, i);
      const href = link && safeAddress(link[0]);
      if (!href) return null;
      const end = i + link[0].length;
      return { inline: { kind: "link", href, inline: [{ kind: "text", leaf: part(leaf, i, end) }] }, end };
    }
    default:
      return null;
  }
}

function match(pattern, text, i) {
  pattern.lastIndex = i;
  return pattern.exec(text);
}

function codeAt(leaf, i, unclosed) {
  const ticks = match(TICKS, leaf.text, i)[0];
  const from = i + ticks.length;
  const to = unclosed.has(ticks) ? -1 : findTicks(leaf.text, ticks, from);
  if (to < 0) {
    unclosed.add(ticks);
    return { inline: { kind: "text", leaf: part(leaf, i, from) }, end: from };
  }
  let code = part(leaf, from, to);
  if (/^ .*[^ ].* $/s.test(code.text)) code = part(code, 1, code.text.length - 1);
  return { inline: { kind: "code", leaf: code }, end: to + ticks.length };
}

function findTicks(text, ticks, from) {
  let i = text.indexOf(ticks, from);
  while (i >= 0) {
    const run = match(TICKS, text, i)[0].length;
    if (run === ticks.length) return i;
    i = text.indexOf(ticks, i + run);
  }
  return -1;
}

function emphasisAt(leaf, i, depth, inLink, unclosed) {
  const { text } = leaf;
  const sign = text[i];
  const mark = text[i + 1] === sign ? sign + sign : sign;
  const from = i + mark.length;
  const inWord = sign === "_" && i > 0 && WORD.test(text[i - 1]);
  const opens = from < text.length && !/\s/.test(text[from]) && !inWord;
  const to = opens && !unclosed.has(mark) ? closing(text, mark, from) : -1;
  if (to < 0) {
    if (opens) unclosed.add(mark);
    return { inline: { kind: "text", leaf: part(leaf, i, from) }, end: from };
  }
  const kind = mark.length === 2 ? "strong" : "emphasis";
  return { inline: { kind, inline: inlines(part(leaf, from, to), depth + 1, inLink) }, end: to + mark.length };
}

function closing(text, mark, from) {
  const sign = mark[0];
  for (let i = text.indexOf(mark, from + 1); i >= 0; i = text.indexOf(mark, i + 1)) {
    let run = 1;
    while (text[i + run] === sign) run += 1;
    const right = mark.length === 1 ? run !== 2 : true;
    const place = i + run - mark.length;
    const after = text[place + mark.length] ?? " ";
    if (right && !/\s/.test(text[i - 1]) && !(sign === "_" && WORD.test(after))) return place;
    i += run - 1;
  }
  return -1;
}
