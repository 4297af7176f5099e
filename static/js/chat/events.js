// A run's events over fetch: server-sent events parsed from the body, and the connection made again when it breaks.

import { ApiError, request } from "../api.js";

const LONGEST_WAIT_MS = 8000;
const ATTEMPTS = 10;
const SILENCE_MS = 45_000; // three of the server's 15-second comments

// Splits a stream of text into {id, name, data}. Comments and unknown fields are skipped.
export class EventParser {
  #buffer = "";

  push(text) {
    this.#buffer += text;
    const frames = this.#buffer.split(/\r?\n\r?\n/);
    this.#buffer = frames.pop();
    return frames.map(parseFrame).filter((frame) => frame !== null);
  }
}

function parseFrame(frame) {
  const event = { id: "", name: "message", data: "" };
  const data = [];
  for (const line of frame.split(/\r?\n/)) {
    if (!line || line.startsWith(":")) continue;
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "id") event.id = value;
    else if (field === "event") event.name = value;
    else if (field === "data") data.push(value);
  }
  if (!data.length) return null;
  event.data = JSON.parse(data.join("\n"));
  return event;
}

// Yields the events of one response. Ends, or throws a TypeError or AbortError, where the connection does.
async function* read(response) {
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  const parser = new EventParser();
  try {
    while (true) {
      const { value, done } = await withoutSilence(reader);
      if (done) return;
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

async function withoutSilence(reader) {
  let timer;
  const silence = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new TypeError("silence")), SILENCE_MS);
  });
  try {
    return await Promise.race([reader.read(), silence]);
  } finally {
    clearTimeout(timer);
  }
}

// All events of a run up to its `done` or `error`. `first` is the response that began it, or null to join a run.
// `onConnection(false)` tells that the connection broke, `onConnection(true)` that it is back.
export async function* runEvents(first, eventsPath, onConnection, signal) {
  let response = first;
  let lastId = "";
  let failures = 0;
  while (true) {
    try {
      response ??= await request("GET", eventsPath, { headers: lastId ? { "Last-Event-ID": lastId } : {}, signal });
      if (failures) onConnection(true);
      for await (const event of read(response)) {
        failures = 0;
        if (event.id) lastId = event.id;
        yield event;
        if (event.name === "done" || event.name === "error") return;
      }
    } catch (error) {
      if (error.name === "AbortError") throw error;
      // The server's own refusal is final; a broken connection is not.
      if (error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429) throw error;
    }
    response = null;
    failures += 1;
    onConnection(false);
    if (failures > ATTEMPTS) {
      throw new ApiError(gettext("The connection was lost and could not be made again."), { code: "network" });
    }
    await pause(Math.min(250 * 2 ** failures, LONGEST_WAIT_MS), signal);
  }
}

function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new DOMException("aborted", "AbortError"));
    });
  });
}
