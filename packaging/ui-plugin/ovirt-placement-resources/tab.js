// A place or dialog of the portal: frames the page's view of what stands behind the #, and lets its user in.
"use strict";

(() => {
  const NAME = "ovirt-placement";
  const VIEWS = {
    clusters: () => "/",
    vm: ([id]) => (id ? `/vm/${id}` : "/search"),
    room: ([id]) => (id ? `/vm/${id}/room` : "/search"),
    host: ([id]) => (id ? `/host/${id}` : "/search"),
    cluster: ([id]) => (id ? `/cluster/${id}` : "/search"),
    fail: (ids) => (ids.length ? `/ha?${ids.map((id) => `host=${id}`).join("&")}` : "/search"),
  };

  const api = parent.pluginApi?.(NAME);
  const said = document.getElementById("said");
  const frame = document.getElementById("view");

  function say(text) {
    said.textContent = text;
    frame.hidden = text !== "";
  }

  // Where the page is: a path of the engine's own name, or an address with another port of it.
  function page() {
    const found = new URL(api.configObject()?.page ?? "", location.origin);
    if (!/^https?:$/.test(found.protocol)) throw new Error(`${found} is no address of a page`);
    return { origin: found.origin, root: found.pathname.replace(/\/+$/, "") };
  }

  function wanted() {
    const [view, ...ids] = location.hash.slice(1).split("/");
    const known = ids.map((id) => encodeURIComponent(decodeURIComponent(id)));
    return (Object.hasOwn(VIEWS, view) ? VIEWS[view] : VIEWS.clusters)(known);
  }

  function show() {
    const { origin, root } = page();
    const query = new URLSearchParams({ user: api.loginUserId() ?? "", next: root + wanted() });
    say("");
    // Not by `src`: that would add to the history of the portal.
    frame.contentWindow.location.replace(`${origin}${root}/portal?${query}`);
  }

  // The token goes to the page alone: to the frame that asks, and only while it shows the page's origin.
  function hear(event) {
    const { origin } = page();
    if (event.origin !== origin || event.source !== frame.contentWindow) return;
    if (event.data?.placement !== "token wanted") return;
    frame.contentWindow.postMessage({ placement: "token", token: api.ssoToken() }, origin);
  }

  function guarded(act) {
    return (event) => {
      try {
        act(event);
      } catch (error) {
        say(`The placement page cannot be shown: ${error.message}.`);
      }
    };
  }

  if (!api) {
    say("This is a part of the engine's portal.");
    return;
  }
  addEventListener("message", guarded(hear));
  addEventListener("hashchange", guarded(show));
  guarded(show)();
})();
