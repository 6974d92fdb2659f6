// What `bench.live_options` watches from inside the page: how long a choice waits for the next options on the screen.

(() => {
  const bench = (globalThis.bench = { waits: [] });
  let sent = null;

  addEventListener(
    "keydown",
    (event) => {
      const stage = document.getElementById("stage");
      if (event.key === "Enter" && stage) sent = { at: event.timeStamp, position: stage.dataset.position };
    },
    { capture: true },
  );

  new MutationObserver(() => {
    const stage = document.getElementById("stage");
    if (!sent || !stage || stage.dataset.position === sent.position || !document.getElementById("options")) return;
    const { at } = sent;
    sent = null;
    requestAnimationFrame(() => bench.waits.push(performance.now() - at));
  }).observe(document, { childList: true, subtree: true });
})();
