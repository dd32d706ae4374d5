package clients;

import static org.ovirt.engine.sdk4.ConnectionBuilder.connection;
import static org.ovirt.engine.sdk4.builders.Builders.affinityGroup;
import static org.ovirt.engine.sdk4.builders.Builders.affinityLabel;
import static org.ovirt.engine.sdk4.builders.Builders.affinityRule;
import static org.ovirt.engine.sdk4.builders.Builders.cluster;
import static org.ovirt.engine.sdk4.builders.Builders.disk;
import static org.ovirt.engine.sdk4.builders.Builders.diskAttachment;
import static org.ovirt.engine.sdk4.builders.Builders.event;
import static org.ovirt.engine.sdk4.builders.Builders.host;
import static org.ovirt.engine.sdk4.builders.Builders.permission;
import static org.ovirt.engine.sdk4.builders.Builders.role;
import static org.ovirt.engine.sdk4.builders.Builders.tag;
import static org.ovirt.engine.sdk4.builders.Builders.template;
import static org.ovirt.engine.sdk4.builders.Builders.user;
import static org.ovirt.engine.sdk4.builders.Builders.vm;
import static org.ovirt.engine.sdk4.builders.Builders.vmPlacementPolicy;

import java.math.BigInteger;
import java.util.List;
import java.util.function.Function;
import java.util.stream.Collectors;

import org.ovirt.engine.sdk4.Connection;
import org.ovirt.engine.sdk4.Error;
import org.ovirt.engine.sdk4.services.HostService;
import org.ovirt.engine.sdk4.services.SystemService;
import org.ovirt.engine.sdk4.services.VmService;
import org.ovirt.engine.sdk4.types.DiskFormat;
import org.ovirt.engine.sdk4.types.HostStatus;
import org.ovirt.engine.sdk4.types.LogSeverity;
import org.ovirt.engine.sdk4.types.Vm;
import org.ovirt.engine.sdk4.types.VmStatus;

/**
 * What people do with the Java SDK, done to an engine that has the VMs "web", which runs on the host "alpha",
 * and "idle", which is down and must not run where "web" does, a host "beta", and a cluster "Default". Prints a line for each step: what it saw.
 */
public class JavaSdk {
    private static final BigInteger GIB = BigInteger.ONE.shiftLeft(30);

    private final Connection connection;
    private final SystemService system;

    private JavaSdk(Connection connection) {
        this.connection = connection;
        this.system = connection.systemService();
    }

    /** Arguments: the URL of the engine's API. */
    public static void main(String[] arguments) throws Exception {
        try (Connection connection = connection()
                .url(arguments[0]).user("admin@internal").password("password").insecure(true).build()) {
            JavaSdk sdk = new JavaSdk(connection);
            sdk.reading();
            sdk.tags();
            sdk.affinityLabels();
            sdk.affinityGroups();
            sdk.permissions();
            sdk.events();
            sdk.policies();
            sdk.starting();
            sdk.creating();
            sdk.maintenance();
        }
    }

    private void reading() {
        saw("vms", names(system.vmsService().list().send().vms(), Vm::name));
        Vm web = found("web");
        saw("links", connection.followLink(web.cluster()).name(), connection.followLink(web.host()).name());
        saw("statistics", connection.followLink(web.statistics()).stream()
                .filter(one -> one.name().equals("memory.installed"))
                .map(one -> one.values().get(0).datum().toBigInteger().toString())
                .collect(Collectors.joining()));
        saw("roles", system.rolesService().list().send().roles().stream()
                .filter(one -> one.name().equals("UserRole")).count() + "");
    }

    private void tags() {
        var tags = system.tagsService();
        String identity = tags.add().tag(tag().name("mine").description("a tag")).send().tag().id();
        var assigned = service("idle").tagsService();
        assigned.add().tag(tag().name("mine")).send();
        saw("tags", names(assigned.list().send().tags(), one -> one.name() + ":" + one.description()));
        assigned.tagService(identity).remove().send();
        tags.tagService(identity).remove().send();
        saw("tags left", names(assigned.list().send().tags(), one -> one.name()));
    }

    private void affinityLabels() {
        var labels = system.affinityLabelsService();
        String identity = labels.add().label(affinityLabel().name("mine")).send().label().id();
        var vms = labels.labelService(identity).vmsService();
        vms.add().vm(vm().id(found("idle").id())).send();
        saw("affinity label", names(vms.list().send().vms(), one -> connection.followLink(one).name()));
        vms.vmService(found("idle").id()).remove().send();
        labels.labelService(identity).remove().send();
    }

