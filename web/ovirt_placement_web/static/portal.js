// Logs in with the token of the engine's portal, which the frame around this page is asked for.

const said = document.getElementById("hand-over");
const { askedOf, again } = said.dataset;
const root = document.querySelector("meta[name=placement]").content;

// What a refusal says, in the page's own words.
function refusal(text) {
  const found = new DOMParser().parseFromString(text, "text/html").querySelector("[role=alert]");
  return found?.textContent || "The log-in failed.";
}

function show(text) {
  said.className = "wrong";
  said.textContent = text;
}

async function logIn(token) {
  const body = new URLSearchParams({ token });
  const answer = await fetch(`${root}/log-in/token`, { method: "POST", body, redirect: "manual" });
  // What leads on has set the cookie; whether the browser sends it, the next request shows.
  if (answer.type === "opaqueredirect") location.replace(again);
  else show(refusal(await answer.text()));
}

function hear(event) {
  if (event.origin !== askedOf || event.source !== parent || event.data?.placement !== "token") return;
  removeEventListener("message", hear);
  logIn(String(event.data.token)).catch(() => show("The page's service does not answer."));
}

if (parent === window) {
  show("This address is for the engine's portal.");
} else {
  addEventListener("message", hear);
  parent.postMessage({ placement: "token wanted" }, askedOf);
}
