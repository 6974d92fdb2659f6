// Select all traces of a page at once. The list is replaced by each search, so events are handled on the document.

function reveal() {
  for (const box of document.querySelectorAll("[data-select-all][hidden]")) {
    box.hidden = false;
    box.nextElementSibling.hidden = false;
  }
}

document.addEventListener("change", ({ target }) => {
  if (!target.matches?.("[data-select-all]")) return;
  for (const box of target.form.querySelectorAll("input[name=trace]")) box.checked = target.checked;
});
new MutationObserver(reveal).observe(document.getElementById("main") ?? document.body, { childList: true, subtree: true });
reveal();
