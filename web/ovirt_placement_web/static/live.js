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
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86400)} days ago`;
}

// The hour, the day only where it is another one, and how long ago that is; all of it as the title.
function momentText(at) {
  const today = at.toDateString() === new Date().toDateString();
  const hour = at.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
  const day = today ? "" : `${at.toLocaleDateString(undefined, { month: "short", day: "numeric", year: at.getFullYear() === new Date().getFullYear() ? undefined : "numeric" })}, `;
  const ago = (Date.now() - at) / 1000;
  return ago < -60 ? `${day}${hour}` : `${day}${hour} (${ageText(Math.max(0, ago))})`;
}

function showTimes() {
  for (const each of document.querySelectorAll("time[datetime]")) {
    const at = new Date(each.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    const text = momentText(at);
    if (each.textContent !== text) each.textContent = text;
    each.title = at.toLocaleString(undefined, { dateStyle: "full", timeStyle: "long" });
  }
}

function showAge() {
  const silent = Date.now() - heardAt > SILENT_MS;
  document.body.classList.toggle("stale", silent || error !== null);
  const age = (Date.now() - trueAt) / 1000;
  const known = document.getElementById("known");
  if (known) {
    const old = silent || error !== null;
    known.classList.toggle("old", old);
    const text = old || age > 15 ? ageText(age).replace(" ago", " old") : "Live";
    const sign = known.querySelector("[data-age]");
    if (sign && sign.textContent !== text) sign.textContent = text;
    known.title = `The engine's state, ${ageText(age)}`;
  }
  const away = document.querySelector("#away [data-age]");
  if (away) away.textContent = ageText(age);
  const lost = document.getElementById("lost");
  if (lost && !lost.dataset.ended) {
    const said = silent ? `No word from the page's service for ${ageText((Date.now() - heardAt) / 1000).replace(" ago", "")}.` : "";
    if (lost.textContent !== said) lost.textContent = said;
    lost.hidden = !silent;
  }
}

function showSource(state) {
  const away = document.getElementById("away");
  if (!away) return;
  away.hidden = state.error === null;
  away.querySelector(".pf-v6-c-alert__title bdi").textContent = "The engine does not answer";
  away.querySelector("[data-why]").textContent = state.error ?? "";
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
// Those of the hosts to pick whose name has what is written.
function narrow(field) {
  const word = field.value.trim().toLowerCase();
  for (const each of document.getElementById(field.dataset.narrows)?.children ?? []) {
    each.hidden = word !== "" && !each.textContent.toLowerCase().includes(word) && !each.querySelector(":checked");
  }
}

document.addEventListener("input", (event) => { if (event.target.dataset?.narrows) { event.stopPropagation(); narrow(event.target); } });
document.addEventListener("change", (event) => { if (event.target.dataset?.narrows) event.stopPropagation(); }, true);
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.closest("input, textarea, select") || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  document.getElementById("find")?.focus();
});
showTimes();
setInterval(showTimes, 20_000);
let timesDue = false;
new MutationObserver(() => {
  if (timesDue) return;
  timesDue = true;
  queueMicrotask(() => { showTimes(); timesDue = false; });
}).observe(document.body, { childList: true, characterData: true, subtree: true });