    private void affinityGroups() {
        var groups = system.clustersService().clusterService(found("idle").cluster().id()).affinityGroupsService();
        var group = groups.add().group(affinityGroup().name("mine").priority(2)
                .vmsRule(affinityRule().enabled(true).positive(false).enforcing(true))).send().group();
        var vms = groups.groupService(group.id()).vmsService();
        vms.add().vm(vm().id(found("idle").id())).send();
        saw("affinity group", group.name(), group.priority() + "", group.vmsRule().enforcing() + "",
                names(vms.list().send().vms(), Vm::name));
        groups.groupService(group.id()).remove().send();
        saw("affinity groups left", names(groups.list().send().groups(), one -> one.name()));
    }

    private void permissions() {
        var permissions = service("idle").permissionsService();
        var granted = permissions.add().permission(
                permission().role(role().name("UserRole")).user(user().id("123"))).send().permission();
        saw("permission", connection.followLink(granted.role()).name(), granted.user().id());
        permissions.permissionService(granted.id()).remove().send();
        saw("permissions left", permissions.list().send().permissions().size() + "");
    }

    private void events() {
        system.eventsService().add().event(event().origin("java").severity(LogSeverity.WARNING)
                .customId(1).description("from the SDK").vm(vm().id(found("idle").id()))).send();
        saw("event", names(system.eventsService().list().search("origin=java").send().events(),
                one -> one.severity() + " " + one.description()));
    }

    private void policies() {
        saw("policies", system.schedulingPoliciesService().list().send().policies().stream()
                .filter(one -> one.defaultPolicy()).map(one -> one.name()).collect(Collectors.joining()));
        saw("units", system.schedulingPolicyUnitsService().list().send().units().stream()
                .filter(one -> one.name().equals("Memory")).map(one -> one.type() + "").sorted()
                .collect(Collectors.joining(",")));
    }

    private void starting() throws InterruptedException {
        VmService idle = service("idle");
        idle.update().vm(vm().placementPolicy(vmPlacementPolicy().hosts(host().name("beta")))).send();
        idle.start().send();
        saw("started", connection.followLink(waitFor(idle, VmStatus.UP).host()).name());
        idle.update().vm(vm().placementPolicy(vmPlacementPolicy())).send();
        try {
            idle.migrate().host(host().name("alpha")).send();
        } catch (Error refused) {
            saw("refused", refused.getMessage().replaceAll(".*internal filter (\\w+) .*", "$1"));
        }
        idle.stop().send();
        saw("stopped", waitFor(idle, VmStatus.DOWN).host() == null ? "nowhere" : "somewhere");
        VmService web = service("web");
        web.migrate().host(host().name("beta")).send();
        saw("migrating", web.get().send().vm().status() + "");
        saw("migrated", connection.followLink(waitFor(web, VmStatus.UP).host()).name());
    }

    private void creating() {
        var vms = system.vmsService();
        String identity = vms.add().vm(vm().name("new").memory(GIB).cluster(cluster().name("Default"))
                .template(template().name("Blank"))).send().vm().id();
        VmService service = vms.vmService(identity);
        var attached = service.diskAttachmentsService().add().attachment(diskAttachment().bootable(true)
                .active(true).disk(disk().name("root").format(DiskFormat.COW).provisionedSize(GIB)))
                .send().attachment();
        saw("created", found("new").memory() + "", connection.followLink(attached.disk()).name());
        service.remove().send();
        saw("left", names(system.vmsService().list().send().vms(), Vm::name));
    }

    private void maintenance() throws InterruptedException {
        String identity = system.hostsService().list().search("name=beta").send().hosts().get(0).id();
        HostService beta = system.hostsService().hostService(identity);
        beta.deactivate().send();
        saw("deactivated", waitFor(beta, HostStatus.MAINTENANCE) + "",
                connection.followLink(found("web").host()).name());
        beta.activate().send();
        saw("activated", waitFor(beta, HostStatus.UP) + "");
    }

    private Vm found(String name) {
        return system.vmsService().list().search("name=" + name).send().vms().get(0);
    }

    private VmService service(String name) {
        return system.vmsService().vmService(found(name).id());
    }

    private static Vm waitFor(VmService service, VmStatus wanted) throws InterruptedException {
        Vm vm = service.get().send().vm();
        while (vm.status() != wanted) {
            Thread.sleep(50);
            vm = service.get().send().vm();
        }
        return vm;
    }

    private static HostStatus waitFor(HostService service, HostStatus wanted) throws InterruptedException {
        while (service.get().send().host().status() != wanted) {
            Thread.sleep(50);
        }
        return wanted;
    }

    private static <T> String names(List<T> records, Function<T, String> name) {
        return records.stream().map(name).sorted().collect(Collectors.joining(","));
    }

    private static void saw(String step, String... what) {
        System.out.println(step + "=" + String.join(" ", what));
    }
}
