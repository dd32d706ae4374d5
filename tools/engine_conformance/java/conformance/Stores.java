// Stands for the engine's database: each method answers as its stored procedure does.
package conformance;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import java.util.stream.Collectors;

import org.ovirt.engine.core.bll.scheduling.SchedulingManager;
import org.ovirt.engine.core.bll.scheduling.pending.PendingResourceManager;
import org.ovirt.engine.core.common.businessentities.Label;
import org.ovirt.engine.core.common.businessentities.VDS;
import org.ovirt.engine.core.common.businessentities.VDSStatus;
import org.ovirt.engine.core.common.businessentities.VM;
import org.ovirt.engine.core.common.businessentities.VMStatus;
import org.ovirt.engine.core.common.scheduling.AffinityGroup;
import org.ovirt.engine.core.compat.Guid;
import org.ovirt.engine.core.dao.ClusterDao;
import org.ovirt.engine.core.dao.LabelDao;
import org.ovirt.engine.core.dao.VdsDao;
import org.ovirt.engine.core.dao.VdsDynamicDao;
import org.ovirt.engine.core.dao.VdsNumaNodeDao;
import org.ovirt.engine.core.dao.VdsStaticDao;
import org.ovirt.engine.core.dao.VmDao;
import org.ovirt.engine.core.dao.VmNumaNodeDao;
import org.ovirt.engine.core.dao.VmStaticDao;
import org.ovirt.engine.core.dao.scheduling.AffinityGroupDao;
import org.ovirt.engine.core.vdsbroker.ResourceManager;
import org.ovirt.engine.core.vdsbroker.VdsManager;
import org.ovirt.engine.core.vdsbroker.VmManager;
import org.ovirt.engine.core.vdsbroker.monitoring.HostMonitoring;

final class Stores {
    private static final Set<VMStatus> MIGRATING = Set.of(VMStatus.MigratingFrom, VMStatus.MigratingTo);

    private Stores() {
    }

    static void fill(Beans beans, State state) throws Throwable {
        vms(beans, state);
        hosts(beans, state);
        clusters(beans, state);
        groups(beans, state);
        labels(beans, state);
        beans.stub(VmNumaNodeDao.class, "getAllVmNumaNodeByVmId", given -> new ArrayList<>());
        beans.stub(VdsNumaNodeDao.class, "getAllVdsNumaNodeByVdsId", given -> new ArrayList<>());
        monitoring(beans, state);
        pending(beans, state);
        overloaded(beans, state);
    }

    private static List<VM> vmsThat(State state, Predicate<VM> wanted) {
        return state.vms.values().stream().filter(wanted).collect(Collectors.toList());
    }

    private static void vms(Beans beans, State state) {
        beans.stub(VmDao.class, "get", given -> state.vms.get(given[0]));
        beans.stub(VmDao.class, "getVmsByIds", given -> vmsThat(state, vm -> contains(given[0], vm.getId())));
        // GetVmsByClusterId, GetRunningVmsByClusterId, GetHostedEngineVm
        beans.stub(VmDao.class, "getAllForCluster",
                given -> vmsThat(state, vm -> vm.getClusterId().equals(given[0])));
        beans.stub(VmDao.class, "getAllRunningByCluster",
                given -> vmsThat(state, vm -> vm.getRunOnVds() != null && vm.getClusterId().equals(given[0])));
        beans.stub(VmDao.class, "getHostedEngineVm",
                given -> state.vms.values().stream().filter(VM::isHostedEngine).findFirst().orElse(null));
        beans.stub(VmDao.class, "getAllRunningForMultipleVds",
                given -> vmsThat(state, vm -> contains(given[0], vm.getRunOnVds())).stream()
                        .collect(Collectors.groupingBy(VM::getRunOnVds)));
        beans.stub(VmStaticDao.class, "getByIds",
                given -> vmsThat(state, vm -> contains(given[0], vm.getId())).stream()
                        .map(VM::getStaticData).collect(Collectors.toList()));
    }

    private static boolean contains(Object ids, Guid id) {
        return ((Collection<?>) ids).contains(id);
    }

    private static void hosts(Beans beans, State state) {
        beans.stub(VdsDao.class, "get", given -> state.hosts.get(given[0]));
        // getVdsForClusterWithStatus orders by id; PostgreSQL compares ids as unsigned.
        beans.stub(VdsDao.class, "getAllForClusterWithStatus",
                given -> state.hosts.values().stream()
                        .filter(host -> host.getClusterId().equals(given[0]) && host.getStatus() == given[1])
                        .sorted(Comparator.comparing(host -> host.getId().toString()))
                        .collect(Collectors.toList()));
        beans.stub(VdsDynamicDao.class, "get", given -> state.hosts.get(given[0]).getDynamicData());
        beans.stub(VdsStaticDao.class, "getByIds",
                given -> state.hosts.values().stream().filter(host -> contains(given[0], host.getId()))
                        .map(VDS::getStaticData).collect(Collectors.toList()));
        beans.stub(VdsDao.class, "getAllForClusterWithoutMigrating", given -> withoutMigrating(state, given[0]));
    }

    // GetVdsWithoutMigratingVmsByClusterId: up, nothing pending, and nothing that migrates, saves or restores.
    private static List<VDS> withoutMigrating(State state, Object cluster) {
        Set<VMStatus> busy = Set.of(
                VMStatus.MigratingFrom, VMStatus.MigratingTo, VMStatus.SavingState, VMStatus.RestoringState);
        return state.hosts.values().stream()
                .filter(host -> host.getClusterId().equals(cluster) && host.getStatus() == VDSStatus.Up)
                .filter(host -> !state.pending.containsValue(host.getId()))
                .filter(host -> state.running(host.getId()).stream().noneMatch(vm -> busy.contains(vm.getStatus())))
                .collect(Collectors.toList());
    }

