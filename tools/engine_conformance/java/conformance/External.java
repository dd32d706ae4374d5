// The scheduler with external units: what it asks of the proxy, and what it makes of the answers it is given.
package conformance;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

import org.ovirt.engine.core.bll.scheduling.ExternalPolicyUnit;
import org.ovirt.engine.core.bll.scheduling.PolicyUnitImpl;
import org.ovirt.engine.core.bll.scheduling.SchedulingManager;
import org.ovirt.engine.core.bll.scheduling.external.ExternalSchedulerBroker;
import org.ovirt.engine.core.bll.scheduling.external.WeightResultEntry;
import org.ovirt.engine.core.bll.scheduling.pending.PendingResourceManager;
import org.ovirt.engine.core.common.businessentities.VM;
import org.ovirt.engine.core.common.scheduling.ClusterPolicy;
import org.ovirt.engine.core.common.scheduling.PolicyUnit;
import org.ovirt.engine.core.common.utils.Pair;
import org.ovirt.engine.core.compat.Guid;

import com.fasterxml.jackson.databind.JsonNode;

final class External {
    private External() {
    }

    static Object schedule(Beans beans, State state, JsonNode request) throws Exception {
        SchedulingManager manager = Policies.manager(beans);
        List<Object> calls = new ArrayList<>();
        answerAs(beans, request, calls);
        addUnits(beans, manager, request);
        VM vm = Kinds.vms(state, request).get(0);
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("best", manager.prepareCall(Kinds.cluster(state, request))
                .hostBlackList(State.ids(request, "blacklist")).scheduleStateless(vm)
                .map(Guid::toString).orElse(null));
        answer.put("calls", calls);
        return answer;
    }

    private static void answerAs(Beans beans, JsonNode request, List<Object> calls) {
        beans.stub(ExternalSchedulerBroker.class, "runFilters", given -> {
            @SuppressWarnings("unchecked")
            List<Guid> hosts = (List<Guid>) given[1];
            calls.add(List.of("runFilters", given[0], Kinds.text(hosts), given[2].toString()));
            List<Guid> refused = State.ids(request, "refused");
            return hosts.stream().filter(host -> !refused.contains(host)).collect(Collectors.toList());
        });
        beans.stub(ExternalSchedulerBroker.class, "runScores", given -> {
            @SuppressWarnings("unchecked")
            List<Guid> hosts = (List<Guid>) given[1];
            calls.add(List.of("runCostFunctions", Kinds.text(hosts), given[2].toString()));
            List<WeightResultEntry> entries = new ArrayList<>();
            for (JsonNode entry : request.get("scores")) {
                Guid host = Guid.createGuidFromString(entry.get(0).asText());
                if (hosts.contains(host)) {
                    entries.add(new WeightResultEntry(
                            host, entry.get(1).asInt(), entry.has(2) ? entry.get(2).asText() : null));
                }
            }
            return entries;
        });
    }

    @SuppressWarnings("unchecked")
    private static void addUnits(Beans beans, SchedulingManager manager, JsonNode request) {
        Map<Guid, PolicyUnitImpl> units = (Map<Guid, PolicyUnitImpl>) Beans.read(manager, "policyUnits");
        ClusterPolicy policy = ((Map<Guid, ClusterPolicy>) Beans.read(manager, "policyMap")).get(Policies.POLICY);
        int number = 0;
        for (JsonNode name : request.get("filters")) {
            Guid id = add(beans, units, name.asText(), ++number);
            policy.getFilters().add(id);
        }
        for (JsonNode weight : request.get("weights")) {
            Guid id = add(beans, units, weight.get(0).asText(), ++number);
            policy.getFunctions().add(new Pair<>(id, weight.get(1).asInt()));
        }
    }

    private static Guid add(Beans beans, Map<Guid, PolicyUnitImpl> units, String name, int number) {
        PolicyUnit unit = new PolicyUnit();
        unit.setId(Guid.createGuidFromString(String.format("5d000000-0000-4000-8000-%012x", number)));
        unit.setName(name);
        unit.setInternal(false);
        unit.setEnabled(true);
        units.put(unit.getId(), new ExternalPolicyUnit(unit, beans.get(PendingResourceManager.class)));
        return unit.getId();
    }
}
