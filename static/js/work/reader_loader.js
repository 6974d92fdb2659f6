// Loads the tools for reading a trace (filters, map, search, source, differences) when a trace or a key needs them.

import { config, getString } from "./page_config.js";

const LONG = 30; // entries of a trace; a longer one gets the tools at once
const DELAY_MS = 50; // rating comes first

export class ReaderLoader {
  #reader = null;
  #loading = null;

  constructor(page) {
    this.page = page;
  }

  show(view) {
    if (this.#reader) return this.#reader.show(view);
    const { trace } = view.work;
    if (trace.is_agent || trace.steps.length > LONG) setTimeout(() => this.#load().catch(() => {}), DELAY_MS);
    return undefined;
  }

  paint() {
    this.#reader?.paint();
  }

  // Call a method of the reader.
  async perform(name, ...values) {
    if (!this.page.view) return;
    const reader = await this.#load().catch(() => null);
    if (reader) reader[name](...values);
    else this.page.dock.showToast(getString("not_loaded"));
  }

  #load() {
    this.#loading ??= Promise.all([import("./reader.js"), loadSheet(config.reader_css)]).then(([{ TraceReader }]) => {
      this.#reader = new TraceReader(this.page);
      if (this.page.view) this.#reader.show(this.page.view);
      return this.#reader;
    });
    this.#loading.catch(() => (this.#loading = null)); // try again with the next key
    return this.#loading;
  }
}

function loadSheet(href) {
  return new Promise((resolve, reject) => {
    document.head.append(Object.assign(document.createElement("link"), { rel: "stylesheet", href, onload: resolve, onerror: reject }));
  });
}
