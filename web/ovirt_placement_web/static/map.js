// The map of a cluster: what has changed is read when the state does; found by name, mouse and keyboard.

import { changed } from "./map-changes.js";
import { ALL, CELL, columns, draw, fitCells, isHeat, look, placeOf, shown, slotOf, slots, theme } from "./map-drawing.js";

const root = document.querySelector("meta[name=placement]").content;
const canvas = document.getElementById("map");
const field = Object.fromEntries(["word", "only", "group", "key", "count", "said", "chosen", "legend"].map((id) => [id, document.getElementById(id)]));
const scene = { map: null, vmsOf: [], across: 1, camera: { x: 0, y: 0, scale: 1 }, chosen: -1, filtered: false, matches: () => true, mode: "wrong", violated: new Set(), ha: { restarts: new Set(), lost: new Set() }, keys: { hosts: new Map(), vms: new Set() }, racks: [] };
const dark = window.matchMedia("(prefers-color-scheme: dark)");
let colours = theme(document.body);
let due = null; // the places of the hosts to draw, or ALL
let reading = false;
let again = false;

function redraw(hosts = ALL) {
  if (!scene.map) return;
  const waits = due !== null;
  due = hosts === ALL || due === ALL ? ALL : new Set([...(due ?? []), ...hosts]);
  if (waits) return;
  requestAnimationFrame(() => {
    const hosts = due;
    due = null;
    draw(canvas, scene, colours, hosts);
    canvas.dataset.drawn = scene.map.number; // for measurements
  });
}

async function read() {
  if (reading) { again = true; return; }
  reading = true;
  try {
    const changes = scene.map ? `/changes?since=${scene.map.number}` : "";
    const answer = await fetch(canvas.dataset.source + changes, { headers: { "Live-Update": "1" } });
    if (!answer.ok) throw new Error((await answer.json()).error);
    const found = await answer.json();
    if (found.kind === "map") take(found);
    else if (found.whole) take(found.whole);
    else takeChanges(found);
  } catch (error) {
    field.count.textContent = `The map cannot be read: ${error.message}`;
  } finally {
    reading = false;
    if (again) { again = false; read(); }
  }
}

function take(map) {
  const first = scene.map === null;
  const kept = scene.map?.hosts[scene.chosen]?.id;
  place(map);
  if (first) fitCells(scene.vmsOf);
  arrange();
  scene.chosen = kept === undefined ? -1 : map.hosts.findIndex((host) => host.id === kept);
  showGroups();
  if (first) { showWhole(); showLegend(); }
  show();
}

// As many hosts in a row as fit the window best.
function arrange() {
  scene.across = columns(scene.map.hosts.length, canvas.clientWidth / Math.max(1, canvas.clientHeight));
}

function takeChanges(changes) {
  const { map, dirty } = changed(scene.map, changes);
  place(map);
  if (changes.groups?.length) showGroups();
  show(changes.groups?.length ? ALL : dirty); // other members of a violated rule look otherwise, too
}

function show(hosts = ALL) {
  choose();
  redraw(hosts);
  if (scene.chosen >= 0 && field.chosen.hasChildNodes()) list();
}

function place(map) {
  scene.map = map;
  scene.violated = new Set(map.groups.flatMap((group, number) => (group.violated ? [number] : [])));
  scene.vmsOf = map.hosts.map(() => []);
  scene.racks = [...new Set(map.hosts.map((host) => host.domain).filter(Boolean))];
  for (const each of document.querySelectorAll("input[value=racks]")) each.closest("div").hidden = scene.racks.length < 2;
  map.vms.forEach((vm, number) => { if (vm.host !== undefined) scene.vmsOf[vm.host].push(number); });
}

function showGroups() {
  const before = field.group.value;
  const options = scene.map.groups.map((group, number) => {
    const { shape } = look(number);
    return new Option(`${{ square: "■", circle: "●", diamond: "◆", triangle: "▲" }[shape]} ${shown(group.name)}${group.violated ? " (violated)" : ""}`, group.id);
  });
  field.group.replaceChildren(new Option("Any group", ""), ...options);
  field.group.value = before;
  if (field.group.selectedIndex < 0) field.group.value = "";
}

