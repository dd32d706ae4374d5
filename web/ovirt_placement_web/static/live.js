// Keeps the page of now: one event stream a browser, shared by its tabs; what is old shows its age and greys.

const about = document.querySelector("meta[name=placement]");
const root = about.content;
const SILENT_MS = 30_000; // three beats of the service
const channel = "BroadcastChannel" in window ? new BroadcastChannel(root) : null;

let number = Number(about.dataset.number);
let heardAt = Date.now();
let trueAt = Date.parse(document.getElementById("known")?.dataset.trueAt ?? "") || Date.now();
let error = document.getElementById("known")?.classList.contains("old") ? "yes" : null;
let waiting = false;

function ageText(seconds) {
  if (seconds < 2) return "now";
  if (seconds < 120) return `${Math.round(seconds)} s ago`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min ago`;
  return `${Math.round(seconds / 3600)} h ago`;
}

function showTimes() {
  for (const each of document.querySelectorAll("time[datetime]:not([data-local])")) {
    const at = new Date(each.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    each.textContent = at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
    each.title = each.dateTime;
    each.dataset.local = "";
  }
}

function showAge() {
  const silent = Date.now() - heardAt > SILENT_MS;
  document.body.classList.toggle("stale", silent || error !== null);
  const text = document.querySelector("#known [data-age]");
  if (text) text.textContent = ageText((Date.now() - trueAt) / 1000);
  const lost = document.getElementById("lost");
  if (lost && !lost.dataset.ended) {
    const said = silent ? `No word from the page's service for ${ageText((Date.now() - heardAt) / 1000).replace(" ago", "")}.` : "";
    if (lost.textContent !== said) lost.textContent = said;
    lost.hidden = !silent;
  }
}

function showSource(state) {
  const known = document.getElementById("known");
  if (!known) return;
  known.classList.toggle("old", state.error !== null);
  const age = document.createElement("span");
  age.dataset.age = "";
  if (state.error === null) {
    known.replaceChildren("As it was ", age, ".");
  } else {
    const strong = document.createElement("strong");
    strong.textContent = "The engine does not answer";
    const why = document.createElement("bdi");
    why.textContent = state.error;
    known.replaceChildren(strong, ": all of this is as it was ", age, ". ", why);
  }
}

function take(state) {
  heardAt = Date.now();
  trueAt = heardAt - state.age_seconds * 1000;
  if (state.error !== error) showSource(state);
  error = state.error;
  showAge();
  if (state.number === number) return;
  number = state.number;
  if (document.hidden) { waiting = true; return; }
  document.body.dispatchEvent(new CustomEvent("placement-changed", { detail: state }));
}

function ended(why) {
  const lost = document.getElementById("lost");
  if (!lost) return;
  lost.dataset.ended = "yes";
  const again = document.createElement("a");
  const here = location.pathname + location.search;
  // In the engine's portal, its token is asked for again.
  again.href = parent === window ? `${root}/log-in?next=${encodeURIComponent(here)}` : here;
  again.textContent = "Log in again";
  lost.replaceChildren(`${why || "Your session has ended."} `, again, ".");
  lost.hidden = false;
  document.body.classList.add("stale");
}

function hear(message) {
  if (message.kind === "state") take(message.state);
  else if (message.kind === "end") ended(message.why);
}

function report(message) {
  channel?.postMessage(message);
  hear(message);
}

// Resolves when the stream has ended for good.
function listen() {
  return new Promise((resolve) => {
    const stream = new EventSource(`${root}/events`);
    stream.addEventListener("state", (event) => report({ kind: "state", state: JSON.parse(event.data) }));
    stream.addEventListener("end", (event) => { stream.close(); report({ kind: "end", why: JSON.parse(event.data).why }); resolve(); });
    stream.addEventListener("error", () => {
      if (stream.readyState !== EventSource.CLOSED) return; // it tries again by itself
      setTimeout(resolve, 5000);
    });
  });
}

async function lead() {
  while (!document.getElementById("lost")?.dataset.ended) await listen();
}

if (about.dataset.session === "yes") {
  if (channel) channel.onmessage = (event) => hear(event.data);
  if (navigator.locks) navigator.locks.request(`${root}/events`, lead); // the first tab leads
  else lead();
  setInterval(showAge, 1000);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden || !waiting) return;
    waiting = false;
    document.body.dispatchEvent(new CustomEvent("placement-changed", { detail: { number } }));
  });
  showAge();
}
showTimes();
new MutationObserver(showTimes).observe(document.body, { childList: true, subtree: true });
