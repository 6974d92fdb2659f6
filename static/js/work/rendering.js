// Turns untrusted text into nodes. Nothing is parsed as HTML: only text nodes, and KaTeX with trust switched off.
// Markdown and folds are in modules of their own, loaded for the traces that need them.

const FENCE = /```[^\n]*\n([\s\S]*?)(?:```|$)/g;
// $$…$$, \[…\], \begin{align}…, \(…\), and $…$ by the rule that keeps prices out: no space inside the dollars, no digit
// after them. Lengths are bounded, so that many unclosed openings do not make the search quadratic.
const MATH = new RegExp(
  [
    /\$\$([\s\S]{1,4000}?)\$\$/,
    /\\\[([\s\S]{1,4000}?)\\\]/,
    /(\\begin\{((?:equation|align|alignat|gather)\*?)\}[\s\S]{1,4000}?\\end\{\4\})/,
    /\\\(([\s\S]{1,2000}?)\\\)/,
    /\$(?!\s)((?:\\.|[^$\\\n]|\n(?!\n))+?)(?<![\s\\])\$(?!\d)/,
    /(\\boxed\{(?:[^{}]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})*\})/,
  ]
    .map((each) => each.source)
    .join("|"),
  "g",
);
const FOLD_STEP_AT = 6000; // characters; of a longer step, only the beginning is shown at first
const FOLD_CONTEXT_AT = 1500; // characters of a message or rules that nobody rates
const FOLD_MODULE_AT = 1000; // characters; shorter texts are never folded
const MAX_FORMULA = 8000; // characters; typesetting a longer one would block the page
const CODE = /`([^`\n]+)`/g;
const BARE = /\\[a-zA-Z]{2,}|[\w)}]\^[\w({-]/; // occurs only in formulas
const NAMES = /\\(?:(?:begin|end|text\w*|math\w+|operatorname)\s*\{[^{}]*\}|[a-zA-Z]+)/g;
const WORD = /(?:^|\s)\p{L}{2,}[.,;:]?(?=\s|$)/u;

// Commands that reach beyond the formula (links, images, classes) make typesetting fail, so that the source is shown.
// KaTeX by itself would show the command's name without its argument.
const refuse = () => {
  throw new RangeError();
};
const KATEX = { throwOnError: true, strict: "ignore", trust: refuse, maxExpand: 500, maxSize: 20, output: "htmlAndMathml" };

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

const element = (tag, className, ...children) => {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children);
  return node;
};

// Create the element of a formula: it shows the source until KaTeX typesets it.
const formula = ({ source, tex, display }) => {
  const node = element("span", display ? "tex tex--display" : "tex", source);
  node.dataset.tex = tex;
  if (display) node.dataset.display = "";
  return node;
};

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

// Cut a text into strings and formulas.
function splitMath(text) {
  const pieces = [];
  let from = 0;
  for (const found of text.matchAll(MATH)) {
    const [source, dollars, brackets, lines, , parens, single, boxed] = found;
    const displayed = dollars ?? brackets ?? lines;
    const tex = displayed ?? parens ?? single ?? boxed;
    pieces.push(text.slice(from, found.index), { source, tex, display: displayed !== undefined });
    from = found.index + source.length;
  }
  return [...pieces, text.slice(from)];
}

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

// Create an element that scrolls horizontally and is focusable, so that the keyboard can scroll it.
function scrolling(tag, className, content, name) {
  const node = element(tag, className, content);
  node.tabIndex = 0;
  node.setAttribute("role", "group");
  if (name) node.setAttribute("aria-label", name);
  return node;
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

const size = (text) => {
  const bytes = new Blob([text]).size;
  return bytes < 1000 ? `${bytes} B` : `${(bytes / 1000).toFixed(1)} kB`;
};

// `next`: the text that follows the output; the lines that it uses stay visible.
function output(text, getString, next) {
  const shown = json(text) ?? text;
  return lazy.foldOutput ? lazy.foldOutput(shown, getString, { next }) : scrolling("pre", "", shown);
}

// What the model wrote is rated, so much more of it is shown than of an output.
function call(item, getString) {
  const shown = json(item.text) ?? item.text;
  if (shown.length <= FOLD_STEP_AT || !lazy.foldOutput) return scrolling("pre", "code", shown, item.name);
  return lazy.foldOutput(shown, getString, { className: "code", name: item.name, isStep: true });
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
  const node = element("img", "step__image");
  node.src = item.url;
  node.alt = item.name || getString("image");
  node.loading = "lazy";
  return node;
}

export function optionBody(step, option, getString, { next = "" } = {}) {
  const body = document.createDocumentFragment();
  const isContext = step.is_rateable === false;
  if (option.parts?.length) body.append(...option.parts.map((item) => part(item, getString, { isContext, next })));
  else if (step.kind === "observation") body.append(output(option.text, getString, next));
  else body.append(foldedProse(option.text, getString, isContext));
  return body;
}

export function problemBody(text) {
  return prose(text);
}

// A reference answer: math datasets often omit the dollar signs, so a bare formula is typeset; text with words is not.
export function answerBody(text) {
  const isBare = BARE.test(text) && !/[`\n]/.test(text) && text.search(MATH) < 0 && !WORD.test(text.replace(NAMES, ""));
  if (!isBare) return prose(text);
  const out = document.createDocumentFragment();
  out.append(element("p", "", formula({ source: text, tex: text, display: false })));
  return out;
}

let loading = null;

// Load KaTeX after the page is usable: a rating never waits for it.
export function loadMath({ css, js }) {
  loading ??= new Promise((resolve) => {
    const sheet = Object.assign(document.createElement("link"), { rel: "stylesheet", href: css });
    const script = Object.assign(document.createElement("script"), { src: js, onload: resolve, onerror: resolve });
    document.head.append(sheet, script);
  });
  return loading;
}

function typesetOne(node) {
  const { tex } = node.dataset;
  const source = node.textContent;
  delete node.dataset.tex;
  try {
    if (tex.length > MAX_FORMULA) throw new RangeError();
    globalThis.katex.render(tex, node, { ...KATEX, displayMode: "display" in node.dataset });
  } catch {
    node.replaceChildren(source); // KaTeX empties the node before it parses the formula
    node.classList.add("tex-source");
  }
}

const IMMEDIATE_COUNT = 80; // formulas; more than a screen shows
const SLICE_MS = 8; // keeps the page responsive

// Typeset the formulas inside `root`: the first ones immediately, the rest in short slices. Broken LaTeX keeps its source.
export async function typeset(root, immediateCount = IMMEDIATE_COUNT) {
  if (!globalThis.katex) return;
  const waiting = [...root.querySelectorAll("[data-tex]")];
  waiting.splice(0, immediateCount).forEach(typesetOne);
  let began = performance.now();
  for (const node of waiting) {
    if (performance.now() - began > SLICE_MS) {
      await new Promise((done) => setTimeout(done));
      began = performance.now();
    }
    if ("tex" in node.dataset) typesetOne(node);
  }
}

export { element, formula, json, scrolling, size, splitMath };