// Which VMs stand out: by name, by what is wanted, by group.
function choose() {
  const word = field.word.value.trim().toLowerCase();
  const only = field.only.value;
  const group = scene.map.groups.findIndex((one) => one.id === field.group.value);
  const named = scene.map.hosts.map((host) => word && host.name.toLowerCase().includes(word));
  scene.matches = (vm) =>
    (!word || vm.name.toLowerCase().includes(word) || named[vm.host]) &&
    (only !== "wrong" || Boolean(vm.wrong)) &&
    (only !== "moving" || vm.to !== undefined) &&
    (only !== "grouped" || Boolean(vm.groups?.length)) &&
    (group < 0 || Boolean(vm.groups?.includes(group)));
  const count = scene.map.vms.filter(scene.matches).length;
  const wrong = scene.map.vms.filter((vm) => vm.wrong).length;
  const moving = scene.map.vms.filter((vm) => vm.to !== undefined).length;
  scene.filtered = Boolean(word || only || group >= 0);
  const all = `${scene.map.hosts.length} hosts, ${scene.map.vms.length} VMs, ${wrong} misplaced, ${moving} migrating`;
  const text = scene.filtered ? `${count} of ${all}` : all;
  if (field.count.textContent !== text) field.count.textContent = text;
}

// What the colours mean, of these alone that are used now.
const LEGENDS = {
  wrong: [["hard", "violates a hard rule"], ["soft", "violates a soft rule"], ["peer", "another member of a violated rule"], ["moving", "migrating"], ["plain", "all others"]],
  groups: [["plain", "in no group; each group has a colour and a shape"]],
  ha: [["good", "restarts if its host fails"], ["hard", "would not restart"], ["plain", "not highly available"]],
  load: [["hard", "memory above 90 %"], ["soft", "above 75 %"], ["used", "above 40 %"], ["bar", "below"]],
  keys: [["used", "has the key: the more, the darker"], ["moving", "asks for it itself"], ["plain", "all others"]],
  racks: [],
  away: [["moving", "in maintenance"], ["hard", "not up otherwise"], ["plain", "up"]],
};

const RACKS = 8; // colours of racks; the next ones begin again

function showLegend() {
  const racks = scene.racks.map((name, number) => [`rack${number % RACKS}`, shown(name)]);
  const entries = scene.mode === "racks" ? racks.slice(0, 40) : LEGENDS[scene.mode];
  field.key.parentElement.hidden = scene.mode !== "keys";
  field.legend.replaceChildren(...entries.map(([colour, text]) => {
    const [entry, sign] = [document.createElement("span"), document.createElement("i")];
    sign.className = colour;
    entry.append(sign, ` ${text}`);
    return entry;
  }));
}

// Which VMs restart, and which would not: read when a user wants to see it.
async function readHa() {
  const answer = await fetch(`${root}/api/v1/ha-check?cluster=${encodeURIComponent(scene.map.cluster.id)}`, { headers: { "Live-Update": "1" } });
  if (!answer.ok) { field.said.textContent = (await answer.json()).error; return; }
  const [checked] = (await answer.json()).clusters;
  const ids = (lists) => new Set(lists.flat().map((vm) => vm.id));
  scene.ha = { restarts: ids(checked.restart_order.map((one) => one.vms)), lost: ids(checked.losses.map((one) => one.unplaced)) };
  redraw();
}

// Which hosts have a placement key and how much of it, and which VMs ask for it themselves.
let keys = null;
async function readKeys() {
  if (keys === null) {
    const answer = await fetch(`${root}/api/v1/keys`, { headers: { "Live-Update": "1" } });
    if (!answer.ok) { field.said.textContent = (await answer.json()).error; return; }
    ({ keys } = await answer.json());
    const names = [...new Set(keys.map((one) => one.name))].sort();
    field.key.replaceChildren(...names.map((name) => new Option(shown(name), name)));
    if (!names.length) field.said.textContent = "No placement keys are set.";
  }
  const own = keys.filter((one) => one.name === field.key.value);
  const hosts = own.filter((one) => one.level === "node");
  const most = Math.max(1, ...hosts.map((one) => Number(one.value) || 0));
  const share = (value) => (Number.isNaN(Number(value)) ? 1 : Math.max(0, Number(value)) / most); // of a word, all
  scene.keys = { hosts: new Map(hosts.map((one) => [one.resource.id, share(one.value)])), vms: new Set(own.filter((one) => one.level === "server").map((one) => one.resource.id)) };
  redraw();
}
field.key.addEventListener("input", readKeys);

