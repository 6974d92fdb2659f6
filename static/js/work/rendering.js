// Turns untrusted text into nodes. Nothing is parsed as HTML: only text nodes, and KaTeX with trust switched off.
// Markdown and folds are in modules of their own, loaded for the traces that need them.

import { MATH, element, formula, scrolling, splitMath } from "./nodes.js";

const FENCE = /```[^\n]*\n([\s\S]*?)(?:```|$)/g;
const FOLD_STEP_AT = 6000; // characters; of a longer step, only the beginning is shown at first
const FOLD_CONTEXT_AT = 1500; // characters of a message or rules, which no one rates
const FOLD_MODULE_AT = 1000; // characters; shorter texts are never folded
const MAX_IMAGE_HEIGHT = 448; // pixels; larger images are seen whole when they are enlarged
const CODE = /`([^`\n]+)`/g;
const BARE = /\\[a-zA-Z]{2,}|[\w)}]\^[\w({-]/; // occurs only in formulas
const NAMES = /\\(?:(?:begin|end|text\w*|math\w+|operatorname)\s*\{[^{}]*\}|[a-zA-Z]+)/g;
const WORD = /(?:^|\s)\p{L}{2,}[.,;:]?(?=\s|$)/u;

// Signs of Markdown that are not also signs of mathematics or of plain text: bold, headings, links, tables, two items.
const MARKDOWN = new RegExp(
  [
    /\*\*\S[^*\n]*\*\*/,
    /^#{1,6} \S/,
    /\[[^\]\n]+\]\(https?:/,
    /^ *\|.*\|\s*\n *\|?[ :|-]*-[ :|-]*$/,
    /^ *(?:[-*+•] +[^\d\s].*\n+ *[-*+•]|\d{1,3}[.)] +\S.*\n+ *\d{1,3}[.)]) +\S/,
  ]
    .map((each) => each.source)
    .join("|"),
  "m",
);
const SIGNS_WITHIN = 20_000; // characters in which the signs of Markdown are looked for
const isMarkdown = (text) => MARKDOWN.test(text.length > SIGNS_WITHIN ? text.slice(0, SIGNS_WITHIN) : text);

// Mark text between backticks as code; formulas take precedence.
function withCode(text) {
  const out = document.createDocumentFragment();
  let from = 0;
  for (const found of text.matchAll(CODE)) {
    out.append(unescaped(text.slice(from, found.index)), element("code", "", found[1]));
    from = found.index + found[0].length;
  }
  out.append(unescaped(text.slice(from)));
  return out;
}

// Outside of formulas, LaTeX writes prices and percentages with a backslash.
const unescaped = (text) => text.replace(/\\([$%])/g, "$1");

// A displayed formula is a block by itself: the line breaks around it would be empty lines.
function withMath(text) {
  const out = document.createDocumentFragment();
  const pieces = splitMath(text);
  pieces.forEach((piece, n) => {
    if (typeof piece !== "string") return out.append(formula(piece));
    const after = pieces[n - 1]?.display ? piece.replace(/^\s*\n\s*/, "") : piece;
    return out.append(withCode(pieces[n + 1]?.display ? after.replace(/\s*\n\s*$/, "") : after));
  });
  return out;
}

const lazy = { renderMarkdown: null, foldProse: null, foldOutput: null };

// Load what these texts need. Without a network they are shown plainly.
export async function loadRenderers(texts) {
  const needed = [];
  if (!lazy.renderMarkdown && texts.some(isMarkdown)) needed.push(import("./markdown.js"));
  if (!lazy.foldProse && texts.some((text) => text.length > FOLD_MODULE_AT)) needed.push(import("./folds.js"));
  for (const module of await Promise.allSettled(needed)) Object.assign(lazy, module.value);
}

function prose(text) {
  if (lazy.renderMarkdown && isMarkdown(text)) return lazy.renderMarkdown(text);
  return plainProse(text);
}

function plainProse(text) {
  const out = document.createDocumentFragment();
  let from = 0;
  for (const found of text.matchAll(FENCE)) {
    if (found.index > from) out.append(element("p", "", withMath(text.slice(from, found.index).trimEnd())));
    out.append(scrolling("pre", "code", found[1]));
    from = found.index + found[0].length;
  }
  const rest = text.slice(from);
  if (rest.trim() || !from) out.append(element("p", "", withMath(rest.trimEnd())));
  return out;
}

// Format JSON for reading, or return null for other text. Only the whitespace changes; numbers and names stay as the model
// wrote them, and long strings with line breaks are shown on several lines.
function json(source) {
  if (!/^\s*[{[]/.test(source)) return null;
  try {
    JSON.parse(source);
  } catch {
    return null;
  }
  const parts = source.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g);
  const flat = parts.map((part) => ({ ",": ", ", ":": ": " })[part] ?? part).join("");
  return flat.length <= 72 ? flat : indented(parts);
}

function indented(parts) {
  let out = "";
  let depth = 0;
  const line = () => `\n${"  ".repeat(depth)}`;
  parts.forEach((part, n) => {
    const isEmpty = "{[".includes(parts[n - 1]) && "}]".includes(part);
    if ("}]".includes(part) && !isEmpty) out += ((depth -= 1), line());
    out += part.startsWith('"') && part.length > 72 && part.includes("\\n") ? `"${JSON.parse(part)}"` : part;
    if ("{[".includes(part) && !"}]".includes(parts[n + 1])) out += ((depth += 1), line());
    if (part === ",") out += line();
    if (part === ":") out += " ";
  });
  return out;
}

const diffLine = (line) => element("span", { "+": "diff__added", "-": "diff__removed", "@": "diff__header" }[line[0]] ?? "", line || " ");

function diff(text, getString) {
  if (text.length > FOLD_STEP_AT && lazy.foldOutput) return lazy.foldOutput(text, getString, { className: "code diff", isStep: true, lineNode: diffLine });
  const node = scrolling("pre", "code diff", "");
  node.append(...text.split("\n").map(diffLine));
  return node;
}

// `next`: the text that follows the output; the lines that it uses stay visible.
function output(text, getString, next) {
  const shown = json(text) ?? text;
  return lazy.foldOutput ? lazy.foldOutput(shown, getString, { next, source: text }) : scrolling("pre", "", shown);
}

// What the model wrote is rated, so much more of it is shown than of an output.
function call(item, getString) {
  const shown = json(item.text) ?? item.text;
  if (shown.length <= FOLD_STEP_AT || !lazy.foldOutput) return scrolling("pre", "code", shown, item.name);
  return lazy.foldOutput(shown, getString, { className: "code", name: item.name, isStep: true, source: item.text });
}

function foldedProse(text, getString, isContext) {
  return lazy.foldProse ? lazy.foldProse(text, getString, prose, isContext ? FOLD_CONTEXT_AT : FOLD_STEP_AT) : prose(text);
}

function part(item, getString, { isContext, next }) {
  if (item.kind === "call") return call(item, getString);
  if (item.kind === "diff") return diff(item.text, getString);
  if (item.kind === "image") return image(item, getString);
  if (item.kind === "result") return output(item.text, getString, next);
  return foldedProse(item.text, getString, isContext);
}

function image(item, getString) {
  const node = element("img", "picture__image");
  const scale = Math.min(1, MAX_IMAGE_HEIGHT / item.height);
  Object.assign(node, { alt: item.description || getString("image"), loading: "lazy", src: item.url });
  // With its size the image has its place before it is loaded, so that the highlighted step does not move.
  Object.assign(node, { width: Math.round(item.width * scale), height: Math.round(item.height * scale) });
  const button = element("button", "picture__zoom", node, element("span", "sr", getString("enlarge")));
  button.type = "button";
  button.dataset.act = "enlarge";
  const figure = element("figure", "picture", button);
  if (item.description) figure.append(Object.assign(element("figcaption", "", item.description), { dir: "auto" }));
  return figure;
}

const PART_KINDS = { text: "reasoning", call: "action", diff: "action", result: "observation" };

// The parts of an option. If a step has a thought and a call, each is marked with its kind, so that it can be filtered.
function parts(items, getString, about) {
  const nodes = items.map((item) => part(item, getString, about));
  const kinds = new Set(items.map((item) => PART_KINDS[item.kind]).filter(Boolean));
  if (about.isContext || kinds.size < 2) return nodes;
  return nodes.map((node, n) => {
    const box = element("div", "part", node);
    box.dataset.part = PART_KINDS[items[n].kind] ?? "";
    return box;
  });
}

export function optionBody(step, option, getString, { next = "" } = {}) {
  const body = document.createDocumentFragment();
  const isContext = step.is_rateable === false;
  if (option.parts?.length) body.append(...parts(option.parts, getString, { isContext, next }));
  else if (step.kind === "observation") body.append(output(option.text, getString, next));
  else body.append(foldedProse(option.text, getString, isContext));
  return body;
}

// A text with a placeholder for each of its images.
export function problemBody(text, images = [], getString = null) {
  const out = document.createDocumentFragment();
  let rest = text;
  for (const each of images) {
    const at = rest.indexOf(each.text);
    if (rest.slice(0, Math.max(0, at)).trim()) out.append(prose(rest.slice(0, at).replace(/\n$/, "")));
    out.append(image(each, getString));
    if (at >= 0) rest = rest.slice(at + each.text.length).replace(/^\n/, "");
  }
  if (rest.trim() || !images.length) out.append(prose(rest));
  return out;
}

// A reference answer: math datasets often omit the dollar signs, so a bare formula is typeset; text with words is not.
export function answerBody(text) {
  const isBare = BARE.test(text) && !/[`\n]/.test(text) && text.search(MATH) < 0 && !WORD.test(text.replace(NAMES, ""));
  if (!isBare) return prose(text);
  const out = document.createDocumentFragment();
  out.append(element("p", "", formula({ source: text, tex: text, display: false })));
  return out;
}

export { json };
