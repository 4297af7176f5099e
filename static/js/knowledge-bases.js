import { openable } from "./form-dialog.js";

const create = document.getElementById("create");
if (create) {
  openable(create, document.querySelector("[data-create]"), (saved) => location.assign(`/kb/${saved.id}/`));
}