for (const each of document.querySelectorAll("input[name=colour]")) {
  each.addEventListener("change", () => {
    scene.mode = each.value;
    showLegend();
    if (scene.mode === "ha" && scene.map) readHa();
    if (scene.mode === "keys") readKeys();
    redraw();
  });
}

function showWhole() {
  const { hosts } = scene.map;
  const rows = Math.ceil(hosts.length / scene.across);
  const [width, height] = [scene.across * (CELL.width + CELL.gap), rows * (CELL.height + CELL.gap)];
  const scale = Math.min(1.6, canvas.clientWidth / (width + CELL.gap), canvas.clientHeight / (height + CELL.gap));
  scene.camera = { x: -CELL.gap, y: -CELL.gap, scale };
  redraw();
}

function zoom(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
  const { camera } = scene;
  const scale = Math.max(0.05, Math.min(4, camera.scale * factor));
  camera.x += x / camera.scale - x / scale;
  camera.y += y / camera.scale - y / scale;
  camera.scale = scale;
  redraw();
}

function go(at) {
  if (!scene.map || !(at in scene.map.hosts)) return;
  scene.chosen = at;
  const { camera } = scene;
  const place = placeOf(at, scene.across);
  const [width, height] = [canvas.clientWidth / camera.scale, canvas.clientHeight / camera.scale];
  camera.x = Math.min(place.x - CELL.gap, Math.max(camera.x, place.x + CELL.width + CELL.gap - width));
  camera.y = Math.min(place.y - CELL.gap, Math.max(camera.y, place.y + CELL.height + CELL.gap - height));
  const host = scene.map.hosts[at];
  const vms = scene.vmsOf[at].map((number) => scene.map.vms[number]);
  const wrong = vms.filter((vm) => vm.wrong).length;
  field.said.textContent = `Host ${shown(host.name)}${host.domain ? ` in ${shown(host.domain)}` : ""}, ${host.status}, ${vms.length} VMs${wrong ? `, ${wrong} misplaced` : ""}`;
  redraw();
}

const sizeOf = (vm) => (vm.memory_mb ? `, ${(vm.memory_mb / 1024).toFixed(1).replace(".0", "")} GiB, ${vm.vcpus} ${vm.vcpus === 1 ? "CPU" : "CPUs"}` : "");

function link(kind, one) {
  const found = document.createElement("a");
  found.href = `${root}/${kind}/${encodeURIComponent(one.id)}`;
  found.textContent = shown(one.name);
  return found;
}

// The VMs of the chosen host, below the map.
function list() {
  const host = scene.map.hosts[scene.chosen];
  if (!host) return;
  const head = document.createElement("h2");
  const fail = document.createElement("a");
  const cluster = scene.map.cluster.id;
  fail.href = `${root}/ha/${encodeURIComponent(cluster)}?host=${encodeURIComponent(host.id)}`;
  fail.textContent = "Simulate its failure";
  head.append("Host ", link("host", host));
  const vms = document.createElement("ul");
  for (const number of scene.vmsOf[scene.chosen]) {
    const vm = scene.map.vms[number];
    const line = document.createElement("li");
    const groups = (vm.groups ?? []).map((group) => shown(scene.map.groups[group].name)).join(", ");
    const to = vm.to === undefined ? "" : `, migrating to ${shown(scene.map.hosts[vm.to].name)}`;
    line.append(link("vm", vm), `${sizeOf(vm)}${groups ? `, in ${groups}` : ""}${vm.wrong ? `, violates a ${vm.wrong} rule` : ""}${to}`);
    vms.append(line);
  }
  field.chosen.replaceChildren(head, fail, vms);
}

function hostAt(event) {
  const box = canvas.getBoundingClientRect();
  const x = (event.clientX - box.left) / scene.camera.scale + scene.camera.x;
  const y = (event.clientY - box.top) / scene.camera.scale + scene.camera.y;
  const column = Math.floor(x / (CELL.width + CELL.gap));
  const at = Math.floor(y / (CELL.height + CELL.gap)) * scene.across + column;
  return { at: column >= 0 && column < scene.across && at in scene.map.hosts ? at : -1, x, y };
}

