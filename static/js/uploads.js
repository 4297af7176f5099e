// Sends files one at a time, each with its own line: how far it is, or why it was refused.

import { csrfToken, errorOf, networkError } from "./api.js";
import { bytes, element, iconButton } from "./ui.js";

export class Uploads {
  #queue = [];
  #isSending = false;

  // `onUploaded` gets the document that the API made of a file.
  constructor({ drop, input, choose, list, kbId, maxBytes, onUploaded }) {
    Object.assign(this, { list, kbId, maxBytes, onUploaded });
    choose.addEventListener("click", () => input.click());
    input.addEventListener("change", () => {
      this.add(input.files);
      input.value = "";
    });
    let depth = 0;
    const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
    document.addEventListener("dragenter", (event) => hasFiles(event) && ++depth && drop.classList.add("drop--over"));
    document.addEventListener("dragleave", (event) => {
      if (hasFiles(event) && --depth <= 0) drop.classList.remove("drop--over");
    });
    document.addEventListener("dragover", (event) => hasFiles(event) && event.preventDefault());
    document.addEventListener("drop", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      depth = 0;
      drop.classList.remove("drop--over");
      this.add(event.dataTransfer.files);
    });
  }

  add(files) {
    for (const file of files) this.#queue.push({ file, line: this.#line(file) });
    this.#next();
  }

  #line(file) {
    const progress = element("progress", { max: 1, value: 0, "aria-label": file.name });
    const line = element(
      "li",
      { class: "upload" },
      element("span", { class: "upload__name", text: file.name }),
      element("span", { class: "number muted", text: bytes(file.size) }),
      progress,
    );
    this.list.append(line);
    return line;
  }

  async #next() {
    if (this.#isSending) return;
    const item = this.#queue.shift();
    if (!item) return;
    this.#isSending = true;
    try {
      const document = await this.#send(item);
      item.line.remove();
      this.onUploaded(document);
    } catch (error) {
      this.#refuse(item.line, error.message);
    } finally {
      this.#isSending = false;
      this.#next();
    }
  }

  #refuse(line, message) {
    line.classList.add("upload--failed");
    const dismiss = iconButton("close", gettext("Dismiss"), () => line.remove(), "button--small");
    line.querySelector("progress").replaceWith(dismiss);
    line.append(element("span", { class: "upload__error", role: "alert", text: message }));
  }

  // XMLHttpRequest, because fetch does not tell how much has been sent.
  #send({ file, line }) {
    if (file.size > this.maxBytes) {
      const limit = bytes(this.maxBytes);
      return Promise.reject(new Error(interpolate(gettext("The file is larger than %(limit)s."), { limit }, true)));
    }
    if (file.size === 0) return Promise.reject(new Error(gettext("The file is empty.")));
    const progress = line.querySelector("progress");
    return new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      request.open("POST", `/api/kb/knowledge-bases/${this.kbId}/documents/`);
      request.setRequestHeader("X-CSRFToken", csrfToken());
      request.setRequestHeader("Accept", "application/json");
      request.upload.addEventListener("progress", ({ loaded, total }) => {
        progress.value = total ? loaded / total : 0;
      });
      request.addEventListener("load", () => {
        if (request.status < 400) resolve(JSON.parse(request.responseText));
        else reject(errorOf(request.status, request.responseText, request.getResponseHeader("Retry-After")));
      });
      request.addEventListener("error", () => reject(networkError()));
      const body = new FormData();
      body.append("file", file);
      request.send(body);
    });
  }
}
