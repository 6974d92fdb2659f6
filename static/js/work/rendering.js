// Turns untrusted text into nodes. Nothing is parsed as HTML: only text nodes, and KaTeX with trust switched off.

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
export const FOLD_AT = 6000; // characters; only the beginning of a longer text is shown at first
const FOLD_LINES = 40; // of tool output
const TAIL = 1200; // characters
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

const element = (tag, className, ...children) => {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children);
  return node;
};

// Create the element of a formula: it shows the source until KaTeX typesets it.
const formula = (source, tex, display) => {
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
    out.append(text.slice(from, found.index), element("code", "", found[1]));
    from = found.index + found[0].length;
  }
  out.append(text.slice(from));
  return out;
}

function withMath(text) {
  const out = document.createDocumentFragment();
  let from = 0;
  for (const found of text.matchAll(MATH)) {
    const [source, dollars, brackets, lines, , parens, single, boxed] = found;
    const displayed = dollars ?? brackets ?? lines;
    const tex = displayed ?? parens ?? single ?? boxed;
    out.append(withCode(text.slice(from, found.index)), formula(source, tex, displayed !== undefined));
    from = found.index + source.length;
  }
  out.append(withCode(text.slice(from)));
  return out;
}

function prose(text) {
  const out = document.createDocumentFragment();
  let from = 0;
  for (const found of text.matchAll(FENCE)) {
    if (found.index > from) out.append(element("p", "", withMath(text.slice(from, found.index).trimEnd())));
    out.append(scrolling("pre", "code", found[1]));
    from = found.index + found[0].length;
  }
  const rest = text.slice(from);
  if (rest.trim() || !from) out.append(element("p", "", withMath(rest)));
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

function diff(text) {
  const node = scrolling("pre", "code diff", "");
  for (const line of text.split("\n")) {
    const kind = { "+": "diff__added", "-": "diff__removed", "@": "diff__header" }[line[0]];
    node.append(element("span", kind ?? "", line || " "));
  }
  return node;
}

const size = (text) => {
  const bytes = new Blob([text]).size;
  return bytes < 1000 ? `${bytes} B` : `${(bytes / 1000).toFixed(1)} kB`;
};

// Fold a long text: show a part of it, and the whole when it is opened. Output shows its last lines, which matter most.
function folded(text, getString, render, { tail = false, lines = Infinity } = {}) {
  const count = text.split("\n").length;
  if (text.length <= FOLD_AT && count <= lines) return render(text);
  const part = element("div", "", render(tail ? text.slice(-TAIL).split("\n").slice(-12).join("\n") : beginning(text, lines)));
  const whole = element("details", "fold", element("summary", "", getString("show_all", { size: size(text), lines: count })));
  whole.addEventListener("toggle", () => {
    if (whole.open && whole.childElementCount === 1) {
      whole.append(render(text));
      typeset(whole);
    }
    part.hidden = whole.open;
  });
  const out = document.createDocumentFragment();
  out.append(part, whole);
  return out;
}

const beginning = (text, lines) => {
  const cut = text.slice(0, FOLD_AT);
  return lines === Infinity ? cut : cut.split("\n").slice(0, lines / 2).join("\n");
};


function output(text, getString) {
  const read = json(text);
  return folded(read ?? text, getString, (shown) => scrolling("pre", "", shown), { tail: read === null, lines: FOLD_LINES });
}

function part(item, getString) {
  if (item.kind === "call") return folded(json(item.text) ?? item.text, getString, (text) => scrolling("pre", "code", text, item.name));
  if (item.kind === "diff") return folded(item.text, getString, diff);
  if (item.kind === "image") return image(item, getString);
  if (item.kind === "result") return output(item.text, getString);
  return folded(item.text, getString, prose);
}

function image(item, getString) {
  const node = element("img", "step__image");
  node.src = item.url;
  node.alt = item.name || getString("image");
  node.loading = "lazy";
  return node;
}

export function optionBody(step, option, getString) {
  const body = document.createDocumentFragment();
  if (option.parts?.length) body.append(...option.parts.map((item) => part(item, getString)));
  else if (step.kind === "observation") body.append(output(option.text, getString));
  else body.append(folded(option.text, getString, prose));
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
  out.append(element("p", "", formula(text, text, false)));
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

export { json, size };
