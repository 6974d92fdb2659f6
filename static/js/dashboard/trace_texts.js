// Texts of traces on pages for reading: what stands there as plain text gets its formulas and code.

import { answerBody, loadMath, problemBody, typeset } from "../work/rendering.js";

export function renderTexts(root = document) {
  for (const node of root.querySelectorAll("[data-text]")) {
    const body = (node.dataset.text === "answer" ? answerBody : problemBody)(node.textContent);
    // In a line of other words the text stays in that line.
    if (node.tagName === "SPAN" && body.childElementCount === 1) node.replaceChildren(...body.firstElementChild.childNodes);
    else node.replaceChildren(body);
  }
  const maths = document.getElementById("katex");
  if (maths) loadMath(maths.dataset).then(() => typeset(root));
}

renderTexts();
