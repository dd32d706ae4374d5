// What has changed on a map: the service sends a VM or two of ten thousand, and their cells alone are drawn again.

// The newer map, and the places of the hosts whose cells look different.
export function changed(map, changes) {
  const dirty = new Set();
  const touch = (vm) => { if (vm.host !== undefined) dirty.add(vm.host); };
  const hosts = replaced(map.hosts, changes.hosts, "host");
  for (const one of changes.hosts ?? []) dirty.add(one.at);
  const gone = new Set(changes.gone);
  const vms = gone.size ? map.vms.filter((vm, at) => { if (gone.has(at)) touch(vm); return !gone.has(at); }) : map.vms.slice();
  for (const { at, vm } of changes.came ?? []) { vms.splice(at, 0, vm); touch(vm); }
  for (const { at, vm } of changes.changed ?? []) { touch(vms[at]); vms[at] = vm; touch(vm); }
  return { map: { ...map, number: changes.number, hosts, groups: replaced(map.groups, changes.groups, "group"), vms }, dirty };
}

function replaced(list, changes, name) {
  if (!changes?.length) return list;
  const now = list.slice();
  for (const one of changes) now[one.at] = one[name];
  return now;
}
