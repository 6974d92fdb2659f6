// Press keys on the work page one after the other, and return the moves after which the lit step was not where it can be
// read: between problem and dock. A step that is taller than the free area must start at its top.
// Used by bench/lit_step.py and tests/journeys/test_work_scrolling.py.

async ([keys, pause]) => {
  const frames = async (n) => {
    while (n--) await new Promise(requestAnimationFrame);
  };
  const found = () => {
    const row = document.querySelector(".step.is-now");
    if (!row) return null;
    const place = (name) => document.querySelector(name).getBoundingClientRect();
    const isSticky = getComputedStyle(document.querySelector(".problem")).position === "sticky";
    const top = place(isSticky ? ".problem" : ".top").bottom;
    const bottom = place(".dock").top;
    const rect = row.getBoundingClientRect();
    const fits = rect.height <= bottom - top;
    const isInside = rect.top > top - 2 && rect.bottom < bottom + 2;
    const isRight = fits ? isInside : Math.abs(rect.top - top) < 3;
    return isRight ? null : [row.id, rect.top, rect.bottom, top, bottom];
  };
  const wrong = [found()].filter(Boolean);
  for (const key of keys) {
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    await new Promise((done) => setTimeout(done, pause));
    await frames(4);
    if (found()) wrong.push(found());
  }
  return wrong;
};
