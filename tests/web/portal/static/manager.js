// What the engine's PluginManager does to plug-ins: their states, who may call what, and when one is removed.
"use strict";

const plugins = new Map();
const later = new Map();
let invoking = false;
let tokensGiven = 0;
let ui = {}; // what places.js draws

function define() {
  for (const data of pluginDefinitions) {
    if (plugins.has(data.name)) continue;
    const iframe = document.createElement("iframe");
    iframe.src = data.url;
    iframe.title = data.name;
    iframe.style.cssText = "position:absolute;width:0;height:0;border-style:none";
    plugins.set(data.name, { data, iframe, state: "DEFINED", handlers: null, options: {} });
    if (data.enabled === false) continue;
    document.body.append(iframe);
    plugins.get(data.name).state = "LOADING";
  }
}

// Calls a handler; an exception out of it removes the plug-in for good.
function invoke(plugin, name, given) {
  const handler = plugin.handlers?.[name];
  try {
    if (typeof handler === "function") handler.apply(null, given);
    return true;
  } catch (error) {
    plugin.iframe.remove();
    plugin.state = "FAILED";
    return false;
  }
}

function init(plugin) {
  if (!invoking) return;
  if (plugin.state === "READY") {
    plugin.state = "INITIALIZING";
    if (invoke(plugin, "UiInit", [])) plugin.state = "IN_USE";
  }
  if (plugin.state === "IN_USE") {
    const waiting = later.get(plugin) ?? [];
    later.delete(plugin);
    for (const command of waiting) command();
  }
}

function enableInvocation() {
  invoking = true;
  setTimeout(() => plugins.forEach(init));
}

// Selections: only those in use hear of them, and nothing is queued.
function invokeNow(name, given, fits = () => true) {
  if (!invoking) return;
  for (const plugin of plugins.values()) {
    if (plugin.state === "IN_USE" && fits(plugin)) invoke(plugin, name, given);
  }
}

// Log-ins and messages wait for those that come into use later.
function invokeNowOrLater(name, given, fits = () => true) {
  const waiting = [...plugins.values()].filter((plugin) => !invoking || plugin.state !== "IN_USE");
  invokeNow(name, given, fits);
  for (const plugin of waiting) {
    const command = () => { if (plugin.state === "IN_USE" && fits(plugin)) invoke(plugin, name, given); };
    later.set(plugin, [...(later.get(plugin) ?? []), command]);
  }
}

addEventListener("message", (event) => {
  const fits = (plugin) => {
    const allowed = [plugin.options.allowedMessageOrigins ?? []].flat();
    return allowed.includes("*") || allowed.includes(event.origin);
  };
  invokeNowOrLater("MessageReceived", [event.data, event.source], fits);
});

function pluginApi(name) {
  const plugin = plugins.get(name);
  const active = () => plugin && ["INITIALIZING", "IN_USE"].includes(plugin.state);
  const safe = () => active() || plugin?.state === "LOADING";
  const api = {
    register: (handlers) => { plugin.handlers ??= handlers; },
    options: (options) => { plugin.options = options; },
    ready: () => {
      if (plugin.state !== "LOADING" || !plugin.handlers) return;
      plugin.state = "READY";
      init(plugin);
    },
    configObject: () => plugin?.data.config,
    loginUserName: () => (safe() ? userInfo.userName : undefined),
    loginUserId: () => (safe() ? userInfo.id : undefined),
    ssoToken: () => { tokensGiven += 1; return safe() ? userInfo.ssoToken : undefined; },
    currentPlace: () => (safe() ? ui.current() : undefined),
  };
  for (const call of ["addPrimaryMenuPlace", "addDetailPlace", "setPlaceContentUrl", "addMenuPlaceActionButton",
    "showDialog", "closeDialog"]) {
    api[call] = (...given) => { if (active()) ui[call](...given); };
  }
  return api;
}
