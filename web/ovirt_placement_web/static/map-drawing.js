// Draws a cluster on a canvas: hosts as cards with their VMs, or from afar as squares; migrations as lines.

export const CELL = { width: 200, height: 150, gap: 14, head: 44, vm: 14 };
// From this number of hosts on, those that are too small for names are one square each.
const MANY = 100;

// Distinguished by those who see few colours (Okabe and Ito), each with four shapes.
const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b59f00", "#7a5cff"];
const SHAPES = ["square", "circle", "diamond", "triangle"];
// All hosts are drawn, not some.
export const ALL = "all";
const FEW = 60; // of more hosts, drawing all is quicker
const LEGIBLE = 0.55; // below this scale names are not drawn
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

export const look = (group) => ({ colour: COLOURS[group % COLOURS.length], shape: SHAPES[Math.floor(group / COLOURS.length) % SHAPES.length] });

// A name as text: what is not to be seen, and what turns a line round, by its code.
export const shown = (name) => name.replace(HIDDEN, (one) => `\\u${one.codePointAt(0).toString(16).padStart(4, "0")}`);

export function columns(count, ratio) {
  const cells = Math.max(1, count);
  return Math.max(1, Math.min(cells, Math.round(Math.sqrt((cells * ratio * (CELL.height + CELL.gap)) / (CELL.width + CELL.gap)))));
}

// Cards are as high as the fullest host needs, up to a limit beyond which VMs are drawn smaller.
export function fitCells(vmsOf) {
  const fullest = Math.max(0, ...vmsOf.map((vms) => vms.length));
  const rows = Math.max(1, Math.min(6, Math.ceil(fullest / Math.floor((CELL.width - 16) / (CELL.vm + 3)))));
  CELL.height = CELL.head + rows * (CELL.vm + 3) + 10;
}

export function placeOf(at, across) {
  return { x: (at % across) * (CELL.width + CELL.gap), y: Math.floor(at / across) * (CELL.height + CELL.gap) };
}

// Where the VMs of a host stand in its cell: smaller ones where there are many.
export function slots(count) {
  const width = CELL.width - 16;
  const height = CELL.height - CELL.head - 8;
  let size = CELL.vm;
  while (size > 3 && Math.floor(width / (size + 3)) * Math.floor(height / (size + 3)) < count) size -= 1;
  return { size, across: Math.max(1, Math.floor(width / (size + 3))) };
}

export function slotOf(place, number, { size, across }) {
  return { x: place.x + 8 + (number % across) * (size + 3), y: place.y + CELL.head + Math.floor(number / across) * (size + 3), size };
}

export function theme(element) {
  const style = getComputedStyle(element);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  return Object.fromEntries(["ground", "raised", "thin", "text", "quiet", "link", "hard", "soft", "peer", "moving", "plain", "track", "used", "cpu", "good", "bar"].map((name) => [name, of(name)]));
}

function shape(pen, kind, x, y, size) {
  pen.beginPath();
  if (kind === "circle") pen.arc(x + size / 2, y + size / 2, size / 2, 0, 7);
  else if (kind === "diamond") { pen.moveTo(x + size / 2, y); pen.lineTo(x + size, y + size / 2); pen.lineTo(x + size / 2, y + size); pen.lineTo(x, y + size / 2); pen.closePath(); }
  else { pen.moveTo(x + size / 2, y); pen.lineTo(x + size, y + size); pen.lineTo(x, y + size); pen.closePath(); }
}

function bar(pen, colours, x, y, share, colour) {
  const width = CELL.width - 62;
  pen.fillStyle = colours.track;
  pen.fillRect(x, y, width, 5);
  pen.fillStyle = share > 0.9 ? colours.hard : colour;
  pen.fillRect(x, y, width * Math.max(0, Math.min(1, share)), 5);
}

const usedOf = (one) => (one.memory_mb ? 1 - one.free_mb / one.memory_mb : 0);

// How a VM looks: by what it breaks, its groups, or what becomes of it when a host fails.
function vmLook(one, { mode, ha, keys, violated }, colours) {
  if (mode === "groups") {
    const first = one.groups?.[0];
    return first === undefined ? { colour: colours.plain, shape: "square" } : look(first);
  }
  if (mode === "ha") return { colour: ha.lost.has(one.id) ? colours.hard : ha.restarts.has(one.id) ? colours.good : colours.plain, shape: "square" };
  if (mode === "keys") return { colour: keys.vms.has(one.id) ? colours.moving : colours.plain, shape: "square" };
  if (mode !== "wrong") return { colour: colours.plain, shape: "square" };
  const colour = one.wrong ? colours[one.wrong] : one.to !== undefined ? colours.moving : one.groups?.some((group) => violated.has(group)) ? colours.peer : colours.plain;
  return { colour, shape: "square" };
}