function hover(event) {
  if (!scene.map) return;
  const { at, x, y } = hostAt(event);
  if (at < 0) { canvas.title = ""; return; }
  const vms = scene.vmsOf[at];
  const how = slots(vms.length);
  const place = placeOf(at, scene.across);
  const hit = vms.find((_, number) => {
    const slot = slotOf(place, number, how);
    return x >= slot.x && x <= slot.x + slot.size && y >= slot.y && y <= slot.y + slot.size;
  });
  const vm = isHeat(scene) ? undefined : scene.map.vms[hit];
  const host = scene.map.hosts[at];
  const groups = (vm?.groups ?? []).map((group) => scene.map.groups[group].name).join(", ");
  const used = host.memory_mb ? `, ${Math.round(100 - (100 * host.free_mb) / host.memory_mb)} % of memory` : "";
  canvas.title = shown(vm ? `${vm.name} on ${host.name}${sizeOf(vm)}${groups ? `, in ${groups}` : ""}${vm.wrong ? `, violates a ${vm.wrong} rule` : ""}` : `${host.name}${host.domain ? ` in ${host.domain}` : ""}, ${host.status}: ${vms.length} VMs${used}`);
}

let grip = null;
canvas.addEventListener("pointerdown", (event) => { grip = { x: event.clientX, y: event.clientY, moved: false }; canvas.setPointerCapture(event.pointerId); });
canvas.addEventListener("pointermove", (event) => {
  if (!grip) { hover(event); return; }
  const [dx, dy] = [event.clientX - grip.x, event.clientY - grip.y];
  if (!grip.moved && Math.hypot(dx, dy) < 4) return;
  scene.camera.x -= dx / scene.camera.scale;
  scene.camera.y -= dy / scene.camera.scale;
  grip = { x: event.clientX, y: event.clientY, moved: true };
  redraw();
});
canvas.addEventListener("pointerup", (event) => {
  const clicked = grip && !grip.moved;
  grip = null;
  if (!clicked || !scene.map) return;
  const { at } = hostAt(event);
  if (at >= 0) { go(at); list(); }
});
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const box = canvas.getBoundingClientRect();
  zoom(Math.exp(-event.deltaY / 500), event.clientX - box.left, event.clientY - box.top);
}, { passive: false });
canvas.addEventListener("keydown", (event) => {
  const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -scene.across, ArrowDown: scene.across };
  if (event.key in steps) go(scene.chosen < 0 ? 0 : scene.chosen + steps[event.key]);
  else if (event.key === "Home") go(0);
  else if (event.key === "End") go(scene.map.hosts.length - 1);
  else if (event.key === "Enter") list();
  else if (event.key === "+") zoom(1.3);
  else if (event.key === "-") zoom(1 / 1.3);
  else if (event.key === "0") showWhole();
  else return;
  event.preventDefault();
});
document.getElementById("closer").addEventListener("click", () => zoom(1.3));
document.getElementById("farther").addEventListener("click", () => zoom(1 / 1.3));
document.getElementById("whole").addEventListener("click", showWhole);
document.getElementById("tools").addEventListener("submit", (event) => {
  event.preventDefault();
  const word = field.word.value.trim().toLowerCase();
  if (!scene.map || !word) return;
  const host = scene.map.hosts.findIndex((one) => one.name.toLowerCase().includes(word));
  const vm = scene.map.vms.find((one) => one.name.toLowerCase().includes(word));
  go(vm?.host ?? host);
  list();
});
for (const each of [field.word, field.only, field.group]) each.addEventListener("input", () => { if (scene.map) { choose(); redraw(); } });
document.body.addEventListener("placement-changed", read);
dark.addEventListener("change", () => { colours = theme(document.body); redraw(); });
let width = canvas.clientWidth;
new ResizeObserver(() => {
  const wider = scene.map && width !== canvas.clientWidth;
  width = canvas.clientWidth;
  if (wider) { arrange(); showWhole(); } else redraw();
}).observe(canvas);
read();
