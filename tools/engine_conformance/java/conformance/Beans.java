// Stands for the engine's container: makes the engine's classes, and injects what they ask for.
package conformance;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;

import javax.enterprise.inject.Instance;
import javax.enterprise.inject.spi.CDI;
import javax.inject.Inject;

import org.ovirt.engine.core.bll.VmHandler;
import org.ovirt.engine.core.bll.scheduling.SchedulingManager;
import org.ovirt.engine.core.bll.scheduling.SlaValidator;
import org.ovirt.engine.core.bll.scheduling.arem.AffinityRulesEnforcer;
import org.ovirt.engine.core.bll.scheduling.utils.VdsCpuUnitPinningHelper;
import org.ovirt.engine.core.bll.utils.VgamemVideoSettings;
import org.ovirt.engine.core.bll.utils.VideoDeviceSettings;
import org.ovirt.engine.core.bll.utils.VmOverheadCalculatorImpl;
import org.ovirt.engine.core.common.osinfo.OsRepository;
import org.ovirt.engine.core.common.scheduling.VmOverheadCalculator;
import org.ovirt.engine.core.common.utils.SimpleDependencyInjector;
import org.ovirt.engine.core.vdsbroker.ResourceManager;

final class Beans {
    // The engine's classes that are made as they are; of any other class an injected field stays null.
    private static final Set<Class<?>> MADE = Set.of(
            SlaValidator.class,
            VmOverheadCalculatorImpl.class,
            VideoDeviceSettings.class,
            VgamemVideoSettings.class,
            VdsCpuUnitPinningHelper.class,
            ResourceManager.class,
            SchedulingManager.class,
            VmHandler.class,
            AffinityRulesEnforcer.class);

    private static Beans current;

    static {
        CDI.setCDIProvider(Beans::container);
    }

    private final Map<Class<?>, Object> beans = new HashMap<>();
    private final Map<Class<?>, Map<String, Answer>> stubs = new HashMap<>();

    interface Answer {
        Object to(Object[] arguments) throws Throwable;
    }

    Beans() {
        current = this;
        beans.put(OsRepository.class, SimpleDependencyInjector.getInstance().get(OsRepository.class));
    }

    // Says what a method of one of the engine's interfaces answers; any other method of it refuses.
    void stub(Class<?> type, String method, Answer answer) {
        stubs.computeIfAbsent(type, key -> new HashMap<>()).put(method, answer);
    }

    <T> void put(Class<T> type, T bean) {
        beans.put(type, bean);
    }

    <T> T get(Class<T> type) {
        if (type == VmOverheadCalculator.class) {
            return type.cast(get(VmOverheadCalculatorImpl.class));
        }
        Object bean = beans.get(type);
        if (bean == null) {
            if (type.isInterface()) {
                bean = stub(type);
            } else if (MADE.contains(type)) {
                bean = make(type);
            } else {
                return null;
            }
            beans.put(type, bean);
            if (!type.isInterface()) {
                inject(bean);
            }
        }
        return type.cast(bean);
    }

    <T> T inject(T bean) {
        for (Class<?> type = bean.getClass(); type != null; type = type.getSuperclass()) {
            for (Field field : type.getDeclaredFields()) {
                if (field.isAnnotationPresent(Inject.class) && !Modifier.isStatic(field.getModifiers())) {
                    Object value = get(field.getType());
                    if (value != null) {
                        set(bean, field, value);
                    }
                }
            }
        }
        return bean;
    }

    // Makes an object without its constructor, which may ask for more of the engine than there is.
    static <T> T bare(Class<T> type) {
        try {
            Field unsafe = Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe");
            unsafe.setAccessible(true);
            Method allocate = unsafe.getType().getMethod("allocateInstance", Class.class);
            return type.cast(allocate.invoke(unsafe.get(null), type));
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    static void set(Object target, String name, Object value) {
        set(target, field(target.getClass(), name), value);
    }

    static Object read(Object target, String name) {
        try {
            return field(target.getClass(), name).get(target);
        } catch (IllegalAccessException error) {
            throw new IllegalStateException(error);
        }
    }

    // Calls a method that is not public, by its name, which it must have alone.
    static Object call(Object target, String name, Object... arguments) throws Throwable {
        for (Class<?> type = target.getClass(); type != null; type = type.getSuperclass()) {
            for (Method method : type.getDeclaredMethods()) {
                if (method.getName().equals(name) && method.getParameterCount() == arguments.length) {
                    method.setAccessible(true);
                    try {
                        return method.invoke(target, arguments);
                    } catch (InvocationTargetException error) {
                        throw error.getCause();
                    }
                }
            }
        }
        throw new NoSuchMethodException(name);
    }

    private static Field field(Class<?> type, String name) {
        for (Class<?> each = type; each != null; each = each.getSuperclass()) {
            for (Field field : each.getDeclaredFields()) {
                if (field.getName().equals(name)) {
                    field.setAccessible(true);
                    return field;
                }
            }
        }
        throw new IllegalArgumentException(type + " has no field " + name);
    }

    private static void set(Object target, Field field, Object value) {
        try {
            field.setAccessible(true);
            field.set(target, value);
        } catch (IllegalAccessException error) {
            throw new IllegalStateException(error);
        }
    }

    private static Object make(Class<?> type) {
        try {
            Constructor<?> constructor = type.getDeclaredConstructor();
            constructor.setAccessible(true);
            return constructor.newInstance();
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    private Object stub(Class<?> type) {
        return Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (proxy, method, arguments) -> {
            Answer answer = stubs.getOrDefault(type, Map.of()).get(method.getName());
            if (answer != null) {
                return answer.to(arguments);
            }
            if (method.getDeclaringClass() == Object.class) {
                return method.getName().equals("hashCode") ? (Object) System.identityHashCode(proxy)
                        : method.getName().equals("equals") ? (Object) (proxy == arguments[0]) : type.getName();
            }
            throw new UnsupportedOperationException(type.getSimpleName() + "." + method.getName());
        });
    }

    // The container as far as the engine's Injector asks it: one bean of a class.
    @SuppressWarnings("unchecked")
    private static CDI<Object> container() {
        return new Container();
    }

    static Beans current() {
        return current;
    }


    static Instance<?> instance(Object bean) {
        return (Instance<?>) Proxy.newProxyInstance(Beans.class.getClassLoader(), new Class<?>[] {Instance.class},
                (proxy, method, arguments) -> {
                    if (method.getName().equals("get")) {
                        return bean;
                    }
                    throw new UnsupportedOperationException("Instance." + method.getName());
                });
    }
}
