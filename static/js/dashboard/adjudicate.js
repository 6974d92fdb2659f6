// Keys for deciding, as on the annotator's page. Without this the radio buttons do the same.

const form = document.querySelector("[data-adjudicate]");

const isTyping = (node) => node.closest("textarea, input:not([type=radio], [type=checkbox]), select");

function start() {
  const rows = [...form.querySelectorAll("tr[data-step]")];
  let now = Math.max(0, rows.findIndex((row) => row.classList.contains("is-first-split")));

  const light = (index, { scroll = true } = {}) => {
    now = Math.min(Math.max(index, 0), rows.length - 1);
    for (const [number, row] of rows.entries()) row.classList.toggle("is-now", number === now);
    // In the middle, where what stands before and after can be read too; a step that fills the page from its beginning.
    if (scroll) rows[now].scrollIntoView({ block: rows[now].offsetHeight < innerHeight / 2 ? "center" : "start" });
  };
  // To the next step on which readings differ, or one alone sees the error: the others need no decision. Then the finding.
  const pass = () => {
    const next = rows.findIndex((row, number) => number > now && row.classList.contains("is-open"));
    light(next < 0 ? rows.length - 1 : next);
  };
  const choose = (value) => {
    const radio = form.querySelector(`input[name=first_error][value="${CSS.escape(value)}"]`);
    if (!radio) return;
    radio.checked = true;
    light(rows.findIndex((row) => row.contains(radio)));
  };
  const copySubmission = (letter) => {
    const voice = form.querySelector(`[data-voice="${CSS.escape(letter)}"]`);
    if (voice?.dataset.firstError) choose(voice.dataset.firstError);
    return Boolean(voice);
  };

  const keys = {
    1: () => choose(rows[now].querySelector("input[name=first_error]").value),
    3: pass,
    0: () => choose("none"),
    n: () => form.elements.note.focus(),
    g: () => form.elements.becomes_gold.click(),
    j: () => light(now + 1),
    k: () => light(now - 1),
    ArrowDown: () => light(now + 1),
    ArrowUp: () => light(now - 1),
    x: () => form.requestSubmit(form.querySelector("[data-send-back]")),
    Enter: () => form.requestSubmit(form.querySelector("[data-decide]")),
  };

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && form.contains(event.target)) event.target.blur();
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || isTyping(event.target)) return;
    if (event.key === "Enter" && event.target.closest("button, a, summary")) return;
    const act = keys[event.key];
    if (act) act();
    else if (!/^[a-i]$/.test(event.key) || !copySubmission(event.key)) return;
    event.preventDefault();
  });
  form.addEventListener("change", (event) => {
    const row = event.target.closest("tr[data-step]");
    if (row) light(rows.indexOf(row), { scroll: false });
  });
  form.querySelector("[data-keys]").hidden = false;
  light(now, { scroll: false });
  form.dataset.ready = "";
}

if (form) start();
