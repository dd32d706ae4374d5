// The engine's units, made as its SchedulingManager makes them, and the policy of all clusters.
package conformance;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import org.ovirt.engine.core.bll.scheduling.InternalPolicyUnits;
import org.ovirt.engine.core.bll.scheduling.PolicyUnitImpl;
import org.ovirt.engine.core.bll.scheduling.SchedulingManager;
import org.ovirt.engine.core.bll.scheduling.pending.PendingResourceManager;
import org.ovirt.engine.core.bll.scheduling.policyunits.CPUPolicyUnit;
import org.ovirt.engine.core.bll.scheduling.policyunits.CpuAndNumaPinningWeightPolicyUnit;
import org.ovirt.engine.core.bll.scheduling.policyunits.CpuOverloadPolicyUnit;
import org.ovirt.engine.core.bll.scheduling.policyunits.EvenDistributionCPUWeightPolicyUnit;
import org.ovirt.engine.core.bll.scheduling.policyunits.EvenDistributionMemoryWeightPolicyUnit;
import org.ovirt.engine.core.bll.scheduling.policyunits.HaReservationWeightPolicyUnit;
import org.ovirt.engine.core.bll.scheduling.policyunits.HighPerformanceCpuPolicyUnit;
import org.ovirt.engine.core.bll.scheduling.policyunits.HostedEngineHAClusterWeightPolicyUnit;
import org.ovirt.engine.core.bll.scheduling.policyunits.MemoryPolicyUnit;
import org.ovirt.engine.core.bll.scheduling.policyunits.PinToHostPolicyUnit;
import org.ovirt.engine.core.bll.scheduling.policyunits.PreferredHostsWeightPolicyUnit;
import org.ovirt.engine.core.bll.scheduling.policyunits.RankSelectorPolicyUnit;
import org.ovirt.engine.core.bll.scheduling.policyunits.VmAffinityFilterPolicyUnit;
import org.ovirt.engine.core.bll.scheduling.policyunits.VmAffinityWeightPolicyUnit;
import org.ovirt.engine.core.bll.scheduling.policyunits.VmToHostAffinityFilterPolicyUnit;
import org.ovirt.engine.core.bll.scheduling.policyunits.VmToHostAffinityWeightPolicyUnit;
import org.ovirt.engine.core.common.scheduling.ClusterPolicy;
import org.ovirt.engine.core.common.scheduling.PolicyUnit;
import org.ovirt.engine.core.common.utils.Pair;
import org.ovirt.engine.core.compat.Guid;

final class Policies {
    static final Guid POLICY = Guid.createGuidFromString("5c000000-0000-4000-8000-000000000001");

    private static final List<Class<? extends PolicyUnitImpl>> FILTERS = List.of(
            CPUPolicyUnit.class,
            CpuOverloadPolicyUnit.class,
            MemoryPolicyUnit.class,
            VmAffinityFilterPolicyUnit.class,
            VmToHostAffinityFilterPolicyUnit.class);

    // All of the policy "none", with their factors: of equal hosts, the units decide which is come upon first.
    private static final Map<Class<? extends PolicyUnitImpl>, Integer> WEIGHTS = Map.of(
            EvenDistributionCPUWeightPolicyUnit.class, 2,
            EvenDistributionMemoryWeightPolicyUnit.class, 1,
            PreferredHostsWeightPolicyUnit.class, 99,
            HostedEngineHAClusterWeightPolicyUnit.class, 1,
            HaReservationWeightPolicyUnit.class, 1,
            VmAffinityWeightPolicyUnit.class, 1,
            VmToHostAffinityWeightPolicyUnit.class, 20,
            HighPerformanceCpuPolicyUnit.class, 4,
            CpuAndNumaPinningWeightPolicyUnit.class, 5);

    private Policies() {
    }

    static <T extends PolicyUnitImpl> T unit(Beans beans, Class<T> type) throws Exception {
        return beans.inject(type.getConstructor(PolicyUnit.class, PendingResourceManager.class)
                .newInstance(unregistered(type), beans.get(PendingResourceManager.class)));
    }

    // The scheduler with a policy of the units that our copies have.
    @SuppressWarnings("unchecked")
    static SchedulingManager manager(Beans beans) throws Exception {
        SchedulingManager manager = beans.get(SchedulingManager.class);
        Map<Guid, PolicyUnitImpl> units = (Map<Guid, PolicyUnitImpl>) Beans.read(manager, "policyUnits");
        ClusterPolicy policy = new ClusterPolicy();
        policy.setId(POLICY);
        policy.setFilters(new ArrayList<>());
        policy.setFilterPositionMap(new HashMap<>());
        policy.setFunctions(new ArrayList<>());
        for (Class<? extends PolicyUnitImpl> type : FILTERS) {
            PolicyUnitImpl unit = unit(beans, type);
            units.put(unit.getPolicyUnit().getId(), unit);
            policy.getFilters().add(unit.getPolicyUnit().getId());
        }
        for (Map.Entry<Class<? extends PolicyUnitImpl>, Integer> entry : WEIGHTS.entrySet()) {
            PolicyUnitImpl unit = unit(beans, entry.getKey());
            units.put(unit.getPolicyUnit().getId(), unit);
            policy.getFunctions().add(new Pair<>(unit.getPolicyUnit().getId(), entry.getValue()));
        }
        PolicyUnitImpl selector = unit(beans, RankSelectorPolicyUnit.class);
        units.put(selector.getPolicyUnit().getId(), selector);
        policy.setSelector(selector.getPolicyUnit().getId());
        ((Map<Guid, ClusterPolicy>) Beans.read(manager, "policyMap")).put(POLICY, policy);
        Beans.set(manager, "mandatoryFilters", new ArrayList<>(List.of(unit(beans, PinToHostPolicyUnit.class))));
        return manager;
    }

    // The engine registers all units but one, which has no id of its own.
    private static PolicyUnit unregistered(Class<? extends PolicyUnitImpl> type) {
        boolean known = InternalPolicyUnits.getList().contains(type)
                || InternalPolicyUnits.getMandatoryUnits().contains(type);
        return known ? null : new PolicyUnit();
    }
}