    private static void clusters(Beans beans, State state) {
        beans.stub(ClusterDao.class, "get", given -> state.clusters.get(given[0]));
        beans.stub(ClusterDao.class, "getAll", given -> new ArrayList<>(state.clusters.values()));
        // GetClustersWithoutMigratingVms
        beans.stub(ClusterDao.class, "getWithoutMigratingVms",
                given -> state.clusters.values().stream()
                        .filter(cluster -> state.vms.values().stream().noneMatch(vm ->
                                vm.getClusterId().equals(cluster.getId()) && MIGRATING.contains(vm.getStatus())))
                        .collect(Collectors.toList()));
    }

    private static void groups(Beans beans, State state) {
        beans.stub(AffinityGroupDao.class, "getAllAffinityGroupsWithFlatLabelsByVmId",
                given -> groupsThat(state, true, group -> group.getVmIds().contains(given[0])));
        beans.stub(AffinityGroupDao.class, "getAllAffinityGroupsWithFlatLabelsByClusterId",
                given -> groupsThat(state, true, group -> group.getClusterId().equals(given[0])));
        beans.stub(AffinityGroupDao.class, "getAllAffinityGroupsByClusterId",
                given -> groupsThat(state, false, group -> group.getClusterId().equals(given[0])));
    }

    private static List<AffinityGroup> groupsThat(State state, boolean flat, Predicate<AffinityGroup> wanted) {
        return state.groups(flat).stream().filter(wanted).collect(Collectors.toList());
    }

    private static void labels(Beans beans, State state) {
        beans.stub(LabelDao.class, "getAllByEntityIds", given -> labelsThat(state, label ->
                label.getVms().stream().anyMatch(id -> contains(given[0], id))
                        || label.getHosts().stream().anyMatch(id -> contains(given[0], id))));
        beans.stub(LabelDao.class, "getAllByIds",
                given -> labelsThat(state, label -> contains(given[0], label.getId())));
        // GetAllLabelsForCluster: those with any member of the cluster, with all their members
        beans.stub(LabelDao.class, "getAllByClusterId", given -> labelsThat(state, label ->
                label.getVms().stream().anyMatch(id -> state.vms.get(id).getClusterId().equals(given[0]))
                        || label.getHosts().stream().anyMatch(id -> state.hosts.get(id).getClusterId().equals(given[0]))));
    }

    private static List<Label> labelsThat(State state, Predicate<Label> wanted) {
        return state.labels().stream().filter(wanted).collect(Collectors.toList());
    }

    // What the engine's monitoring would have written down of hosts and VMs.
    private static void monitoring(Beans beans, State state) {
        ResourceManager manager = beans.get(ResourceManager.class);
        @SuppressWarnings("unchecked")
        Map<Guid, VmManager> vmManagers = (Map<Guid, VmManager>) Beans.read(manager, "vmManagers");
        for (VM vm : state.vms.values()) {
            VmManager one = Beans.bare(VmManager.class);
            Beans.set(one, "vmId", vm.getId());
            Beans.set(one, "statistics", vm.getStatisticsData());
            Beans.set(one, "numOfCpus", vm.getNumOfCpus());
            Beans.set(one, "numOfCores", vm.getNumOfCpus(false));
            Beans.set(one, "cpuPinningPolicy", vm.getCpuPinningPolicy());
            vmManagers.put(vm.getId(), one);
        }
        @SuppressWarnings("unchecked")
        Map<Guid, VdsManager> hostManagers = (Map<Guid, VdsManager>) Beans.read(manager, "vdsManagersDict");
        for (VDS host : state.hosts.values()) {
            VdsManager one = Beans.bare(VdsManager.class);
            Beans.set(one, "cpuTopology", new ArrayList<>());
            hostManagers.put(host.getId(), one);
            Map<Guid, VMStatus> statuses = new HashMap<>();
            state.running(host.getId()).forEach(vm -> statuses.put(vm.getId(), vm.getStatus()));
            HostMonitoring.refreshCommitedMemory(host, statuses, manager);
            host.setMemCommited(0);
        }
    }

    // Records what is on its way by the engine's own bookkeeping; a host's free memory is what is left after it.
    private static void pending(Beans beans, State state) throws Throwable {
        SchedulingManager manager = beans.get(SchedulingManager.class);
        PendingResourceManager records = new PendingResourceManager(beans.get(ResourceManager.class));
        beans.put(PendingResourceManager.class, records);
        Beans.set(manager, "pendingResourceManager", records);
        for (Map.Entry<Guid, Guid> entry : state.pending.entrySet()) {
            VM vm = state.vms.get(entry.getKey());
            Beans.call(manager, "addPendingResources", vm, state.hosts.get(entry.getValue()), Map.of(), List.of());
        }
        List<VDS> hosts = new ArrayList<>(state.hosts.values());
        Beans.call(manager, "refreshCachedPendingValues", hosts);
        for (VDS host : hosts) {
            host.setPhysicalMemMb(state.freeMb.get(host.getId()) + host.getPendingVmemSize());
        }
        Beans.call(manager, "refreshCachedPendingValues", hosts);
    }

    // Since when hosts have been busy, or idle: for as long as the question says, where they are so now.
    private static void overloaded(Beans beans, State state) {
        for (VDS host : state.hosts.values()) {
            beans.get(SchedulingManager.class).updateHostSchedulingStats(host);
            if (host.getCpuOverCommitTimestamp() != null) {
                long milliseconds = TimeUnit.SECONDS.toMillis(Math.round(60 * state.overloadedMinutes(host.getId())));
                host.setCpuOverCommitTimestamp(new Date(System.currentTimeMillis() - milliseconds));
            }
        }
    }
}
