// A state file as the engine's entities: what the database would hold, and what the monitoring would have seen.
package conformance;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.StringJoiner;
import java.util.stream.Collectors;

import org.ovirt.engine.core.common.businessentities.ArchitectureType;
import org.ovirt.engine.core.common.businessentities.Cluster;
import org.ovirt.engine.core.common.businessentities.DisplayType;
import org.ovirt.engine.core.common.businessentities.HugePage;
import org.ovirt.engine.core.common.businessentities.Label;
import org.ovirt.engine.core.common.businessentities.LabelBuilder;
import org.ovirt.engine.core.common.businessentities.MigrationSupport;
import org.ovirt.engine.core.common.businessentities.OriginType;
import org.ovirt.engine.core.common.businessentities.VDS;
import org.ovirt.engine.core.common.businessentities.VDSStatus;
import org.ovirt.engine.core.common.businessentities.VM;
import org.ovirt.engine.core.common.businessentities.VMStatus;
import org.ovirt.engine.core.common.businessentities.VdsSpmStatus;
import org.ovirt.engine.core.common.scheduling.AffinityGroup;
import org.ovirt.engine.core.common.scheduling.EntityAffinityRule;
import org.ovirt.engine.core.compat.Guid;
import org.ovirt.engine.core.compat.Version;

import com.fasterxml.jackson.databind.JsonNode;

final class State {
    // What a host has of memory where the state does not tell: enough never to be the reason.
    private static final long PLENTY_MB = 1L << 30;
    private static final double LONG_MINUTES = 100;
    private static final int GUEST_OVERHEAD_MB = 65;
    // What QXL takes: four times as much memory as a head has, and video memory by the operating system.
    private static final int QXL_HEAD_MB = 16;
    private static final int QXL_RAM_MULTIPLIER = 4;
    private static final int QXL_VRAM_MB = 8;

    final Map<Guid, Cluster> clusters = new LinkedHashMap<>();
    final Map<Guid, VDS> hosts = new LinkedHashMap<>();
    final Map<Guid, VM> vms = new LinkedHashMap<>();
    final Map<Guid, Guid> pending = new LinkedHashMap<>();
    final Map<Guid, Integer> freeMb = new HashMap<>();
    private final Map<Guid, Double> overloadedMinutes = new HashMap<>();
    private final JsonNode content;

    State(JsonNode content) {
        this.content = content;
        content.get("clusters").forEach(this::readCluster);
        content.get("hosts").forEach(this::readHost);
        content.get("vms").forEach(this::readVm);
        for (JsonNode entry : each("pending")) {
            pending.put(id(entry, "vm"), id(entry, "host"));
        }
        for (JsonNode vm : content.get("vms")) {
            if (vm.hasNonNull("migrating_to")) {
                pending.putIfAbsent(id(vm, "id"), id(vm, "migrating_to"));
            }
        }
        hosts.values().forEach(host -> host.setVmCount((int) running(host.getId()).size()));
    }

    Iterable<JsonNode> each(String key) {
        return content.has(key) ? content.get(key) : new ArrayList<>();
    }

    double overloadedMinutes(Guid host) {
        return overloadedMinutes.get(host);
    }

    List<VM> running(Guid host) {
        return vms.values().stream().filter(vm -> host.equals(vm.getRunOnVds())).collect(Collectors.toList());
    }

    // Fresh ones, as each read of the database gives: some callers change them.
    List<AffinityGroup> groups(boolean flat) {
        List<AffinityGroup> found = new ArrayList<>();
        for (JsonNode group : each("affinity_groups")) {
            found.add(readGroup(group, flat));
        }
        return found;
    }

    List<Label> labels() {
        List<Label> found = new ArrayList<>();
        for (JsonNode label : each("affinity_labels")) {
            found.add(new LabelBuilder().id(id(label, "id")).name(label.get("name").asText())
                    .vmIds(new LinkedHashSet<>(ids(label, "vms"))).hostIds(new LinkedHashSet<>(ids(label, "hosts")))
                    .implicitAffinityGroup(label.path("implicit").asBoolean()).build());
        }
        return found;
    }

    static Guid id(JsonNode node, String key) {
        return node.hasNonNull(key) ? Guid.createGuidFromString(node.get(key).asText()) : null;
    }

