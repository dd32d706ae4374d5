// The places of a portal for tests: lists, what is selected in them, details with tabs, and dialogs.
"use strict";

const TYPES = { VirtualMachine: "vms", Host: "hosts", Cluster: "clusters" };
const menu = new Map([["dashboard", null], ["vms", null], ["hosts", null], ["clusters", null]]);
const tabs = new Map(); // by token: type, label, url
const buttons = []; // type, label, callbacks
let defaultPlace = "dashboard";
let place = null;
let chosen = [];

const byId = (id) => document.getElementById(id);
const typeOf = (token) => Object.keys(TYPES).find((type) => token.startsWith(TYPES[type]));

function button(text, act, into) {
  const made = document.createElement("button");
  made.textContent = text;
  made.onclick = act;
  into.append(made);
  return made;
}

function framed(title, url) {
  const made = document.createElement("iframe");
  made.title = title;
  made.src = url;
  return made;
}

// A selection is an event of one list; portals before 4.4 passed each of it as an argument.
function select(type, items, asArguments = false) {
  chosen = items;
  invokeNow(`${type}SelectionChange`, asArguments ? items : [items]);
  drawActions();
}

function drawActions() {
  byId("actions").replaceChildren();
  for (const each of buttons.filter((one) => place === TYPES[one.type])) {
    if (each.callbacks.isAccessible?.(chosen) === false) continue;
    button(each.label, () => each.callbacks.onClick(chosen), byId("actions"))
      .disabled = each.callbacks.isEnabled?.(chosen) === false;
  }
}

function drawRows(type) {
  byId("rows").replaceChildren();
  for (const item of type ? entities[type] : []) {
    const row = document.createElement("li");
    const box = document.createElement("input");
    box.type = "checkbox";
    box.ariaLabel = item.name;
    box.onchange = () => select(type, box.checked ? [...chosen, item] : chosen.filter((one) => one !== item));
    row.append(box);
    button(item.name, () => { select(type, [item]); reveal(`${TYPES[type]}-general`); }, row);
    byId("rows").append(row);
  }
}

function drawMenu() {
  byId("menu").replaceChildren();
  for (const [token, entry] of menu) button(entry?.label ?? token, () => reveal(token), byId("menu"));
}

function drawTabs() {
  byId("tabs").replaceChildren();
  const type = place?.includes("-") && typeOf(place);
  if (!type) return;
  button("general", () => reveal(`${TYPES[type]}-general`), byId("tabs"));
  for (const [token, tab] of tabs) if (tab.type === type) button(tab.label, () => reveal(token), byId("tabs"));
}

// A place that is not known (yet) leads to the one of the landing.
function reveal(token) {
  const known = menu.has(token) || tabs.has(token) || Object.values(TYPES).includes(token.replace("-general", ""));
  place = known ? token : defaultPlace;
  const entry = tabs.get(place) ?? menu.get(place);
  const type = typeOf(place);
  if (menu.has(place)) chosen = [];
  history.replaceState(null, "", `#${place}${type && chosen[0] && !menu.has(place) ? `;name=${chosen[0].name}` : ""}`);
  byId("place").textContent = place;
  byId("content").replaceChildren(...(entry ? [framed(entry.label, entry.url)] : []));
  drawRows(menu.has(place) && type);
  drawTabs();
  drawActions();
}

function land() {
  const [token, name] = decodeURIComponent(location.hash.slice(1)).split(";name=");
  const type = typeOf(token);
  const item = name && type && entities[type].find((one) => one.name === name);
  if (item) select(type, [item]);
  reveal(token || defaultPlace);
}

ui = {
  current: () => place,
  // As the engine's: whatever `defaultPlace` says, the last one becomes the landing page.
  addPrimaryMenuPlace: (label, token, url) => { menu.set(token, { label, url }); defaultPlace = token; drawMenu(); },
  addDetailPlace: (type, label, token, url) => { tabs.set(token, { type, label, url }); drawTabs(); },
  addMenuPlaceActionButton: (type, label, callbacks) => { buttons.push({ type, label, callbacks }); drawActions(); },
  setPlaceContentUrl: (token, url) => setTimeout(() => {
    const entry = tabs.get(token) ?? menu.get(token);
    if (!entry) return;
    entry.url = url;
    if (place === token) byId("content").firstChild.src = url;
  }),
  showDialog: (title, token, url, width, height, options) => {
    byId("dialog").replaceChildren(framed(title, url));
    byId("dialog").dataset.token = token;
    for (const each of options.buttons) button(each.label, () => each.onClick(), byId("dialog"));
  },
  closeDialog: (token) => setTimeout(() => {
    if (byId("dialog").dataset.token === token) byId("dialog").replaceChildren();
  }),
};

define();
drawMenu();
enableInvocation();
invokeNowOrLater("UserLogin", [userInfo.userName, userInfo.id]);
if (!new URLSearchParams(location.search).has("held")) land();
