// Typeset the formulas of a server-rendered page. Without it, their source is shown.

import "./image_zoom.js";
import { loadMath, typeset } from "./work/nodes.js";
import { json, loadRenderers, problemBody } from "./work/rendering.js";

await loadRenderers([...document.querySelectorAll("[data-maths] [data-plain]")].map((plain) => plain.textContent));
for (const root of document.querySelectorAll("[data-maths]")) {
  // Plain text with math delimiters
  for (const plain of root.querySelectorAll("[data-plain]")) plain.replaceChildren(problemBody(plain.textContent.trim()));
  for (const node of root.querySelectorAll("[data-json]")) node.textContent = json(node.textContent) ?? node.textContent;
  if (root.querySelector("[data-tex]")) {
    loadMath(document.getElementById("katex").dataset).then(() => typeset(root));
  }
}
