// Render the formulas and code of traces on leads' pages. The server sends plain text.

import "../image_zoom.js";
import { loadMath, typeset } from "../work/nodes.js";
import { answerBody, loadRenderers, problemBody } from "../work/rendering.js";

export async function renderTexts(root = document) {
  const nodes = [...root.querySelectorAll("[data-text]")];
  await loadRenderers(nodes.map((node) => node.textContent));
  for (const node of nodes) {
    const body = (node.dataset.text === "answer" ? answerBody : problemBody)(node.textContent);
    // Inside a sentence the text stays inline.
    if (node.tagName === "SPAN" && body.childElementCount === 1) node.replaceChildren(...body.firstElementChild.childNodes);
    else node.replaceChildren(body);
  }
  const math = document.getElementById("katex");
  if (math) loadMath(math.dataset).then(() => typeset(root));
}

renderTexts();
