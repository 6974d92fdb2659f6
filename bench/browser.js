// What `bench.browser` watches from inside the page: how long a key press waits for its paint, how long a submit waits
// for the next trace, and how fast this machine is just now.

(() => {
  const told = (globalThis.bench = { keys: [], swaps: [], sent: 0 });

  // A press that is not reported took less than the shortest duration that Event Timing reports.
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      if (entry.name === "keydown") told.keys.push(entry.duration);
    }
  }).observe({ type: "event", durationThreshold: 16, buffered: true });

  addEventListener(
    "keydown",
    (event) => {
      if (event.key === "Enter") told.sent = event.timeStamp;
    },
    { capture: true },
  );

  const painted = (done) =>
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = done; // the first task after the frame was made
      port2.postMessage(0);
    });

  new MutationObserver(() => {
    told.readyAt ??= performance.now();
    if (!told.sent) return;
    const { sent } = told;
    told.sent = 0;
    painted(() => told.swaps.push(performance.now() - sent));
  }).observe(document, { attributes: true, subtree: true, attributeFilter: ["data-ready"] });

  // The same work each time: what it takes says what else the machine does.
  told.calibrate = () => {
    const began = performance.now();
    let x = 1;
    for (let n = 0; n < 2e6; n += 1) x = (x * 48271) % 2147483647;
    told.x = x;
    return performance.now() - began;
  };
})();