    static List<Guid> ids(JsonNode node, String key) {
        List<Guid> found = new ArrayList<>();
        if (node.has(key)) {
            node.get(key).forEach(one -> found.add(Guid.createGuidFromString(one.asText())));
        }
        return found;
    }

    private void readCluster(JsonNode node) {
        Cluster cluster = new Cluster();
        cluster.setId(id(node, "id"));
        cluster.setName(node.get("name").asText());
        cluster.setArchitecture(ArchitectureType.x86_64);
        cluster.setCompatibilityVersion(new Version(node.path("compatibility").asText("4.7")));
        cluster.setCountThreadsAsCores(node.path("count_threads_as_cores").asBoolean());
        cluster.setHaReservation(node.path("ha_reservation").asBoolean());
        cluster.setClusterPolicyId(Policies.POLICY);
        if (node.path("upgrade_mode").asBoolean()) {
            cluster.setUpgradeRunning(true);
        }
        Map<String, String> properties = new LinkedHashMap<>();
        node.path("scheduling_properties").fields()
                .forEachRemaining(entry -> properties.put(entry.getKey(), entry.getValue().asText()));
        cluster.setClusterPolicyProperties(properties);
        clusters.put(cluster.getId(), cluster);
    }

    private void readHost(JsonNode node) {
        VDS host = new VDS();
        host.setId(id(node, "id"));
        host.setVdsName(node.get("name").asText());
        host.setClusterId(id(node, "cluster"));
        host.setStatus(VDSStatus.valueOf(camelCase(node.get("status").asText())));
        host.setCpuSockets(1);
        host.setCpuCores(node.get("cores").asInt());
        host.setCpuThreads(node.hasNonNull("threads") ? node.get("threads").asInt() : host.getCpuCores());
        host.setUsageCpuPercent(node.hasNonNull("cpu_percent") ? node.get("cpu_percent").asInt() : null);
        host.setMemFree(node.hasNonNull("memory_free_mb") ? node.get("memory_free_mb").asLong() : PLENTY_MB);
        host.setSwapFree(node.hasNonNull("swap_free_mb") ? node.get("swap_free_mb").asLong() : PLENTY_MB);
        host.setSwapTotal(host.getSwapFree());
        host.setMaxVdsMemoryOverCommit(100);
        host.setMemCommited(0);
        host.setReservedMem(0);
        host.setGuestOverhead(GUEST_OVERHEAD_MB);
        host.setSpmStatus(node.path("spm").asBoolean() ? VdsSpmStatus.SPM : VdsSpmStatus.None);
        List<HugePage> pages = new ArrayList<>();
        node.path("free_huge_pages").fields().forEachRemaining(entry -> pages.add(
                new HugePage(Integer.parseInt(entry.getKey()), entry.getValue().asInt(), entry.getValue().asInt())));
        host.setHugePages(pages);
        overloadedMinutes.put(host.getId(), node.path("overloaded_minutes").asDouble(LONG_MINUTES));
        freeMb.put(host.getId(), node.get("free_mb").asInt());
        hosts.put(host.getId(), host);
    }

    private void readVm(JsonNode node) {
        VM vm = new VM();
        vm.setId(id(node, "id"));
        vm.setName(node.get("name").asText());
        vm.setClusterId(id(node, "cluster"));
        Cluster cluster = clusters.get(vm.getClusterId());
        vm.setClusterName(cluster.getName());
        vm.setClusterArch(ArchitectureType.valueOf(node.path("architecture").asText("x86_64")));
        vm.setClusterCompatibilityVersion(cluster.getCompatibilityVersion());
        vm.setRunOnVds(id(node, "host"));
        vm.setStatus(status(node.get("status").asText()));
        vm.setVmMemSizeMb(node.get("memory_mb").asInt());
        vm.setMaxMemorySizeMb(node.path("max_memory_mb").asInt(4 * vm.getVmMemSizeMb()));
        vm.setMinAllocatedMem(node.get("guaranteed_mb").asInt());
        vm.setThreadsPerCpu(node.path("threads_per_core").asInt(1));
        vm.setNumOfSockets(node.get("vcpus").asInt() / vm.getThreadsPerCpu());
        vm.setCpuPerSocket(1);
        vm.setNumOfIoThreads(node.path("io_threads").asInt());
        setVideo(vm, node.path("video_mb").asInt());
        StringJoiner properties = new StringJoiner(";");
        node.path("custom_properties").fields()
                .forEachRemaining(entry -> properties.add(entry.getKey() + "=" + entry.getValue().asText()));
        vm.setCustomProperties(properties.toString());
        vm.setAutoStartup(node.get("ha").asBoolean());
        vm.setOrigin(node.get("hosted_engine").asBoolean() ? OriginType.MANAGED_HOSTED_ENGINE : OriginType.OVIRT);
        vm.setDedicatedVmForVdsList(ids(node, "pinned_hosts"));
        vm.setMigrationSupport(node.get("migratable").asBoolean() ? MigrationSupport.MIGRATABLE
                : vm.getDedicatedVmForVdsList().isEmpty() ? MigrationSupport.IMPLICITLY_NON_MIGRATABLE
                        : MigrationSupport.PINNED_TO_HOST);
        vm.getStatisticsData().setUsageCpuPercent(percent(node, "usage_cpu_percent"));
        vm.getStatisticsData().setUsageMemPercent(percent(node, "usage_mem_percent"));
        vms.put(vm.getId(), vm);
    }

