// What says `data-refresh="3"` is asked for anew every three seconds, as long as it says so and nobody is in it.

const node = () => document.querySelector("[data-refresh]");

async function refresh() {
  const old = node();
  if (!old) return;
  if (!document.hidden && !old.contains(document.activeElement)) {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } }).catch(() => null);
    if (answer?.ok) {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById(old.id);
      if (fresh && !old.contains(document.activeElement)) old.replaceWith(fresh);
    }
  }
  wait();
}

function wait() {
  const found = node();
  if (found) setTimeout(refresh, Number(found.dataset.refresh) * 1000);
}

wait();