// How a host looks from afar, or behind its card.
function hostLook(one, vms, { mode, ha, keys, racks }, colours) {
  const up = one.status === "up";
  if (mode === "racks") return one.domain ? look(racks.indexOf(one.domain) % COLOURS.length).colour : colours.plain;
  if (mode === "keys") return keys.hosts.has(one.id) ? colours.used : vms.some((vm) => keys.vms.has(vm.id)) ? colours.moving : colours.plain;
  if (mode === "away") return up ? colours.plain : one.status.includes("maintenance") ? colours.moving : colours.hard;
  if (!up) return null;
  if (mode === "load") return usedOf(one) > 0.9 ? colours.hard : usedOf(one) > 0.75 ? colours.soft : usedOf(one) > 0.4 ? colours.used : colours.bar;
  if (mode === "ha") return vms.some((vm) => ha.lost.has(vm.id)) ? colours.hard : vms.some((vm) => ha.restarts.has(vm.id)) ? colours.good : colours.plain;
  if (vms.some((vm) => vm.wrong === "hard")) return colours.hard;
  if (vms.some((vm) => vm.wrong)) return colours.soft;
  return vms.some((vm) => vm.to !== undefined) ? colours.moving : colours.plain;
}

// Whether hosts are squares now: many of them, and too small for names.
export const isHeat = (scene) => scene.map.hosts.length >= MANY && scene.camera.scale < LEGIBLE;

function square(pen, colours, one, vms, place, scene, chosen) {
  const colour = hostLook(one, vms, scene, colours);
  const faded = scene.filtered && !vms.some(scene.matches) ? 0.2 : 1;
  const share = scene.mode === "keys" ? (scene.keys.hosts.get(one.id) ?? 1) : 1;
  pen.globalAlpha = faded * (0.2 + 0.8 * share);
  if (colour) { pen.fillStyle = colour; pen.fillRect(place.x, place.y, CELL.width, CELL.height); }
  pen.globalAlpha = faded;
  pen.lineWidth = (chosen ? 3 : 1) / scene.camera.scale;
  pen.strokeStyle = chosen ? colours.link : colours.quiet;
  if (!colour || chosen) { pen.setLineDash(colour ? [] : [4 / scene.camera.scale, 3 / scene.camera.scale]); pen.strokeRect(place.x, place.y, CELL.width, CELL.height); pen.setLineDash([]); }
  pen.globalAlpha = 1;
}

function host(pen, colours, one, vms, place, scene, chosen) {
  const { scale } = scene.camera;
  const up = one.status === "up";
  const back = ["load", "away", "racks", "keys"].includes(scene.mode) ? hostLook(one, vms, scene, colours) : null;
  pen.fillStyle = colours.ground;
  pen.fillRect(place.x, place.y, CELL.width, CELL.height);
  if (back && back !== colours.plain) { pen.globalAlpha = scene.mode === "keys" ? 0.1 + 0.4 * (scene.keys.hosts.get(one.id) ?? 0) : 0.3; pen.fillStyle = back; pen.fillRect(place.x, place.y, CELL.width, CELL.height); pen.globalAlpha = 1; }
  const violates = scene.mode === "wrong" && (vms.some((vm) => vm.wrong === "hard") ? "hard" : vms.some((vm) => vm.wrong) && "soft");
  pen.lineWidth = chosen ? 4 / Math.min(1, scale) : violates ? 3 : 1;
  pen.strokeStyle = chosen ? colours.link : violates ? colours[violates] : colours.plain;
  pen.setLineDash(up ? [] : [8, 6]);
  pen.strokeRect(place.x, place.y, CELL.width, CELL.height);
  pen.setLineDash([]);
  const shares = [[usedOf(one), colours.used], ...(one.cpu_percent == null ? [] : [[one.cpu_percent / 100, colours.cpu]])];
  shares.forEach(([share, colour], row) => bar(pen, colours, place.x + 8, place.y + 24 + 10 * row, share, colour));
  if (scale < LEGIBLE) return;
  pen.fillStyle = colours.quiet;
  pen.font = '10px "Red Hat Text", sans-serif';
  pen.textAlign = "right";
  shares.forEach(([share], row) => pen.fillText(`${Math.round(100 * share)} %`, place.x + CELL.width - 8, place.y + 30 + 10 * row));
  pen.font = '13px "Red Hat Text", sans-serif';
  pen.fillText(up ? String(vms.length) : one.status.replaceAll("_", " "), place.x + CELL.width - 8, place.y + 16);
  pen.textAlign = "left";
  pen.fillStyle = colours.text;
  pen.font = '600 13px "Red Hat Text", sans-serif';
  pen.fillText(fitted(pen, shown(one.name), CELL.width - (up ? 46 : 100)), place.x + 8, place.y + 16);
}

function fitted(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let end = Math.min(text.length, 60);
  while (end > 1 && pen.measureText(`${text.slice(0, end)}…`).width > width) end -= 1;
  return `${text.slice(0, end)}…`;
}

function vm(pen, colours, one, { x, y, size }, scene) {
  const { colour, shape: kind } = vmLook(one, scene, colours);
  pen.globalAlpha = scene.matches(one) ? 1 : 0.15;
  pen.fillStyle = colour;
  if (kind === "square") pen.fillRect(x, y, size, size); // most of ten thousand: no path
  else { shape(pen, kind, x, y, size); pen.fill(); }
  if (one.wrong && scene.mode === "groups") {
    pen.lineWidth = 3;
    pen.strokeStyle = colours[one.wrong];
    pen.setLineDash(one.wrong === "hard" ? [] : [3, 2]);
    pen.strokeRect(x - 2, y - 2, size + 4, size + 4);
    pen.setLineDash([]);
  }
  pen.globalAlpha = 1;
}

