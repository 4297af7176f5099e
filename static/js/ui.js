// Small pieces every page uses: elements, icons, toasts, dialogs, numbers. Text goes in as text, never as HTML.

export function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") node.className = value;
    else if (name === "text") node.textContent = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const SVG = "http://www.w3.org/2000/svg";

export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `${document.body.dataset.icons}#${name}`);
  svg.append(use);
  return svg;
}

export function iconButton(name, label, onclick, extra = "") {
  const properties = { type: "button", class: `button button--quiet button--icon ${extra}`, title: label, onclick };
  return element("button", { ...properties, "aria-label": label }, icon(name));
}

export function notice(message, kind = "bad", ...actions) {
  const body = element("div", {}, element("div", { text: message }));
  if (actions.length) body.append(element("div", { class: "notice__actions" }, ...actions));
  const role = kind === "bad" ? "alert" : "status";
  return element("div", { class: `notice notice--${kind}`, role }, icon(kind === "info" ? "info" : "warning"), body);
}

export function toast(message, kind = "bad") {
  const node = notice(message, kind);
  node.append(iconButton("close", gettext("Close"), () => node.remove(), "button--small"));
  document.getElementById("toasts").append(node);
  setTimeout(() => node.remove(), kind === "bad" ? 12000 : 5000);
}

// Resolves to true when the person agrees. Escape and a click beside the dialog mean no.
export function confirmed(title, explanation, action) {
  return new Promise((resolve) => {
    const form = element(
      "form",
      { method: "dialog", class: "dialog__body" },
      element("h2", { text: title }),
      element("p", { text: explanation }),
      element(
        "div",
        { class: "dialog__actions" },
        element("button", { class: "button", value: "no", text: gettext("Cancel") }),
        element("button", { class: "button button--danger", value: "yes", text: action }),
      ),
    );
    const dialog = element("dialog", { "aria-label": title }, form);
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    closeOnBackdrop(dialog);
    document.body.append(dialog);
    dialog.showModal();
  });
}

export function closeOnBackdrop(dialog) {
  dialog.addEventListener("pointerdown", (event) => {
    if (event.target === dialog && !within(event, dialog.getBoundingClientRect())) dialog.close("no");
  });
}

function within(event, box) {
  return event.clientX >= box.left && event.clientX <= box.right && event.clientY >= box.top && event.clientY <= box.bottom;
}

export function readJson(id) {
  const node = document.getElementById(id);
  return node ? JSON.parse(node.textContent) : null;
}

export function milliseconds(ms) {
  return ms >= 1000 ? `${(ms / 1000).toFixed(ms >= 10000 ? 0 : 1)} s` : `${Math.round(ms)} ms`;
}

export function bytes(count) {
  const units = ["B", "KB", "MB", "GB"];
  let size = count;
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${unit === 0 || size >= 100 ? Math.round(size) : size.toFixed(1)} ${units[unit]}`;
}
