// What stands around the scheduler: the "broken" flag.
package conformance;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import org.ovirt.engine.core.bll.scheduling.queries.GetAffinityGroupsByClusterIdQuery;
import org.ovirt.engine.core.common.scheduling.AffinityGroup;

final class Commands {
    private Commands() {
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
