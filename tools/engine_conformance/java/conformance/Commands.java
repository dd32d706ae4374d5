// What stands around the scheduler: the enforcement's cycle and the "broken" flag.
package conformance;

import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.ovirt.engine.core.bll.interfaces.BackendInternal;
import org.ovirt.engine.core.bll.scheduling.AffinityRulesEnforcementManager;
import org.ovirt.engine.core.bll.scheduling.queries.GetAffinityGroupsByClusterIdQuery;
import org.ovirt.engine.core.common.action.ActionReturnValue;
import org.ovirt.engine.core.common.action.MigrateVmParameters;
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
}
