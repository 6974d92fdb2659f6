// What the server tells the page: configuration, texts, addresses; and the browser's store.

import { Store } from "./store.js";

export const readJson = (id) => JSON.parse(document.getElementById(id)?.textContent || "null");
export const config = readJson("work-config");
export const store = await Store.open(config.user);

export function getString(name, values = {}) {
  const forms = (store.isPersistent ? null : config.strings.memory_only[name]) ?? config.strings[name];
  const text = typeof forms === "string" ? forms : values.count === 1 ? forms.one : forms.other;
  return text.replace(/\{(\w+)\}/g, (_, key) => values[key] ?? "");
}

export const urlOf = (assignment, verb) => config.urls[verb].replace("/0/", `/${assignment}/`);

export const clockTime = (moment) => new Date(moment).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
