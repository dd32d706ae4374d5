// The engine's settings as a fresh installation has them: those that the scheduling classes read.
package conformance;

import java.lang.reflect.Proxy;
import java.util.Map;

import org.ovirt.engine.core.common.config.Config;
import org.ovirt.engine.core.common.config.ConfigValues;
import org.ovirt.engine.core.common.config.IConfigUtilsInterface;
import org.ovirt.engine.core.common.osinfo.OsRepository;
import org.ovirt.engine.core.common.utils.SimpleDependencyInjector;

final class Settings implements IConfigUtilsInterface {
    private static final Map<String, Object> VALUES = Map.ofEntries(
            Map.entry("MaxSchedulerWeight", 1000),
            Map.entry("VcpuConsumptionPercentage", 10),
            Map.entry("SpmVCpuConsumption", 1),
            Map.entry("HighUtilizationForEvenlyDistribute", 75),
            Map.entry("LowUtilizationForEvenlyDistribute", 0),
            Map.entry("UtilizationThresholdInPercent", 80),
            Map.entry("CpuOverCommitDurationMinutes", 2),
            Map.entry("HighUtilizationForScheduling", 90),
            Map.entry("ScaleDownForHaReservation", 1),
            Map.entry("OverUtilizationForHaReservation", 200),
            Map.entry("HostedEngineMaximumHighAvailabilityScore", 3400),
            Map.entry("ExternalSchedulerEnabled", true),
            Map.entry("SchedulerAllowOverBooking", false),
            Map.entry("SpeedOptimizationSchedulingThreshold", 10),
            Map.entry("HotPlugMemorySupported", Map.of("x86", "true", "ppc", "true", "s390x", "false")),
            Map.entry("EventProcessingPoolSize", 1),
            Map.entry("EventPurgeTimeoutInHours", 3));

    static void install() {
        Config.setConfigUtils(new Settings());
        OsRepository systems = (OsRepository) Proxy.newProxyInstance(
                Settings.class.getClassLoader(), new Class<?>[] {OsRepository.class}, (proxy, method, arguments) -> {
                    switch (method.getName()) {
                    case "isLinux":
                        return true;
                    case "getVgamemMultiplier":
                        return 1;
                    case "getVramMultiplier": // the id of an operating system here is its multiplier
                        return arguments[0];
                    default:
                        throw new UnsupportedOperationException("OsRepository." + method.getName());
                    }
                });
        SimpleDependencyInjector.getInstance().bind(OsRepository.class, systems);
    }

    @Override
    @SuppressWarnings("unchecked")
    public <T> T getValue(ConfigValues setting, String version) {
        Object value = VALUES.get(setting.name());
        if (value == null) {
            throw new UnsupportedOperationException("setting " + setting);
        }
        return (T) value;
    }

    @Override
    public void refresh() {
    }

    @Override
    public <T> Map<String, T> getValuesForAllVersions(ConfigValues setting) {
        throw new UnsupportedOperationException("setting " + setting);
    }

    @Override
    public boolean valueExists(ConfigValues setting, String version) {
        return VALUES.containsKey(setting.name());
    }
}
