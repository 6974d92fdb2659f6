// Tell on the home page that this browser has ratings that only a work page sends.

const note = document.getElementById("unsent");
const opening = indexedDB.open(`stepmark-${note.dataset.user}`);
opening.onupgradeneeded = () => opening.transaction.abort(); // there is no store, and this page does not create one
opening.onerror = (event) => event.preventDefault();
opening.onsuccess = () => {
  const { result: database } = opening;
  const counting = database.objectStoreNames.contains("items") && database.transaction("items").objectStore("items").count();
  if (counting) counting.onsuccess = () => (note.hidden = counting.result === 0);
  database.onversionchange = () => database.close();
};
