// Pages other than the work page: send the ratings that a closed work page has left in this browser, and say so.
// The server's refusals are left to a work page, which shows the trace and the reason.

const note = document.getElementById("waiting-labels");
const QUIET_MS = 3000; // an annotator who has just left the work page need not read that its last ratings are being sent

// Call `found` if the store has items. A store that does not exist is not created.
function ifWaiting(found) {
  const opening = indexedDB.open(`stepmark-${note.dataset.user}`);
  opening.onupgradeneeded = () => opening.transaction.abort();
  opening.onerror = (event) => event.preventDefault();
  opening.onsuccess = () => {
    const { result: database } = opening;
    database.onversionchange = () => database.close();
    if (!database.objectStoreNames.contains("items")) return database.close();
    const counting = database.transaction("items").objectStore("items").count();
    counting.onsuccess = () => {
      database.close();
      if (counting.result) found();
    };
    return undefined;
  };
}

async function sendWaiting() {
  const [{ Store }, network] = await Promise.all([import("./work/store.js"), import("./work/network.js")]);
  const { LOCK, Refused, buildMessage, groupByAssignment, openClients, post } = network;
  const store = await Store.open(note.dataset.user);
  const tabs = new BroadcastChannel(LOCK);
  const urlOf = ({ assignment, verb }) => note.dataset.url.replace("/0/record", `/${assignment}/${verb.replace("_", "-")}`);

  // Open work pages send their own items.
  async function listLeft() {
    const open = await openClients();
    return (await store.all()).filter((item) => !open.has(item.client));
  }

  async function sendGroup(items) {
    let rest = items;
    while (rest.length) {
      const message = buildMessage(rest);
      await post(urlOf(message), message.body); // in order
      tabs.postMessage({ changed: message.assignment });
      await store.drop(message.items.map(({ id }) => id));
      rest = rest.filter((item) => !message.items.includes(item));
    }
  }

  async function sendAll() {
    const left = await listLeft();
    if (!left.length) return;
    const [{ page }] = left;
    const timer = setTimeout(() => show("waiting", page), QUIET_MS);
    try {
      for (const group of groupByAssignment(left)) {
        await sendGroup(group).catch((error) => {
          if (!(error instanceof Refused)) throw error;
        });
      }
      const refused = await listLeft();
      if (refused.length) show("refused", refused[0].page);
      else if (!note.hidden) show("sent");
    } catch {
      show("waiting", page); // no network, or logged out
    } finally {
      clearTimeout(timer);
    }
  }

  await (navigator.locks ? navigator.locks.request(LOCK, sendAll) : sendAll());
}

// `page`: the work page from which the items come.
function show(state, page) {
  note.dataset.state = state;
  note.hidden = false;
  for (const text of note.querySelectorAll("p")) text.hidden = text.dataset.slot !== state;
  const link = note.querySelector("[data-slot=work]");
  link.hidden = state === "sent" || !page;
  if (page) link.href = page;
}

const send = () => ifWaiting(() => sendWaiting().catch(() => {})); // the modules did not load: the next page tries again
addEventListener("online", send);
send();
