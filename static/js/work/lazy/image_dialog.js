// An image in a dialog of its own, as large as the window, which can be enlarged further with buttons and keys.

const STEPS = [0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 8]; // sizes, relative to the pixels of the image

const slot = (dialog, name) => dialog.querySelector(`[data-slot="${name}"]`);

class ImageDialog {
  constructor(dialog) {
    this.dialog = dialog;
    this.stage = slot(dialog, "stage");
    this.image = slot(dialog, "image");
    dialog.addEventListener("click", (event) => {
      const button = event.target.closest("[data-zoom]");
      if (button) this.#act(button.dataset.zoom);
      else if (event.target === dialog) dialog.close(); // beside it
    });
    // Keys of the page do nothing while the dialog is open.
    dialog.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const act = { "+": "in", "=": "in", "-": "out", 0: "fit", 1: "whole" }[event.key];
      if (act) event.preventDefault();
      if (act) this.#act(act);
    });
    this.image.addEventListener("load", () => this.#fit());
    addEventListener("resize", () => dialog.open && this.isFitted && this.#fit());
  }

  open(button) {
    const shown = button.querySelector("img");
    slot(this.dialog, "title").textContent = shown.alt;
    this.image.alt = shown.alt;
    this.image.src = shown.src;
    this.dialog.showModal();
    this.stage.focus();
    if (this.image.complete) this.#fit();
  }

  #act(name) {
    if (name === "close") this.dialog.close();
    else if (name === "fit") this.#fit();
    else if (name === "whole") this.#show(1);
    else this.#show((name === "in" ? STEPS.find((each) => each > this.scale + 0.01) : STEPS.findLast((each) => each < this.scale - 0.01)) ?? this.scale);
  }

  #fit() {
    const { naturalWidth: width, naturalHeight: height } = this.image;
    if (!width) return;
    this.#show(Math.min(this.stage.clientWidth / width, this.stage.clientHeight / height, 4));
    this.isFitted = true;
  }

  // Change the size around the middle of what is shown.
  #show(scale) {
    const { stage } = this;
    const x = (stage.scrollLeft + stage.clientWidth / 2) / Math.max(1, stage.scrollWidth);
    const y = (stage.scrollTop + stage.clientHeight / 2) / Math.max(1, stage.scrollHeight);
    this.scale = scale;
    this.isFitted = false;
    this.image.width = Math.max(1, Math.floor(this.image.naturalWidth * scale));
    this.image.height = Math.max(1, Math.floor(this.image.naturalHeight * scale));
    stage.scrollTo(x * stage.scrollWidth - stage.clientWidth / 2, y * stage.scrollHeight - stage.clientHeight / 2);
    slot(this.dialog, "scale").textContent = `${Math.round(100 * scale)} %`;
  }
}

let dialog = null;

export function openImage(button) {
  dialog ??= new ImageDialog(document.getElementById("image-dialog"));
  dialog.open(button);
}
