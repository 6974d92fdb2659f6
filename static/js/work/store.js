// The browser's own store. What a person typed is here before it goes anywhere, and stays until the server has it.
// A browser that stores nothing (private mode, a full or dying disk) has it kept by this tab alone: `isPersistent` then says no.

const NAME = "stepmark";
const VERSION = 1;

const settled = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

const done = (work) =>
  new Promise((resolve, reject) => {
    work.oncomplete = resolve;
    work.onabort = work.onerror = () => reject(work.error);
  });

// A disk that dies, or another page that blocks the way, answers nothing at all: that is a refusal too.
const PATIENCE = 2500;
const TO_OPEN = 5000; // a machine at its limit is slow to read what is on its disk

const within = (answering, patience = PATIENCE) => {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error("the store does not answer")), patience);
  });
  return Promise.race([answering, late]).finally(() => clearTimeout(timer));
};

async function opened(user) {
  const opening = indexedDB.open(`${NAME}-${user}`, VERSION);
  opening.onupgradeneeded = () => {
    const items = opening.result.createObjectStore("items", { keyPath: "id", autoIncrement: true });
    items.createIndex("assignment", "assignment");
  };
  return settled(opening);
}

// Above all ids of the disk: what it refused was typed after what it took.
const FIRST_MEMORY_ID = 2 ** 50;

export class Store {
  #here = []; // what the disk has refused
  #taken = new Map(); // what it took from this page: should it die, this page still has it
  #last = FIRST_MEMORY_ID;

  static async open(user) {
    const opening = opened(user);
    const store = new Store(await within(opening, TO_OPEN).catch(() => null)); // no disk: it works all the same, and says so
    // Late: what an earlier page left there can be sent now. What is typed here stays here, where the rest of it is.
    if (!store.database) opening.then((database) => store.#use(database), () => {});
    return store;
  }

  constructor(database) {
    this.isPersistent = database !== null;
    this.#use(database);
  }

  #use(database) {
    this.database = database;
    if (database) database.onclose = () => this.#stopUsingDatabase();
  }

  // Resolves when the item is on disk as far as the browser can tell, not before. After the first that it refuses all
  // stay here: they keep their order.
  async put(item) {
    if (this.isPersistent) {
      try {
        const id = await within(this.#write(item));
        this.#taken.set(id, { ...item, id });
        return id;
      } catch {
        this.isPersistent = false;
      }
    }
    this.#here.push({ ...item, id: ++this.#last });
    return this.#last;
  }

  async all() {
    return [...(await this.#onDisk()), ...this.#here];
  }

  async drop(ids) {
    this.#here = this.#here.filter((item) => !ids.includes(item.id));
    for (const id of ids) this.#taken.delete(id);
    const kept = ids.filter((id) => id < FIRST_MEMORY_ID);
    if (!kept.length || !this.database) return;
    try {
      const work = this.database.transaction("items", "readwrite");
      for (const id of kept) work.objectStore("items").delete(id);
      await within(done(work));
    } catch {
      this.#stopUsingDatabase(); // what stays there is sent once more some day, and the server knows it
    }
  }

  async #onDisk() {
    if (!this.database) return this.#taken.values();
    try {
      return await within(settled(this.database.transaction("items").objectStore("items").getAll()));
    } catch {
      this.#stopUsingDatabase();
      return this.#taken.values();
    }
  }

  #stopUsingDatabase() {
    this.database = null;
    this.isPersistent = false;
  }

  async #write(item) {
    const work = this.database.transaction("items", "readwrite", { durability: "strict" });
    const adding = work.objectStore("items").add(item);
    await done(work);
    return adding.result;
  }
}
