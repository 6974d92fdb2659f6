// Requests to the server, and the outbox that sends it the items of the store.
// Answers are sorted into done, refused permanently, and to be retried.

const cookie = (name) => document.cookie.split("; ").find((one) => one.startsWith(`${name}=`))?.slice(name.length + 1) ?? "";

export class Unreachable extends Error {} // no network, no server or 5xx: retry
export class Limited extends Unreachable {
  // too many changes at once: retry after these seconds
  constructor(seconds) {
    super("HTTP 429");
    this.seconds = seconds;
  }
}
export class LoggedOut extends Error {} // the session has ended
export class Refused extends Error {
  constructor(status, answer) {
    super(answer?.message ?? `HTTP ${status}`);
    this.status = status;
    this.answer = answer ?? {};
  }
}

async function readAnswer(response) {
  if (response.type === "opaqueredirect" || response.status === 401) throw new LoggedOut();
  if (response.status === 429) throw new Limited(Number(response.headers.get("Retry-After")) || 1);
  if (response.status >= 500) throw new Unreachable(`HTTP ${response.status}`);
  const answer = await response.json().catch(() => null);
  if (response.status === 403 && answer?.code !== "forbidden") throw new LoggedOut(); // the CSRF token is from an older login
  if (!response.ok) throw new Refused(response.status, answer);
  return answer;
}

async function request(url, options) {
  let response;
  try {
    response = await fetch(url, { credentials: "same-origin", redirect: "manual", signal: AbortSignal.timeout(10_000), ...options });
  } catch (error) {
    throw new Unreachable(error.message);
  }
  return readAnswer(response);
}

export const get = (url) => request(url, { headers: { Accept: "application/json" } });

export const post = (url, body, more = {}) =>
  request(url, {
    ...more,
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "application/json", "X-CSRFToken": cookie("csrftoken") },
    body: JSON.stringify(body),
  });

// Sends the store's items to the server in order: at most one request at a time and one per second.
// An item is an edit of an assignment, or its ending (submit, skip, give up, report, discard). An item stays in the store
// until the server has answered. Sending it twice is harmless: the server recognizes (client, sequence).

const MIN_INTERVAL_MS = 1000;
const MAX_WAIT_MS = 30_000;
const MAX_LIMITED_SECONDS = 300;
const LOCK = "stepmark-outbox";

const groupByAssignment = (items) => {
  const groups = new Map();
  for (const item of items) groups.set(item.assignment, [...(groups.get(item.assignment) ?? []), item]);
  return [...groups.values()];
};

export class Outbox extends EventTarget {
  #sending = false;
  #addedWhileSending = false;
  #timer = null;
  #wait = MIN_INTERVAL_MS;
  #sentAt = -Infinity;
  #storing = Promise.resolve();
  #storingCount = 0; // items being written to the store
  #trouble = null; // state after a failed attempt
  #attempted = new Set(); // items of endings that may have reached the server

