// What stands around the scheduler: the enforcement's cycle, the "broken" flag, and what is checked before saving.
package conformance;

import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

import org.ovirt.engine.core.bll.interfaces.BackendInternal;
import org.ovirt.engine.core.bll.scheduling.AffinityRulesEnforcementManager;
import org.ovirt.engine.core.bll.scheduling.queries.GetAffinityGroupsByClusterIdQuery;
import org.ovirt.engine.core.bll.validator.AffinityValidator;
import org.ovirt.engine.core.common.action.ActionReturnValue;
import org.ovirt.engine.core.common.action.MigrateVmParameters;
import org.ovirt.engine.core.common.businessentities.Label;
import org.ovirt.engine.core.common.scheduling.AffinityGroup;
import org.ovirt.engine.core.compat.Guid;
import org.slf4j.Logger;

import com.fasterxml.jackson.databind.JsonNode;

final class Commands {
    private Commands() {
    }

    // The VMs that the cycle asks to migrate, in their order; the commands of some of them fail.
    static Object manager(Beans beans, State state, JsonNode request) throws Throwable {
        Set<Guid> refused = new HashSet<>(State.ids(request, "refused"));
        List<String> asked = new ArrayList<>();
        beans.stub(BackendInternal.class, "runInternalAction", given -> {
            Guid vm = ((MigrateVmParameters) given[1]).getVmId();
            asked.add(vm.toString());
            ActionReturnValue result = new ActionReturnValue();
            result.setSucceeded(!refused.contains(vm));
            return result;
        });
        Policies.manager(beans);
        List<List<String>> runs = new ArrayList<>();
        for (int run = 0; run < request.path("runs").asInt(1); run++) {
            asked.clear();
            cycle(beans);
            runs.add(new ArrayList<>(asked));
        }
        return runs;
    }

    // One cycle; an exception that it only logs is thrown here.
    private static void cycle(Beans beans) throws Throwable {
        List<Throwable> logged = new ArrayList<>();
        AffinityRulesEnforcementManager manager = beans.inject(new AffinityRulesEnforcementManager());
        Beans.set(manager, "log", Proxy.newProxyInstance(Commands.class.getClassLoader(), new Class<?>[] {Logger.class},
                (proxy, method, given) -> {
                    for (Object each : given == null ? new Object[0] : given) {
                        if (each instanceof Throwable) {
                            logged.add((Throwable) each);
                        }
                    }
                    return method.getReturnType() == boolean.class ? (Object) true : null;
                }));
        manager.refresh();
        if (!logged.isEmpty()) {
            throw logged.get(0);
        }
    }

    static Object broken(Beans beans, State state) throws Throwable {
        GetAffinityGroupsByClusterIdQuery query =
                beans.inject(Beans.bare(GetAffinityGroupsByClusterIdQuery.class));
        List<AffinityGroup> groups = state.groups(false);
        Beans.call(query, "checkBrokenGroups", groups);
        Map<String, Boolean> broken = new LinkedHashMap<>();
        groups.forEach(group -> broken.put(group.getId().toString(), group.getBroken()));
        return broken;
    }

    // The first message of what is refused; null where groups, or the groups and labels of a VM or host, may be saved.
    static Object validate(Beans beans, State state, JsonNode request) {
        AffinityValidator validator = beans.inject(new AffinityValidator());
        Guid cluster = State.id(request, "cluster");
        AffinityValidator.Result result;
        if (request.hasNonNull("vm")) {
            result = validator.validateAffinityUpdateForVm(
                    cluster, State.id(request, "vm"), groups(state, request), labels(state, request));
        } else if (request.hasNonNull("host")) {
            result = validator.validateAffinityUpdateForHost(
                    cluster, State.id(request, "host"), groups(state, request), labels(state, request));
        } else {
            result = validator.checkAffinityGroupConflicts(state.groups(true).stream()
                    .filter(group -> group.getClusterId().equals(cluster)).collect(Collectors.toList()));
        }
        return result.getValidationResult().isValid() ? null
                : result.getValidationResult().getMessages().get(0).name();
    }

    private static List<AffinityGroup> groups(State state, JsonNode request) {
        if (!request.hasNonNull("groups")) {
            return null;
        }
        List<Guid> wanted = State.ids(request, "groups");
        return state.groups(false).stream().filter(group -> wanted.contains(group.getId()))
                .collect(Collectors.toList());
    }

    private static List<Label> labels(State state, JsonNode request) {
        if (!request.hasNonNull("labels")) {
            return null;
        }
        List<Guid> wanted = State.ids(request, "labels");
        return state.labels().stream().filter(label -> wanted.contains(label.getId())).collect(Collectors.toList());
    }
}
