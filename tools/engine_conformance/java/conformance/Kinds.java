// What can be asked, by its kind, and which of the engine's classes answers it.
package conformance;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

import org.ovirt.engine.core.bll.scheduling.HaReservationHandling;
import org.ovirt.engine.core.bll.scheduling.PolicyUnitImpl;
import org.ovirt.engine.core.bll.scheduling.SchedulingContext;
import org.ovirt.engine.core.bll.scheduling.SchedulingManager;
import org.ovirt.engine.core.bll.scheduling.arem.AffinityRulesEnforcer;
import org.ovirt.engine.core.bll.scheduling.arem.AffinityRulesUtils;
import org.ovirt.engine.core.bll.scheduling.external.BalanceResult;
import org.ovirt.engine.core.bll.scheduling.pending.PendingResourceManager;
import org.ovirt.engine.core.bll.scheduling.selector.SelectorInstance;
import org.ovirt.engine.core.common.businessentities.Cluster;
import org.ovirt.engine.core.common.businessentities.VDS;
import org.ovirt.engine.core.common.businessentities.VM;
import org.ovirt.engine.core.common.scheduling.AffinityGroup;
import org.ovirt.engine.core.common.scheduling.PerHostMessages;
import org.ovirt.engine.core.common.utils.Pair;
import org.ovirt.engine.core.compat.Guid;
import org.ovirt.engine.core.dao.scheduling.AffinityGroupDao;

import com.fasterxml.jackson.databind.JsonNode;

final class Kinds {
    private static final String UNITS = "org.ovirt.engine.core.bll.scheduling.policyunits.";

    private Kinds() {
    }

    static Object answer(String kind, Beans beans, State state, JsonNode request) throws Throwable {
        switch (kind) {
        case "filter":
            return filter(beans, state, request);
        case "weight":
            return weight(beans, state, request);
        case "balance":
            return balance(beans, state, request);
        case "selector":
            return selector(beans, request);
        case "ha_check":
            return haCheck(beans, state, request);
        case "conflicts":
            return conflicts(beans, request);
        case "unified":
            return sets(AffinityRulesUtils.getUnifiedPositiveAffinityGroups(hardPositive(beans, request)));
        case "closure":
            return text(Policies.manager(beans).positiveAffinityClosure(
                    cluster(state, request), State.ids(request, "vms")));
        case "enforcement":
            return enforcement(beans, state, request);
        case "schedule":
            return schedule(beans, state, request);
        case "broken":
            return Commands.broken(beans, state);
        case "external":
            return External.schedule(beans, state, request);
        default:
            throw new IllegalArgumentException("kind " + kind);
        }
    }

    @SuppressWarnings("unchecked")
    private static PolicyUnitImpl unit(Beans beans, JsonNode request) throws Exception {
        String name = UNITS + request.get("unit").asText();
        return Policies.unit(beans, (Class<? extends PolicyUnitImpl>) Class.forName(name));
    }

    private static Object filter(Beans beans, State state, JsonNode request) throws Exception {
        return unit(beans, request).filter(
                context(state, request), hosts(state, request), vms(state, request), new PerHostMessages())
                .stream().map(host -> host.getId().toString()).collect(Collectors.toList());
    }

    private static Object weight(Beans beans, State state, JsonNode request) throws Exception {
        Map<String, Integer> weights = new LinkedHashMap<>();
        for (Pair<Guid, Integer> one : unit(beans, request).score(
                context(state, request), hosts(state, request), vms(state, request))) {
            weights.put(one.getFirst().toString(), one.getSecond());
        }
        return weights;
    }

    private static Object balance(Beans beans, State state, JsonNode request) throws Exception {
        List<Map<String, Object>> moves = new ArrayList<>();
        Cluster cluster = cluster(state, request);
        for (BalanceResult result : unit(beans, request).balance(
                cluster, hosts(state, request), cluster.getClusterPolicyProperties())) {
            if (result.isValid()) {
                Map<String, Object> move = new LinkedHashMap<>();
                move.put("vm", result.getVmToMigrate().toString());
                move.put("hosts", text(result.getCandidateHosts()));
                moves.add(move);
            }
        }
        return moves;
    }

    private static Object selector(Beans beans, JsonNode request) throws Exception {
        SelectorInstance selector = unit(beans, request).selector(Map.of());
        List<Pair<Guid, Integer>> factors = new ArrayList<>();
        request.get("units").forEach(unit -> factors.add(
                new Pair<>(Guid.createGuidFromString(unit.get(0).asText()), unit.get(1).asInt())));
        selector.init(factors, State.ids(request, "hosts"));
        for (JsonNode record : request.get("records")) {
            Guid unit = record.get(0).isNull() ? null : Guid.createGuidFromString(record.get(0).asText());
            selector.record(unit, Guid.createGuidFromString(record.get(1).asText()), record.get(2).asInt());
        }
        return selector.best().map(Guid::toString).orElse(null);
    }

