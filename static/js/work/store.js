// The browser's store (IndexedDB). Edits are written here first and stay until the server has them.
// If the browser cannot store them (private mode, full or failing disk), they are kept in memory: `isPersistent` is false.

const NAME = "stepmark";
const VERSION = 2;

const requestDone = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

const transactionDone = (work) =>
  new Promise((resolve, reject) => {
    work.oncomplete = resolve;
    work.onabort = work.onerror = () => reject(work.error);
  });

// A failing disk, or another page that blocks the database, never answers. A timeout counts as a refusal.
const TIMEOUT_MS = 2500;
const OPEN_TIMEOUT_MS = 5000; // a busy machine opens the database slowly

const withTimeout = (answering, timeout = TIMEOUT_MS) => {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error("the store does not answer")), timeout);
  });
  return Promise.race([answering, late]).finally(() => clearTimeout(timer));
};

async function openDatabase(user) {
  const opening = indexedDB.open(`${NAME}-${user}`, VERSION);
  opening.onupgradeneeded = () => {
    const { result: database } = opening;
    if (!database.objectStoreNames.contains("items")) {
      database.createObjectStore("items", { keyPath: "id", autoIncrement: true }).createIndex("assignment", "assignment");
    }
    database.createObjectStore("drafts", { keyPath: "key" });
  };
  return requestDone(opening);
}

// Higher than all IDs of the database: items in memory are newer than items in the database.
const FIRST_MEMORY_ID = 2 ** 50;

const itemKey = ({ client, sequence }) => `${client}.${sequence}`;

export class Store {
  #memory = []; // items that the database refused
  #late = new Map(); // id in memory -> id of the copy that a slow disk has stored after all
  #stored = new Map(); // copies of this page's items in the database, in case it fails later
  #lastId = FIRST_MEMORY_ID;
  #hasFailed = false; // the database is not read any more

  static async open(user) {
    const opening = openDatabase(user);
    const store = new Store(await withTimeout(opening, OPEN_TIMEOUT_MS).catch(() => null));
    // If the database opens late, send what an earlier page left in it. New items stay in memory, which keeps their order.
    if (!store.database) opening.then((database) => store.#use(database), () => {});
    return store;
  }

  constructor(database) {
    this.isPersistent = database !== null;
    this.#use(database);
  }

  #use(database) {
    this.database = database;
    if (!database) return;
    database.onclose = () => {
      this.#stopReading();
      this.database = null;
    };
    database.onversionchange = () => database.close();
  }

  // Resolve when the item is on disk, as far as the browser can tell. After the first refusal, all items stay in memory,
  // which keeps their order.
  async put(item) {
    const writing = this.database && !this.#hasFailed ? this.#write(item) : null;
    if (this.isPersistent && writing) {
      try {
        const id = await withTimeout(writing);
        this.#stored.set(id, { ...item, id });
        return id;
      } catch {
        this.isPersistent = false;
      }
    }
    const id = (this.#lastId += 1);
    this.#memory.push({ ...item, id });
    // A slow disk may have the item in the end. The one in memory is sent, and the copy is for a tab that closes before.
    writing?.then((copy) => (this.#memory.some((each) => each.id === id) ? this.#late.set(id, copy) : this.drop([copy])), () => {});
    return id;
  }

  async all() {
    const stored = [...(await this.#readDatabase())];
    const inMemory = new Set(this.#memory.map(itemKey));
    return [...stored.filter((item) => !inMemory.has(itemKey(item))), ...this.#memory];
  }

  // Return this page's items without waiting, for a page that goes away.
  copies() {
    return [...this.#stored.values(), ...this.#memory];
  }

  async drop(ids) {
    this.#memory = this.#memory.filter((item) => !ids.includes(item.id));
    for (const id of ids) this.#stored.delete(id);
    const onDisk = [...ids.map((id) => this.#late.get(id)), ...ids].filter((id) => id < FIRST_MEMORY_ID);
    for (const id of ids) this.#late.delete(id);
    if (!onDisk.length || !this.database) return;
    const deleting = this.#delete(onDisk);
    // Items left in the database are sent again later. The server ignores duplicates.
    if (this.#hasFailed) deleting.catch(() => {});
    else await withTimeout(deleting).catch(() => this.#stopReading());
  }

  // Texts that are being typed. Each keystroke replaces the draft.
  async changeDrafts(put, dropKeys) {
    if (!this.database || !(put.length + dropKeys.length)) return;
    try {
      const work = this.database.transaction("drafts", "readwrite");
      const drafts = work.objectStore("drafts");
      for (const draft of put) drafts.put(draft);
      for (const key of dropKeys) drafts.delete(key);
      work.commit(); // at once: closing the tab would abort the transaction
      await transactionDone(work);
    } catch {
      // The page still has the text, and sends it when the annotator stops typing.
    }
  }

  async drafts() {
    if (!this.database) return [];
    return withTimeout(requestDone(this.database.transaction("drafts").objectStore("drafts").getAll())).catch(() => []);
  }

  async #readDatabase() {
    if (!this.database || this.#hasFailed) return this.#stored.values();
    try {
      return await withTimeout(requestDone(this.database.transaction("items").objectStore("items").getAll()));
    } catch {
      this.#stopReading();
      return this.#stored.values();
    }
  }

  #stopReading() {
    this.#hasFailed = true;
    this.isPersistent = false;
  }

  async #delete(ids) {
    const work = this.database.transaction("items", "readwrite");
    for (const id of ids) work.objectStore("items").delete(id);
    await transactionDone(work);
  }

  async #write(item) {
    const work = this.database.transaction("items", "readwrite", { durability: "strict" });
    const adding = work.objectStore("items").add(item);
    work.commit?.();
    await transactionDone(work);
    return adding.result;
  }
}

// What a tab remembers across a reload. It is no loss if the browser forgets it.
export const tabMemory = {
  read(key) {
    try {
      return JSON.parse(sessionStorage.getItem(key));
    } catch {
      return null;
    }
  },
  write(key, value) {
    try {
      if (value === null) sessionStorage.removeItem(key);
      else sessionStorage.setItem(key, JSON.stringify(value));
    } catch {
      // full or refused
    }
  },
};
