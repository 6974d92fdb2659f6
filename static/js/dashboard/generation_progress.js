// Follows a running generation: asks for its panel each second and puts it in place; when it has ended, the page anew.

const EVERY = 1000;

async function follow() {
  const panel = document.querySelector("[data-follow]");
  if (!panel) return;
  try {
    const answer = await fetch(panel.dataset.follow, { headers: { Accept: "text/html" } });
    if (answer.ok) replace(panel, await answer.text());
  } catch {
    // no network: the next try may find one
  }
  setTimeout(follow, EVERY);
}

function replace(panel, html) {
  const fresh = new DOMParser().parseFromString(html, "text/html").getElementById("generation");
  if (fresh.hasAttribute("data-ended")) {
    location.reload();
    return;
  }
  // Only what moves: a button that somebody is about to press stays where it is.
  for (const what of [".chain", "progress", "[data-left]"]) panel.querySelector(what).replaceWith(fresh.querySelector(what));
}

setTimeout(follow, EVERY);