    private static Object haCheck(Beans beans, State state, JsonNode request) {
        List<VDS> failed = new ArrayList<>();
        boolean safe = new HaReservationHandling(beans.get(PendingResourceManager.class))
                .checkHaReservationStatusForCluster(cluster(state, request), failed);
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("safe", safe);
        answer.put("failed", failed.stream().map(host -> host.getId().toString()).collect(Collectors.toList()));
        return answer;
    }

    private static List<AffinityGroup> groups(Beans beans, JsonNode request) {
        return beans.get(AffinityGroupDao.class)
                .getAllAffinityGroupsWithFlatLabelsByClusterId(State.id(request, "cluster"));
    }

    private static List<AffinityGroup> hardPositive(Beans beans, JsonNode request) {
        return groups(beans, request).stream()
                .filter(group -> group.isVmPositive() && group.isVmEnforcing()).collect(Collectors.toList());
    }

    private static Object conflicts(Beans beans, JsonNode request) {
        List<Map<String, Object>> found = new ArrayList<>();
        for (AffinityRulesUtils.AffinityGroupConflicts one
                : AffinityRulesUtils.checkForAffinityGroupHostsConflict(groups(beans, request))) {
            Map<String, Object> conflict = new LinkedHashMap<>();
            conflict.put("type", one.getType().name());
            conflict.put("savable", one.getType().canBeSaved());
            conflict.put("groups", text(one.getAffinityGroups().stream().map(AffinityGroup::getId)
                    .collect(Collectors.toCollection(LinkedHashSet::new))));
            conflict.put("vms", text(one.getVms()));
            conflict.put("hosts", text(one.getHosts()));
            conflict.put("negative_vms", text(one.getNegativeVms()));
            found.add(conflict);
        }
        return found;
    }

    // The candidates in their order, as often as asked: the engine shuffles some of them.
    private static Object enforcement(Beans beans, State state, JsonNode request) throws Exception {
        Policies.manager(beans);
        AffinityRulesEnforcer enforcer = beans.get(AffinityRulesEnforcer.class);
        List<List<String>> runs = new ArrayList<>();
        for (int run = 0; run < request.path("runs").asInt(1); run++) {
            List<String> order = new ArrayList<>();
            enforcer.chooseVmsToMigrate(cluster(state, request)).forEachRemaining(vm -> order.add(vm.getId().toString()));
            runs.add(order);
        }
        return runs;
    }

    // Where the engine would put VMs: its filters, its weights and its selector, all of them.
    private static Object schedule(Beans beans, State state, JsonNode request) throws Exception {
        SchedulingManager manager = Policies.manager(beans);
        List<VM> vms = vms(state, request);
        Map<String, Object> answer = new LinkedHashMap<>();
        Map<Guid, List<VDS>> left = manager.prepareCall(cluster(state, request))
                .hostBlackList(State.ids(request, "blacklist")).canSchedule(new ArrayList<>(vms));
        answer.put("hosts", left.get(vms.get(0).getId()).stream().map(host -> host.getId().toString())
                .collect(Collectors.toList()));
        answer.put("best", manager.prepareCall(cluster(state, request))
                .hostBlackList(State.ids(request, "blacklist")).scheduleStateless(vms.get(0))
                .map(Guid::toString).orElse(null));
        return answer;
    }

    static Cluster cluster(State state, JsonNode request) {
        Guid id = State.id(request, "cluster");
        return state.clusters.get(id != null ? id : vms(state, request).get(0).getClusterId());
    }

    static List<VM> vms(State state, JsonNode request) {
        return State.ids(request, "vms").stream().map(state.vms::get).collect(Collectors.toList());
    }

    static List<VDS> hosts(State state, JsonNode request) {
        return State.ids(request, "candidate_hosts").stream().map(state.hosts::get).collect(Collectors.toList());
    }

    private static SchedulingContext context(State state, JsonNode request) {
        Cluster cluster = cluster(state, request);
        return new SchedulingContext(cluster, cluster.getClusterPolicyProperties(),
                request.path("ignore_hard_vm_affinity").asBoolean(), false);
    }

    static List<String> text(Iterable<Guid> ids) {
        List<String> found = new ArrayList<>();
        if (ids != null) {
            ids.forEach(id -> found.add(id.toString()));
        }
        return found;
    }

    private static Object sets(Set<Set<Guid>> sets) {
        return sets.stream().map(Kinds::text).peek(Collections::sort).collect(Collectors.toList());
    }
}
