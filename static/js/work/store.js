// The browser's own store. What a person typed is here before it goes anywhere, and stays until the server has it.

const NAME = "stepmark";
const VERSION = 1;

const settled = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

export class Store {
  static async open(user) {
    const opening = indexedDB.open(`${NAME}-${user}`, VERSION);
    opening.onupgradeneeded = () => {
      const items = opening.result.createObjectStore("items", { keyPath: "id", autoIncrement: true });
      items.createIndex("assignment", "assignment");
    };
    return new Store(await settled(opening));
  }

  constructor(database) {
    this.database = database;
  }

  // Resolves when the item is on disk as far as the browser can tell, not before.
  put(item) {
    const work = this.database.transaction("items", "readwrite", { durability: "strict" });
    const adding = work.objectStore("items").add(item);
    return new Promise((resolve, reject) => {
      work.oncomplete = () => resolve(adding.result);
      work.onabort = work.onerror = () => reject(work.error);
    });
  }

  all() {
    return settled(this.database.transaction("items").objectStore("items").getAll());
  }

  drop(ids) {
    const work = this.database.transaction("items", "readwrite");
    for (const id of ids) work.objectStore("items").delete(id);
    return new Promise((resolve, reject) => {
      work.oncomplete = resolve;
      work.onabort = work.onerror = () => reject(work.error);
    });
  }
}
