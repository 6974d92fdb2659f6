// Requests to the server, and the outbox that sends it the items of the store.
// Answers are sorted into done, refused permanently, and to be retried.

const cookie = (name) => document.cookie.split("; ").find((one) => one.startsWith(`${name}=`))?.slice(name.length + 1) ?? "";
// The prefix is there over TLS.
const csrfToken = () => cookie("__Host-csrftoken") || cookie("csrftoken");

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
    headers: { "Content-Type": "application/json", Accept: "application/json", "X-CSRFToken": csrfToken() },
    body: JSON.stringify(body),
  });

// Sends the store's items to the server in order: at most one request at a time. Edits are gathered; an ending is sent at
// once, with the edits before it, and so are all items when the page is hidden or left.
// An item is an edit of an assignment, or its ending (submit, skip, give up, report, discard). An item stays in the store
// until the server has answered. Sending it twice is harmless: the server recognizes (client, sequence).

const MIN_INTERVAL_MS = 1000;
const GATHER_MS = 20_000; // the server gets an edit within this time
const PAUSE_MS = 5_000; // or when the annotator has paused for so long
const MAX_WAIT_MS = 30_000;
const MAX_LIMITED_SECONDS = 300;
export const LOCK = "stepmark-outbox";
const PAGE_LOCK = "stepmark-page-"; // held by each page, under its client ID, until it is closed

export const groupByAssignment = (items) => {
  const groups = new Map();
  for (const item of items) groups.set(item.assignment, [...(groups.get(item.assignment) ?? []), item]);
  return [...groups.values()];
};

// Return the next message about an assignment: the edits of one client, up to and including its ending. Items of a closed
// page keep its client ID.
export function buildMessage(group) {
  const [{ assignment, client }] = group;
  const ending = group.find((item) => item.client === client && item.verb);
  const items = group.filter((item) => item.client === client && (!ending || item.id <= ending.id));
  const writes = items.filter((item) => !item.verb);
  const body = { client, writes: writes.map(({ id, assignment: _, client: __, page, ...write }) => write), ...ending?.body };
  return { assignment, client, verb: ending?.verb ?? "record", ending, items, writes, body };
}

// Return the clients of all open work pages of this browser.
export async function openClients() {
  const { held = [] } = (await navigator.locks?.query()) ?? {};
  return new Set(held.map(({ name }) => name.slice(PAGE_LOCK.length)));
}

export class Outbox extends EventTarget {
  #sending = false;
  #isUrgent = false; // something waits that is not gathered
  #gatheredSince = null; // when the first of the gathered edits was made
  #timer = null;
  #riders = []; // questions that go with the next message about an assignment
  #tellingCount = 0; // refusals that the annotator is being told
  #wait = MIN_INTERVAL_MS;
  #sentAt = -Infinity;
  #storing = Promise.resolve();
  #storingCount = 0; // items being written to the store
  #reports = 0; // states reported so far
  #trouble = null; // state after a failed attempt
  #attempted = new Set(); // items of endings that may have reached the server

