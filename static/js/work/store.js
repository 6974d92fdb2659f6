// The browser's own store. What a person typed is here before it goes anywhere, and stays until the server has it.
// A browser that stores nothing (private mode, a full disk) has it kept by this tab alone: `isLasting` then says no.

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

function opened(user) {
  const opening = indexedDB.open(`${NAME}-${user}`, VERSION);
  opening.onupgradeneeded = () => {
    const items = opening.result.createObjectStore("items", { keyPath: "id", autoIncrement: true });
    items.createIndex("assignment", "assignment");
  };
  return settled(opening);
}

// Above all ids of the disk: what it refused was typed after what it took.
const FIRST_HERE = 2 ** 50;

export class Store {
  #here = []; // what the disk has refused
  #last = FIRST_HERE;

  static async open(user) {
    let database = null;
    try {
      database = await opened(user);
    } catch {
      // no disk for this page: it works all the same, and says so
    }
    return new Store(database);
  }

  constructor(database) {
    this.database = database;
    this.isLasting = database !== null;
  }

  // Resolves when the item is on disk as far as the browser can tell, not before. After the first that it refuses all
  // stay here: they keep their order.
  async put(item) {
    if (this.isLasting) {
      try {
        return await this.#write(item);
      } catch {
        this.isLasting = false;
      }
    }
    this.#here.push({ ...item, id: ++this.#last });
    return this.#last;
  }

  async all() {
    const kept = this.database ? await settled(this.database.transaction("items").objectStore("items").getAll()) : [];
    return [...kept, ...this.#here];
  }

  async drop(ids) {
    this.#here = this.#here.filter((item) => !ids.includes(item.id));
    const kept = ids.filter((id) => id < FIRST_HERE);
    if (!kept.length) return;
    const work = this.database.transaction("items", "readwrite");
    for (const id of kept) work.objectStore("items").delete(id);
    await done(work);
  }

  async #write(item) {
    const work = this.database.transaction("items", "readwrite", { durability: "strict" });
    const adding = work.objectStore("items").add(item);
    await done(work);
    return adding.result;
  }
}
