// Where a question is written: Enter sends, Shift+Enter breaks the line, an input method keeps its own Enter.

const MAX_CHARS = 8000;
const WARN_FROM = 7500;

export class Composer {
  constructor(form, { onAsk, onStop }) {
    this.area = form.querySelector("textarea");
    this.count = form.querySelector("[data-count]");
    this.send = form.querySelector("[data-send]");
    this.stop = form.querySelector("[data-stop]");
    this.onAsk = onAsk;
    this.busy = false;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.stop.addEventListener("click", onStop);
    this.area.addEventListener("input", () => this.#changed());
    this.area.addEventListener("keydown", (event) => this.#key(event));
    this.#changed();
  }

  setBusy(busy) {
    this.busy = busy;
    this.send.hidden = busy;
    this.stop.hidden = !busy;
    this.stop.disabled = false;
  }

  // Gives a question back, unless another one is being written already.
  restore(question) {
    if (this.area.value.trim()) return;
    this.area.value = question;
    this.#changed();
    this.focus();
  }

  focus() {
    // On a phone the keyboard would cover what has just been shown.
    if (matchMedia("(hover: hover)").matches) this.area.focus();
  }

  #key(event) {
    // 229: browsers that report the composing Enter without isComposing.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    this.#submit();
  }

  #submit() {
    const question = this.area.value.trim();
    if (this.busy || !question || question.length > MAX_CHARS) {
      this.area.focus();
      return;
    }
    this.area.value = "";
    this.#changed();
    this.onAsk(question);
  }

  #changed() {
    this.area.style.height = "auto";
    this.area.style.height = `${this.area.scrollHeight + 2}px`;
    const length = this.area.value.trim().length;
    this.count.hidden = length < WARN_FROM;
    this.count.textContent =
      length > MAX_CHARS
        ? interpolate(gettext("Too long: %(length)s of at most %(most)s characters"), { length, most: MAX_CHARS }, true)
        : `${length} / ${MAX_CHARS}`;
    this.area.setAttribute("aria-invalid", String(length > MAX_CHARS));
    this.send.disabled = length > MAX_CHARS;
  }
}
