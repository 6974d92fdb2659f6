// What a device shows and tells its person, read by tests/faults/devices.py. It is added before the page's own scripts.

(() => {
  // Each page has its own log, because two tabs that write the same one at once would lose entries.
  const KEY = `told.${performance.timeOrigin}.${Math.random()}`;
  const read = (key) => JSON.parse(localStorage.getItem(key) ?? "[]");
  const log = () => Object.keys(localStorage).filter((key) => key.startsWith("told.")).sort().flatMap(read);

  // Everything that tells of a conflict: notices, ratings of another device, and each trace that appears, with the number
  // of the tab.
  const tell = (kind, assignment) => localStorage.setItem(KEY, JSON.stringify([...read(KEY), [kind, Number(assignment), globalThis.deviceNumber]]));
  const noticeOf = (node) => node.closest?.("[data-notice]");
  new MutationObserver((records) => {
    for (const node of records.flatMap((record) => [...record.addedNodes])) {
      if (noticeOf(node)?.dataset.assignment) tell(noticeOf(node).dataset.notice, noticeOf(node).dataset.assignment);
      if (node.matches?.(".step__lost")) tell("lost", node.closest("[data-assignment]").dataset.assignment);
      if (node.matches?.("#stage > .trace")) tell(document.querySelector("[data-correction]") ? "corrected" : "opened", node.dataset.assignment);
    }
  }).observe(document, { childList: true, subtree: true });

  const cellOf = (row) => {
    const checked = row.querySelector(".rate input:checked");
    const comment = row.querySelector("[data-slot=comment]");
    const missing = row.querySelector("[data-slot=missing]");
    return {
      rating: checked ? Number(checked.value) : null,
      flagged: !row.querySelector("[data-slot=unsure]").hidden,
      comment: comment.hidden ? "" : row.querySelector("[data-slot=comment-text]").textContent.slice(1, -1),
      category: "",
      severity: null,
      reason: "",
      written: "",
      missing: missing.hidden ? "" : /\w+$/.exec(missing.textContent)[0],
      clauses: [...row.querySelectorAll("[data-clause]")].map((node) => node.dataset.clause).join(" "),
      answers: "",
    };
  };

  // The answers to the questions on the whole trace, as a cell of no step.
  const answersOf = (trace) =>
    [...trace.querySelectorAll(".question")]
      .map((field) => [field.dataset.question, (field.querySelector("input:checked") ?? field.querySelector("textarea"))?.value])
      .filter(([, value]) => value)
      .sort()
      .map((pair) => pair.join("="))
      .join(" ");

  const shown = () => {
    const trace = document.querySelector("#stage .trace");
    const submit = document.getElementById("submit");
    const cells = {};
    for (const row of trace?.querySelectorAll(".step[data-stop]") ?? []) cells[row.dataset.stop] = cellOf(row);
    for (const box of trace?.querySelectorAll(".errorbox") ?? []) {
      const cell = cells[`${box.dataset.step}.0`];
      cell.category = [...box.querySelectorAll("[name^=category]:checked")].map((input) => input.value).join(" ");
      cell.severity = Number(box.querySelector("[name^=severity]:checked")?.value) || null;
      cell.reason = box.querySelector("[name=reason]").value;
      cell.written = box.querySelector("[name=corrected]").value;
    }
    if (trace) cells["-1.9"] = { rating: null, flagged: false, comment: "", category: "", severity: null, reason: "", written: "", missing: "", clauses: "", answers: answersOf(trace) };
    const ask = document.getElementById("ask");
    const number = Number(/\d+/.exec(ask?.querySelector("label span").textContent)?.[0]);
    const commented = document.querySelector(`.step[data-number="${number}"]`)?.dataset.stop;
    // Leaving the trace saves a comment or an omission that is being written.
    if (commented && !ask.hidden && ask.dataset.saved !== "false") cells[commented][ask.dataset.saved] = ask.querySelector("textarea").value;
    return {
      ready: document.documentElement.dataset.ready ?? "",
      assignment: trace && Number(trace.dataset.assignment),
      isDead: trace !== null && document.querySelector(".dock")?.dataset.dead === "true",
      isCorrection: document.querySelector("[data-correction]") !== null,
      isLit: document.querySelector(".step.is-now") !== null,
      canSubmit: trace !== null && submit?.getAttribute("aria-disabled") === "false",
      code: submit?.dataset.state,
      save: document.getElementById("save")?.dataset.state,
      prompt: ask?.hidden === false,
      boxes: [...(trace?.querySelectorAll(".errorbox") ?? [])].map((box) => Number(box.dataset.step)),
      cells,
    };
  };

  // Press a key, and return what was shown at that moment.
  const press = (key, shiftKey = false) => {
    const before = shown();
    const target = document.activeElement?.matches("input[type=text], textarea") ? document.body : document.activeElement;
    (target ?? document.body).dispatchEvent(new KeyboardEvent("keydown", { key, shiftKey, bubbles: true, cancelable: true }));
    return before;
  };

  // Press a key in the field below the trace, unless the page has closed it meanwhile. Return what was shown, else null.
  const answer = (key, text = null) => {
    const before = shown();
    const field = document.querySelector("#ask textarea");
    if (!before.prompt || before.isDead) return null;
    if (text !== null) field.value = text;
    field.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    return before;
  };

  globalThis.device = { shown, press, answer, log };
})();
