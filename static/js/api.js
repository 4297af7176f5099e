// The REST API with the page's session: one place for the CSRF token and for errors that a person can read.

export class ApiError extends Error {
  constructor(message, { status = 0, code = "", details = {} } = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
  }

  get isSignedOut() {
    return this.status === 401;
  }
}

export function csrfToken() {
  return document.querySelector("#csrf [name=csrfmiddlewaretoken]").value;
}

// Returns the Response when it is good; throws an ApiError otherwise. `json` is sent as the body.
export async function request(method, path, { json, headers = {}, signal } = {}) {
  const options = { method, signal, headers: { Accept: "application/json", ...headers }, credentials: "same-origin" };
  if (method !== "GET") options.headers["X-CSRFToken"] = csrfToken();
  if (json !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(json);
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw networkError();
  }
  if (!response.ok) throw errorOf(response.status, await response.text(), response.headers.get("Retry-After"));
  return response;
}

export async function api(method, path, json) {
  const response = await request(method, path, { json });
  return response.status === 204 || response.status === 205 ? null : response.json();
}

export function networkError() {
  return new ApiError(gettext("The server cannot be reached. Check the connection and try again."), { code: "network" });
}

export function errorOf(status, text, retryAfter) {
  let body = {};
  try {
    body = JSON.parse(text).error ?? {};
  } catch {
    // Not the API's own answer: a proxy's page, for instance.
  }
  return new ApiError(readable(status, body.message, retryAfter), { status, code: body.code ?? "", details: body.details ?? {} });
}

function readable(status, message, retryAfter) {
  if (status === 401) return gettext("You are signed out. Sign in again, then repeat this.");
  if (status === 413) return message || gettext("This is larger than the server accepts.");
  if (status === 429) {
    const seconds = Number(retryAfter);
    return seconds > 0
      ? interpolate(gettext("Too many requests. Try again in %(seconds)s seconds."), { seconds }, true)
      : gettext("Too many requests. Wait a moment and try again.");
  }
  if (message) return message;
  if (status >= 500) return gettext("Something went wrong on the server. Try again in a moment.");
  return interpolate(gettext("The server refused this (%(status)s)."), { status }, true);
}

export function signInAddress() {
  const here = location.pathname + location.search;
  return `${document.body.dataset.signIn}?next=${encodeURIComponent(here)}`;
}
