// Follows the end of the thread while the reader is there, and offers the way back when not.

const NEAR_PX = 90;

export class Scroll {
  constructor(box, button) {
    this.box = box;
    this.button = button;
    this.isAtEnd = true;
    box.addEventListener("scroll", () => this.#look(), { passive: true });
    button.addEventListener("click", () => this.toEnd());
  }

  toEnd() {
    this.box.scrollTop = this.box.scrollHeight;
    this.#look();
  }

  // Where a conversation is opened: at its last question, with the answer below.
  toLast(node) {
    node.scrollIntoView({ block: "start" });
    this.#look();
  }

  follow() {
    if (this.isAtEnd) this.toEnd();
    else this.#look();
  }

  #look() {
    const left = this.box.scrollHeight - this.box.clientHeight - this.box.scrollTop;
    this.isAtEnd = left < NEAR_PX;
    this.button.hidden = this.isAtEnd;
  }
}