  constructor(store, { client, urlOf }) {
    super();
    this.store = store;
    this.client = client;
    this.urlOf = urlOf;
    this.sequence = 0;
    this.versions = new Map(); // assignment -> version of the server's last answer
    this.shownVersions = new Map(); // assignment -> the page shows all edits up to this version
    this.drafts = 0; // texts being typed
    this.state = "saved";
    this.clients = new Set([client]); // clients whose edits this page shows
    this.tabs = new BroadcastChannel(LOCK);
    this.tabs.onmessage = ({ data }) => {
      if (data.changed) this.#dispatchChange(data.changed);
      else if (data.attempted) this.#attempted.add(data.attempted);
      else this.#handleAnswer(data);
    };
    addEventListener("online", () => this.sendNow());
    addEventListener("pageshow", () => this.sendNow());
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && this.sendNow());
  }

  // Add an item to the store, in order; it is sent afterwards.
  enqueue(assignment, content) {
    const item = {
      assignment,
      client: this.client,
      sequence: ++this.sequence,
      seen: this.versions.get(assignment) ?? 0,
      made_at: new Date().toISOString(),
      ...content,
    };
    this.#storingCount += 1;
    this.#addedWhileSending = true;
    if (!this.#trouble) this.#dispatchState({ state: "saving", waiting: this.#storingCount, detail: "" });
    this.#storing = this.#storing.catch(() => {}).then(() => this.store.put(item)).finally(() => (this.#storingCount -= 1));
    this.#storing.then(() => this.#reportState(this.#trouble ?? "saving"), (error) => this.#reportState("broken", error.message));
    this.#schedule();
    return this.#storing;
  }

  // The ending says what the page shows: the server refuses it if the submission would be another one.
  enqueueEnding(work, verb, body) {
    const { assignment, revision } = work.trace;
    work.confirmed = work.snapshot();
    const promise = { seen: this.shownVersions.get(assignment) ?? 0, ...work.promise() };
    return this.enqueue(assignment, { verb, body: { ...body, revision, promise } });
  }

  // Resolve when all items so far are in the store, or the store has refused them.
  whenStored() {
    return this.#storing.catch(() => {});
  }

  // The page shows the trace as it is in this version.
  noteShown(assignment, version) {
    this.versions.set(assignment, Math.max(version, this.versions.get(assignment) ?? 0));
    this.shownVersions.set(assignment, Math.max(version, this.shownVersions.get(assignment) ?? 0));
  }

  // Return whether another tab or device has edited the trace before the edits that are answered.
  #noteAnswer(assignment, { version, version_before: before }) {
    const shown = this.shownVersions.get(assignment) ?? 0;
    this.versions.set(assignment, Math.max(version, this.versions.get(assignment) ?? 0));
    if (before > shown) return true;
    this.shownVersions.set(assignment, Math.max(version, shown));
    return false;
  }

  noteDrafts(count) {
    if (count === this.drafts) return;
    this.drafts = count;
    if (["saved", "draft"].includes(this.state)) this.#reportState("saved");
  }

  // Return the edits of a trace that the server does not have yet.
  async unsentEdits(assignment) {
    await this.whenStored();
    return (await this.store.all()).filter((item) => item.assignment === assignment && !item.verb);
  }

  // Take back an ending that the server does not have. Return "withdrawn", "sent", or "unclear" if it was sent, and the
  // server answers neither that nor the question whether it has it.
  async withdrawEnding(assignment) {
    const withdraw = async () => {
      await this.whenStored();
      const endings = (await this.store.all()).filter((item) => item.assignment === assignment && item.verb);
      if (endings.some((item) => this.#attempted.has(item.id))) {
        const content = await get(this.urlOf(assignment, "content")).catch(() => null);
        if (!content || content.is_submitted) return content ? "sent" : "unclear";
      }
      await this.store.drop(endings.map((item) => item.id));
      return endings.length ? "withdrawn" : "sent";
    };
    return navigator.locks ? navigator.locks.request(LOCK, withdraw) : withdraw();
  }

  sendNow() {
    this.#wait = MIN_INTERVAL_MS;
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#send();
  }

  #schedule(wait = Math.max(0, this.#sentAt + MIN_INTERVAL_MS - performance.now())) {
    if (this.#timer === null && !this.#sending) {
      this.#timer = setTimeout(() => {
        this.#timer = null;
        this.#send();
      }, wait);
    }
  }

  // Where the browser supports locks, one tab sends at a time; elsewhere the server ignores duplicates.
  #send() {
    if (this.#sending) {
      this.#addedWhileSending = true;
      return;
    }
    this.#sending = true;
    this.#addedWhileSending = false;
    const send = () => this.#sendAll();
    const sending = navigator.locks ? navigator.locks.request(LOCK, send) : send();
    sending
      .catch((error) => this.#handleFailure(error))
      .then((again) => {
        this.#sending = false;
        if (again) this.#schedule(this.#wait);
        else if (this.#addedWhileSending) this.#schedule();
      });
  }

  async #sendAll() {
    await this.whenStored();
    const items = await this.store.all();
    for (const group of groupByAssignment(items)) {
      this.#reportState("saving");
      await this.#sendGroup(group);
    }
    this.#wait = MIN_INTERVAL_MS;
    this.#trouble = null;
    const left = (await this.store.all()).length + this.#storingCount;
    await this.#reportState(left ? "saving" : "saved");
    return left > 0;
  }

  // Send the edits up to and including the ending in one request. Items of another tab keep that tab's client ID.
  async #sendGroup(group) {
    const client = group[0].client;
    const ending = group.find((item) => item.client === client && item.verb);
    const batch = group.filter((item) => item.client === client && (!ending || item.id <= ending.id));
    const writes = batch.filter((item) => !item.verb);
    this.#sentAt = performance.now();
    const body = { client, writes: writes.map(({ id, assignment, client: _, ...write }) => write), ...ending?.body };
    if (ending) this.#noteAttempt(ending.id);
    const { assignment } = group[0];
    const verb = ending?.verb ?? "record";
    const answer = await this.#post(assignment, verb, body, batch);
    if (answer) {
      this.#routeAnswer({ client, assignment, answer, writes, verb });
      this.tabs.postMessage({ changed: assignment });
    }
    await this.store.drop(batch.map((item) => item.id));
  }

  // A page without a network sends nothing.
  #noteAttempt(id) {
    if (!navigator.onLine) return;
    this.#attempted.add(id);
    this.tabs.postMessage({ attempted: id });
  }

  async #post(assignment, verb, body, items) {
    try {
      return await post(this.urlOf(assignment, verb), body);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.dispatchEvent(new CustomEvent("refused", { detail: { assignment, verb, error, items } }));
      return null; // refused permanently: sending it again would not help
    }
  }

  // A tab may send another tab's items; that tab then gets the answer.
  #routeAnswer(message) {
    if (this.clients.has(message.client)) this.#handleAnswer(message);
    else this.tabs.postMessage(message);
  }

  #handleAnswer({ client, assignment, answer, writes, verb }) {
    if (!this.clients.has(client)) return;
    const isBehind = answer.version !== undefined && this.#noteAnswer(assignment, answer);
    this.dispatchEvent(new CustomEvent("answer", { detail: { assignment, answer, writes, verb } }));
    if (isBehind || answer.is_late) this.#dispatchChange(assignment);
  }

  // Another tab or device has edited or submitted the trace.
  #dispatchChange(assignment) {
    this.dispatchEvent(new CustomEvent("changed", { detail: { assignment } }));
  }

  async #handleFailure(error) {
    const isLimited = error instanceof Limited;
    const state = error instanceof LoggedOut ? "logged-out" : isLimited ? "limited" : error instanceof Unreachable ? "waiting" : "broken";
    this.#wait = isLimited ? 1000 * Math.min(error.seconds, MAX_LIMITED_SECONDS) : Math.min(MAX_WAIT_MS, this.#wait * 2);
    this.#trouble = state;
    await this.#reportState(state, error.message);
    return true;
  }

  async #reportState(state, detail = "") {
    const waiting = (await this.store.all()).filter((item) => item.kind === "rate" || item.kind === "undo").length;
    const isSaved = state === "saved";
    this.#dispatchState({ state: isSaved && this.#storingCount ? "saving" : isSaved && this.drafts ? "draft" : state, waiting, detail });
  }

  #dispatchState(detail) {
    this.state = detail.state;
    this.dispatchEvent(new CustomEvent("state", { detail: { ...detail, isPersistent: this.store.isPersistent } }));
  }
}
