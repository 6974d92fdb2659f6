// Talks to the server and sorts its answers (done, refused for good, to be tried again), and brings to it what the store
// holds.

const cookie = (name) => document.cookie.split("; ").find((one) => one.startsWith(`${name}=`))?.slice(name.length + 1) ?? "";

export class Unreachable extends Error {} // no network, no server, 5xx: try again
export class LoggedOut extends Error {} // the session ended: the person must log in again
export class Refused extends Error {
  constructor(status, answer) {
    super(answer?.message ?? `HTTP ${status}`);
    this.status = status;
    this.answer = answer ?? {};
  }
}

async function answerOf(response) {
  if (response.type === "opaqueredirect" || response.status === 401) throw new LoggedOut();
  if (response.status >= 500 || response.status === 429) throw new Unreachable(`HTTP ${response.status}`);
  const answer = await response.json().catch(() => null);
  if (response.status === 403 && answer?.code !== "forbidden") throw new LoggedOut(); // the CSRF token is of an older login
  if (!response.ok) throw new Refused(response.status, answer);
  return answer;
}

async function ask(url, options) {
  let response;
  try {
    response = await fetch(url, { credentials: "same-origin", redirect: "manual", signal: AbortSignal.timeout(10_000), ...options });
  } catch (error) {
    throw new Unreachable(error.message);
  }
  return answerOf(response);
}

export const get = (url) => ask(url, { headers: { Accept: "application/json" } });

export const post = (url, body, more = {}) =>
  ask(url, {
    ...more,
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "application/json", "X-CSRFToken": cookie("csrftoken") },
    body: JSON.stringify(body),
  });

// Brings what the store holds to the server: at most one request in flight, at most one a second, in order.
// An item is a write or a farewell (submit, skip, give up, report) of one assignment. An item leaves the store only
// when the server has answered for it; sending one twice does no harm, the server knows (client, sequence).

const PAUSE = 1000;
const LONGEST_WAIT = 30_000;
const LOCK = "stepmark-outbox";

const byAssignment = (items) => {
  const groups = new Map();
  for (const item of items) groups.set(item.assignment, [...(groups.get(item.assignment) ?? []), item]);
  return [...groups.values()];
};

export class Outbox extends EventTarget {
  #sending = false;
  #addedWhileSending = false; // while a sending was at its end: it knows nothing of that
  #timer = null;
  #wait = PAUSE;
  #sentAt = -Infinity;
  #writing = Promise.resolve();
  #beingWritten = 0; // kept by the hand, not yet by the disk
  #trouble = null; // why the last attempt came to nothing