function way(pen, colours, from, to) {
  const end = { x: to.x + CELL.width / 2, y: to.y + CELL.height / 2 };
  const angle = Math.atan2(end.y - from.y, end.x - from.x);
  pen.strokeStyle = pen.fillStyle = colours.moving;
  pen.lineWidth = 3;
  pen.beginPath();
  pen.moveTo(from.x, from.y);
  pen.lineTo(end.x, end.y);
  pen.stroke();
  pen.beginPath();
  pen.moveTo(end.x, end.y);
  for (const side of [-0.4, 0.4]) pen.lineTo(end.x - 18 * Math.cos(angle + side), end.y - 18 * Math.sin(angle + side));
  pen.fill();
}

// What stands below the lines of migrations: kept, so that a few cells can be drawn without the others.
const cells = document.createElement("canvas");

// In pixels of the canvas: so far may what is drawn of a host stand out of its cell.
const marginOf = (camera, ratio) => Math.ceil(2 * ratio * Math.max(1, camera.scale)) + 1;

// A part of the canvas, in its pixels: nothing is smoothed at its edges, so that it fits what is around it.
function partOf(at, { camera, across }, ratio) {
  const { x, y } = placeOf(at, across);
  const margin = marginOf(camera, ratio);
  const left = Math.floor((x - camera.x) * camera.scale * ratio) - margin;
  const top = Math.floor((y - camera.y) * camera.scale * ratio) - margin;
  const [width, height] = [CELL.width, CELL.height].map((size) => Math.ceil(size * camera.scale * ratio) + 2 * margin + 1);
  return { left, top, width, height };
}

// Draws all cells that are in a part, and none of what is beyond.
function drawPart(pen, scene, colours, { left, top, width, height }, ratio) {
  const { camera, map, across } = scene;
  pen.save();
  pen.setTransform(1, 0, 0, 1, 0, 0);
  pen.beginPath();
  pen.rect(left, top, width, height);
  pen.clip();
  pen.fillStyle = colours.ground;
  pen.fillRect(left, top, width, height);
  toCamera(pen, camera, ratio);
  const unit = 1 / (camera.scale * ratio);
  const margin = marginOf(camera, ratio) * unit;
  const [x, y] = [camera.x + left * unit - margin, camera.y + top * unit - margin];
  const [right, bottom] = [x + width * unit + 2 * margin, y + height * unit + 2 * margin];
  const rows = [y, bottom].map((one) => Math.floor(one / (CELL.height + CELL.gap)));
  const end = Math.min(map.hosts.length, (rows[1] + 1) * across);
  for (let at = Math.max(0, rows[0] * across); at < end; at += 1) {
    const place = placeOf(at, across);
    if (place.x > right || place.y > bottom || place.x + CELL.width < x || place.y + CELL.height < y) continue;
    const vms = scene.vmsOf[at].map((each) => map.vms[each]);
    if (isHeat(scene)) { square(pen, colours, map.hosts[at], vms, place, scene, at === scene.chosen); continue; }
    host(pen, colours, map.hosts[at], vms, place, scene, at === scene.chosen);
    const how = slots(vms.length);
    vms.forEach((each, number) => vm(pen, colours, each, slotOf(place, number, how), scene));
  }
  pen.restore();
}

function toCamera(pen, camera, ratio) {
  const scale = ratio * camera.scale;
  pen.setTransform(scale, 0, 0, scale, -camera.x * scale, -camera.y * scale);
}

// Draws what the camera sees; `scene` has map, vmsOf, across, camera, chosen, mode and matches. Where the places of
// hosts are given, their cells alone are drawn again: nothing else looks different since the last time.
export function draw(canvas, scene, colours, hosts) {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [Math.round(canvas.clientWidth * ratio), Math.round(canvas.clientHeight * ratio)];
  const few = hosts !== ALL && hosts.size <= FEW && canvas.width === width && canvas.height === height;
  if (canvas.width !== width || canvas.height !== height) for (const each of [canvas, cells]) Object.assign(each, { width, height });
  const below = cells.getContext("2d");
  const parts = few ? [...hosts].map((at) => partOf(at, scene, ratio)) : [{ left: 0, top: 0, width, height }];
  for (const part of parts) drawPart(below, scene, colours, part, ratio);
  const pen = canvas.getContext("2d");
  pen.setTransform(1, 0, 0, 1, 0, 0);
  pen.drawImage(cells, 0, 0);
  toCamera(pen, scene.camera, ratio);
  const { map, across } = scene;
  for (const one of map.vms) {
    if (one.to === undefined || one.host === undefined || one.to === one.host || !scene.matches(one)) continue;
    const place = placeOf(one.host, across);
    way(pen, colours, { x: place.x + CELL.width / 2, y: place.y + CELL.head }, placeOf(one.to, across));
  }
}