  #refused = new Set(); // items that the server refused, until the annotator has been told

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
    this.clients = new Set([client]); // clients whose edits this page shows: its own, and those of closed pages
    navigator.locks?.request(PAGE_LOCK + client, () => new Promise(() => {}));
    this.tabs = new BroadcastChannel(LOCK);
    this.tabs.onmessage = ({ data }) => {
      if (data.changed) this.#dispatchChange(data.changed);
      else if (data.attempted) this.#attempted.add(data.attempted);
      else this.#handleAnswer(data);
    };
    addEventListener("online", () => this.sendNow());
    addEventListener("pageshow", () => this.sendNow());
    // The annotator may go on with another tab or device.
    addEventListener("blur", () => this.#gatheredSince !== null && this.sendNow());
    document.addEventListener("visibilitychange", () => this.sendNow());
    addEventListener("pagehide", () => this.#sendCopies());
  }

  // Add an item to the store, in order; it is sent afterward.
  enqueue(assignment, content) {
    const item = {
      assignment,
      client: this.client,
      sequence: ++this.sequence,
      seen: this.versions.get(assignment) ?? 0,
      made_at: new Date().toISOString(),
      page: location.pathname, // another page of the site can link to it
      ...content,
    };
    this.#storingCount += 1;
    // Without a store, only the server can keep it.
    if (item.verb || !this.store.isPersistent) this.#isUrgent = true;
    this.#gatheredSince ??= performance.now();
    if (!this.#trouble) this.#dispatchState({ state: "saving", waiting: this.#storingCount, detail: "" });
    this.#storing = this.#storing.catch(() => {}).then(() => this.store.put(item)).finally(() => (this.#storingCount -= 1));
    this.#storing.then(() => this.#reportState(this.#trouble ?? this.#unsentState()), (error) => this.#reportState("broken", error.message));
    this.#schedule();
    return this.#storing;
  }

  #unsentState() {
    return this.#isUrgent || this.#sending || !this.store.isPersistent ? "saving" : "gathered";
  }

  // Put a question into the next message of this page about an assignment. Resolve to the answer, or to null if there is
  // no such message, or not soon: the caller then sends a request.
  ask(assignment, question) {
    if (this.#trouble || this.#tellingCount || !navigator.onLine) return Promise.resolve(null);
    return new Promise((resolve) => {
      this.#riders.push({ assignment, question, resolve });
      this.sendNow();
    });
  }

  // The ending says what the page shows: the server refuses it if the submission would differ.
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

  // Return the items that the server has not answered.
  async unanswered() {
    return (await this.store.all()).filter((item) => !this.#refused.has(item.id));
  }

  // Return this page's edits of a trace that the server does not have yet.
  async unsentEdits(assignment) {
    await this.whenStored();
    return (await this.unanswered()).filter((item) => item.assignment === assignment && !item.verb && this.clients.has(item.client));
  }

  // Return the clients of all open pages of this browser.
  async openPages() {
    return new Set([this.client, ...(await openClients())]);
  }

  // Take back an ending that the server does not have. Return "withdrawn", "sent", or "unclear": it was sent, but the
  // server answers neither the ending nor the question whether it has it.
  async withdrawEnding(assignment) {
    const withdraw = async () => {
      await this.whenStored();
      const isOwn = (item) => item.assignment === assignment && item.verb && this.clients.has(item.client);
      const endings = (await this.unanswered()).filter(isOwn);
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
    this.#isUrgent = true;
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#send();
  }

  // Send as soon as allowed, or gather edits. After a failure, wait longer each time.
  #schedule() {
    if (this.#sending || (this.#trouble && this.#timer !== null)) return;
    const now = performance.now();
    const pause = Math.min(PAUSE_MS, this.#gatheredSince + GATHER_MS - now);
    const wait = this.#trouble ? this.#wait : Math.max(0, this.#sentAt + MIN_INTERVAL_MS - now, this.#isUrgent ? 0 : pause);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#send();
    }, wait);
  }

  // Where the browser supports locks, one tab sends at a time; elsewhere the server ignores duplicates.
  #send() {
    if (this.#sending) return;
    this.#sending = true;
    this.#isUrgent = false;
    this.#gatheredSince = null;
    const riders = [...this.#riders]; // later ones ride with what is sent later
    const send = () => this.#sendAll();
    const sending = navigator.locks ? navigator.locks.request(LOCK, send) : send();
    sending
      .catch((error) => this.#handleFailure(error))
      .then((isDone) => {
        this.#sending = false;
        this.#answerRiders(this.#trouble ? this.#riders : riders, null);
        // Edits may have been made since the store was read.
        if (!isDone || this.#gatheredSince !== null || this.#riders.length) this.#schedule();
        else this.#isUrgent = false;
      });
  }

  #answerRiders(riders, answer) {
    for (const rider of riders) rider.resolve(answer);
    this.#riders = this.#riders.filter((rider) => !riders.includes(rider));
  }

  // The page goes away, and may not live until the store answers. The store keeps the items; sending them again is
  // harmless.
  #sendCopies() {
    for (const group of groupByAssignment(this.store.copies())) {
      if (group.some((item) => item.verb)) continue; // is being sent
      const { assignment, body } = buildMessage(group);
      post(this.urlOf(assignment, "record"), body, { keepalive: true }).catch(() => {});
    }
  }

  // Return whether nothing is left to send.
  async #sendAll() {
    await this.whenStored();
    const items = await this.store.all();
    for (const group of groupByAssignment(items)) {
      this.#reportState("saving");
      await this.#sendGroup(group);
    }
    this.#wait = MIN_INTERVAL_MS;
    this.#trouble = null;
    const left = await this.store.all();
    if (left.some((item) => item.verb)) this.#isUrgent = true;
    if (left.length) this.#gatheredSince ??= performance.now();
    const isDone = left.length + this.#storingCount === 0;
    await this.#reportState(isDone ? "saved" : this.#isUrgent ? "saving" : "gathered");
    return isDone;
  }

  // Send the edits up to and including the ending in one request.
  async #sendGroup(group) {
    const { assignment, client, verb, ending, items: batch, writes, body } = buildMessage(group);
    this.#sentAt = performance.now();
    const riders = client === this.client ? this.#riders.filter((rider) => rider.assignment === assignment) : [];
    const questions = Object.assign({}, ...riders.map((rider) => rider.question));
    if (ending) this.#noteAttempt(ending.id);
    const ids = batch.map((item) => item.id);
    try {
      const answer = await post(this.urlOf(assignment, verb), { ...body, ...questions });
      this.#answerRiders(riders, answer);
      this.#routeAnswer({ client, assignment, answer, writes, verb });
      this.tabs.postMessage({ changed: assignment });
      await this.store.drop(ids);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      // Telling waits for the trace that is arriving, and nothing is sent until then: no question may wait for a message.
      this.#tellingCount += 1;
      this.#answerRiders(this.#riders, null);
      // If the page closes before the annotator has been told, another page sends the items again, and tells it.
      const telling = [];
      for (const id of ids) this.#refused.add(id);
      const detail = { assignment, verb, error, items: batch, until: (told) => telling.push(told) };
      this.dispatchEvent(new CustomEvent("refused", { detail }));
      await Promise.allSettled(telling);
      this.#tellingCount -= 1;
      await this.store.drop(ids);
    }
  }

  // A page without a network sends nothing.
  #noteAttempt(id) {
    if (!navigator.onLine) return;
    this.#attempted.add(id);
    this.tabs.postMessage({ attempted: id });
  }

  // A tab may send another tab's items; that tab then gets the answer, and this one has something new to show.
  #routeAnswer(message) {
    this.tabs.postMessage(message);
    if (this.clients.has(message.client)) this.#handleAnswer(message);
    else this.#dispatchChange(message.assignment);
  }

  #handleAnswer({ client, assignment, answer, writes, verb }) {
    if (!this.clients.has(client)) return;
    const isBehind = answer.version !== undefined && this.#noteAnswer(assignment, answer);
    this.dispatchEvent(new CustomEvent("answer", { detail: { assignment, answer, writes, verb } }));
    // Edits of a closed page may have been overruled since, by that page too.
    if (isBehind || answer.is_late || client !== this.client) this.#dispatchChange(assignment);
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
    return false;
  }

  async #reportState(state, detail = "") {
    const report = (this.#reports += 1);
    // The number is not shown for gathered edits: each key would read all of them from the store.
    const waiting = state === "gathered" ? 0 : (await this.store.all()).filter((item) => item.kind === "rate" || item.kind === "undo").length;
    if (report !== this.#reports) return; // a later state has been reported meanwhile
    const isSaved = state === "saved";
    this.#dispatchState({ state: isSaved && this.#storingCount ? "saving" : isSaved && this.drafts ? "draft" : state, waiting, detail });
  }

  #dispatchState(detail) {
    this.state = detail.state;
    this.dispatchEvent(new CustomEvent("state", { detail: { ...detail, isPersistent: this.store.isPersistent } }));
  }
}