  constructor(store, { client, urlOf }) {
    super();
    this.store = store;
    this.client = client;
    this.urlOf = urlOf;
    this.sequence = 0;
    this.versions = new Map();
    this.state = "saved";
    this.clients = new Set([client]); // whose writes stand on this page
    this.tabs = new BroadcastChannel(LOCK);
    this.tabs.onmessage = ({ data }) => this.#heard(data);
    addEventListener("online", () => this.hurry());
    addEventListener("pageshow", () => this.hurry());
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && this.hurry());
  }

  // Into the store first, and in the order given; then the network may know.
  keep(assignment, what) {
    const item = {
      assignment,
      client: this.client,
      sequence: ++this.sequence,
      seen: this.versions.get(assignment) ?? 0,
      made_at: new Date().toISOString(),
      ...what,
    };
    this.#beingWritten += 1;
    this.#addedWhileSending = true;
    if (!this.#trouble) this.#say({ state: "saving", waiting: this.#beingWritten, detail: "" });
    this.#writing = this.#writing.catch(() => {}).then(() => this.store.put(item)).finally(() => (this.#beingWritten -= 1));
    this.#writing.then(() => this.#tell(this.#trouble ?? "saving"), (error) => this.#tell("broken", error.message));
    this.#later();
    return this.#writing;
  }

  // Resolves when all that was kept so far is in the store, or the store has refused it.
  written() {
    return this.#writing.catch(() => {});
  }

  knows(assignment, version) {
    this.versions.set(assignment, Math.max(version, this.versions.get(assignment) ?? 0));
  }

  hurry() {
    this.#wait = PAUSE;
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#run();
  }

  #later(wait = Math.max(0, this.#sentAt + PAUSE - performance.now())) {
    if (this.#timer === null && !this.#sending) {
      this.#timer = setTimeout(() => {
        this.#timer = null;
        this.#run();
      }, wait);
    }
  }

  // One tab sends at a time where the browser can say so; elsewhere the server's memory of sequences is enough.
  #run() {
    if (this.#sending) {
      this.#addedWhileSending = true;
      return;
    }
    this.#sending = true;
    this.#addedWhileSending = false;
    const send = () => this.#sendAll();
    const sending = navigator.locks ? navigator.locks.request(LOCK, send) : send();
    sending
      .catch((error) => this.#failed(error))
      .then((again) => {
        this.#sending = false;
        if (again) this.#later(this.#wait);
        else if (this.#addedWhileSending) this.#later();
      });
  }

  async #sendAll() {
    await this.written();
    const items = await this.store.all();
    for (const group of byAssignment(items)) {
      this.#tell("saving");
      await this.#sendGroup(group);
    }
    this.#wait = PAUSE;
    this.#trouble = null;
    const left = (await this.store.all()).length + this.#beingWritten;
    await this.#tell(left ? "saving" : "saved");
    return left > 0;
  }

  // Writes up to and with the farewell go in one request. Items of another tab keep that tab's client id.
  async #sendGroup(group) {
    const client = group[0].client;
    const farewell = group.find((item) => item.client === client && item.verb);
    const mine = group.filter((item) => item.client === client && (!farewell || item.id <= farewell.id));
    const writes = mine.filter((item) => !item.verb);
    this.#sentAt = performance.now();
    const body = { client, writes: writes.map(({ id, assignment, client: _, ...write }) => write), ...farewell?.body };
    const { assignment } = group[0];
    const verb = farewell?.verb ?? "record";
    const answer = await this.#ask(assignment, verb, body, mine);
    if (answer) this.#routeAnswer({ client, assignment, answer, writes, verb });
    await this.store.drop(mine.map((item) => item.id));
  }

  async #ask(assignment, verb, body, items) {
    try {
      return await post(this.urlOf(assignment, verb), body);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.dispatchEvent(new CustomEvent("refused", { detail: { assignment, verb, error, items } }));
      return null; // refused for good: the page shows what it was; sending it again would change nothing
    }
  }

  // One tab may bring what another wrote. What came of it, and what can be seen since, is that tab's to know.
  #routeAnswer(told) {
    if (this.clients.has(told.client)) this.#heard(told);
    else this.tabs.postMessage(told);
  }

  #heard({ client, assignment, answer, writes, verb }) {
    if (!this.clients.has(client)) return;
    if (answer.version !== undefined) this.knows(assignment, answer.version);
    this.dispatchEvent(new CustomEvent("answer", { detail: { assignment, answer, writes, verb } }));
  }

  async #failed(error) {
    const state = error instanceof LoggedOut ? "logged-out" : error instanceof Unreachable ? "waiting" : "broken";
    this.#wait = Math.min(LONGEST_WAIT, this.#wait * 2);
    this.#trouble = state;
    await this.#tell(state, error.message);
    return true;
  }

  async #tell(state, detail = "") {
    const waiting = (await this.store.all()).filter((item) => item.kind === "rate" || item.kind === "undo").length;
    this.#say({ state: state === "saved" && this.#beingWritten ? "saving" : state, waiting, detail });
  }

  #say(told) {
    this.state = told.state;
    this.dispatchEvent(new CustomEvent("state", { detail: told }));
  }
}
