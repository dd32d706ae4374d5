// The plug-in of the engine's portal: a menu entry, tabs of VMs, hosts and clusters, and what to do with a selection.
"use strict";

(() => {
  const NAME = "ovirt-placement";
  const MENU = "placement";
  const LOOK_MS = 250;
  const TABS = [
    { type: "VirtualMachine", event: "VirtualMachineSelectionChange", place: "vms-placement", view: "vm" },
    { type: "Host", event: "HostSelectionChange", place: "hosts-placement", view: "host" },
    { type: "Cluster", event: "ClusterSelectionChange", place: "clusters-placement", view: "cluster" },
  ];
  const BUTTONS = [
    { type: "VirtualMachine", view: "vm", label: "Why", title: "Which hosts may take it, and why", fits: isOne },
    { type: "VirtualMachine", view: "room", label: "Make Room", title: "What would make room for it", fits: isDown },
    { type: "Host", view: "fail", label: "What If It Fails", title: "What would come of this failure", fits: areSome },
  ];

  const api = parent.pluginApi(NAME);
  let looking = 0;

  function address(view, items) {
    return `plugin/${NAME}/tab.html#${[view, ...items.map((one) => encodeURIComponent(one.id))].join("/")}`;
  }

  function isOne(items) {
    return items.length === 1;
  }

  function isDown(items) {
    return isOne(items) && items[0].status === "Down";
  }

  function areSome(items) {
    return items.length > 0;
  }

  // The portal passes one list of what is selected; portals before 4.4 passed each as an argument of its own.
  function selected(given) {
    const items = Array.isArray(given[0]) ? given[0] : given;
    return items.filter((one) => one && typeof one.id === "string" && one.managed !== false);
  }

  // The portal removes a plug-in for good when an exception leaves it.
  function guarded(act, otherwise) {
    return (...given) => {
      try {
        return act(...given);
      } catch (error) {
        console.warn(`${NAME}: ${error}`);
        return otherwise;
      }
    };
  }

  // The portal takes every menu place that is added for its landing page: ours waits until there is one.
  const addMenu = guarded(() => {
    if (!looking || !api.currentPlace()) return;
    clearInterval(looking);
    looking = 0;
    api.addPrimaryMenuPlace("Placement", MENU, address("clusters", []), { priority: 40, icon: "fa-sitemap" });
  });

  function show(tab, items) {
    addMenu();
    api.setPlaceContentUrl(tab.place, address(tab.view, isOne(items) ? items : []));
  }

  function open(button, items) {
    const token = `placement-${button.view}`;
    api.showDialog(button.title, token, address(button.view, items), "1100px", "720px", {
      closeIconVisible: true,
      closeOnEscKey: true,
      buttons: [{ label: "Close", onClick: guarded(() => api.closeDialog(token)) }],
    });
  }

  function addTab(tab) {
    api.addDetailPlace(tab.type, "Placement", tab.place, address(tab.view, []), { priority: 90 });
  }

  function addButton(button) {
    api.addMenuPlaceActionButton(button.type, button.label, {
      id: `placement-${button.view}`,
      moreMenu: true,
      isAccessible: guarded(() => true, true),
      isEnabled: guarded((...given) => button.fits(selected(given)), false),
      onClick: guarded((...given) => open(button, selected(given))),
    });
  }

  function start() {
    TABS.forEach(guarded(addTab));
    BUTTONS.forEach(guarded(addButton));
    looking = setInterval(addMenu, LOOK_MS);
  }

  const handlers = { UiInit: guarded(start), UserLogin: addMenu };
  for (const tab of TABS) handlers[tab.event] = guarded((...given) => show(tab, selected(given)));
  api.register(handlers);
  api.ready();
})();