    // The console and operating system of a VM with so much video memory; without any the engine still counts VGA's.
    private static void setVideo(VM vm, int megabytes) {
        vm.setDefaultDisplayType(DisplayType.vga);
        for (int heads = 1; heads <= 4; heads++) {
            for (int multiplier = 0; multiplier <= 4; multiplier++) {
                int vram = multiplier == 0 ? QXL_VRAM_MB : multiplier * QXL_HEAD_MB * heads;
                if (megabytes == QXL_RAM_MULTIPLIER * QXL_HEAD_MB * heads + vram) {
                    vm.setDefaultDisplayType(DisplayType.qxl);
                    vm.setNumOfMonitors(heads);
                    vm.setVmOs(multiplier);
                }
            }
        }
    }

    private AffinityGroup readGroup(JsonNode node, boolean flat) {
        AffinityGroup group = new AffinityGroup();
        group.setId(id(node, "id"));
        group.setName(node.get("name").asText());
        group.setClusterId(id(node, "cluster"));
        group.setPriorityFromDouble(node.get("priority").asDouble());
        JsonNode vmRule = node.get("vms_rule");
        group.setVmAffinityRule(rule(vmRule));
        group.setVmEnforcing(vmRule.get("enforcing").asBoolean());
        JsonNode hostRule = node.get("hosts_rule");
        group.setVdsAffinityRule(rule(hostRule));
        group.setVdsEnforcing(hostRule.get("enforcing").asBoolean());
        Set<Guid> vmIds = new LinkedHashSet<>(ids(node, "vms"));
        Set<Guid> hostIds = new LinkedHashSet<>(ids(node, "hosts"));
        if (flat) {
            Set<Guid> vmLabels = new HashSet<>(ids(node, "vm_labels"));
            Set<Guid> hostLabels = new HashSet<>(ids(node, "host_labels"));
            for (Label label : labels()) {
                vmIds.addAll(vmLabels.contains(label.getId()) ? label.getVms() : Set.of());
                hostIds.addAll(hostLabels.contains(label.getId()) ? label.getHosts() : Set.of());
            }
        } else {
            group.setVmLabels(ids(node, "vm_labels"));
            group.setHostLabels(ids(node, "host_labels"));
        }
        group.setVmIds(new ArrayList<>(vmIds));
        group.setVdsIds(new ArrayList<>(hostIds));
        return group;
    }

    private static EntityAffinityRule rule(JsonNode node) {
        return !node.get("enabled").asBoolean() ? EntityAffinityRule.DISABLED
                : node.get("positive").asBoolean() ? EntityAffinityRule.POSITIVE : EntityAffinityRule.NEGATIVE;
    }

    private static Integer percent(JsonNode node, String key) {
        return node.hasNonNull(key) ? node.get(key).asInt() : null;
    }

    private static VMStatus status(String word) {
        return word.equals("migrating") ? VMStatus.MigratingFrom : VMStatus.valueOf(camelCase(word));
    }

    private static String camelCase(String words) {
        StringBuilder name = new StringBuilder();
        for (String word : words.split("_")) {
            name.append(Character.toUpperCase(word.charAt(0))).append(word.substring(1));
        }
        return name.toString();
    }
}
