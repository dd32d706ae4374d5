// Reads answer after answer as the engine does: the same casts, the same ids. What throws here ends scheduling there.
package contract;

import java.net.URL;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Pattern;

import org.apache.xmlrpc.XmlRpcRequest;
import org.apache.xmlrpc.client.XmlRpcClient;
import org.apache.xmlrpc.client.XmlRpcClientConfigImpl;
import org.apache.xmlrpc.client.XmlRpcClientException;
import org.apache.xmlrpc.client.XmlRpcSun15HttpTransport;
import org.apache.xmlrpc.client.XmlRpcSun15HttpTransportFactory;
import org.apache.xmlrpc.client.XmlRpcTransport;

/**
 * Arguments: the URL, the number of calls, and the names of further units, of which some calls ask one as well.
 *
 * The calls are an administrator's: the engine's would soon get nothing but the answer that a unit is cut off.
 */
public final class RandomAnswers {
    private static final int HOSTS = 40;
    private static final int THREADS = 4;
    private static final int HOSTILE_EVERY = 20;
    private static final String ODD_TEXT = "<a>&b]]>\u00e9\u4fdd\ud83d\ude00\ud800\u0001\ufffe\r\n\t ";

    /** How the engine matches all parameters of a unit at once: too many of them end its discovery. */
    private static final String ENTRY = "(([a-z_A-Z0-9])+)=(([^;])*)";
    private static final Pattern DECLARATION = Pattern.compile("(" + ENTRY + "(;" + ENTRY + ")*;?)?");

    private final XmlRpcClientConfigImpl config = new XmlRpcClientConfigImpl();
    private final String[] hostile;
    private final AtomicInteger failures = new AtomicInteger();
    private final AtomicInteger full = new AtomicInteger();

    private RandomAnswers(String url, String[] hostile) throws Exception {
        config.setServerURL(new URL(url));
        config.setEnabledForExtensions(true);
        config.setConnectionTimeout(10_000);
        config.setReplyTimeout(120_000);
        this.hostile = hostile;
    }

    public static void main(String[] arguments) throws Exception {
        int calls = Integer.parseInt(arguments[1]);
        RandomAnswers engine = new RandomAnswers(arguments[0], arguments[2].split(","));
        int units = engine.discover();
        ExecutorService threads = Executors.newFixedThreadPool(THREADS);
        List<Future<?>> running = new ArrayList<>();
        for (int thread = 0; thread < THREADS; thread++) {
            int first = thread;
            running.add(threads.submit(() -> {
                for (int seed = first; seed < calls; seed += THREADS) {
                    engine.call(seed);
                }
                return null;
            }));
        }
        threads.shutdown();
        for (Future<?> each : running) {
            each.get();
        }
        System.out.printf("%d units, %d answers, %d with failures, %d with content%n",
                units, calls, engine.failures.get(), engine.full.get());
    }

    private void call(int seed) throws Exception {
        try {
            String further = seed % HOSTILE_EVERY == 0 ? hostile[seed / HOSTILE_EVERY % hostile.length] : null;
            switch (seed % 3) {
                case 0:
                    filter(seed, units("RandomFilter", further));
                    break;
                case 1:
                    score(seed, units("RandomScore", further));
                    break;
                default:
                    balance(seed, further == null ? "RandomBalance" : further);
            }
        } catch (Exception error) {
            throw new Exception("with seed " + seed, error);
        }
    }

    @SuppressWarnings("unchecked")
    private int discover() throws Exception {
        Map<String, HashMap<String, Object[]>> found = (Map<String, HashMap<String, Object[]>>) execute("discover");
        Set<String> names = new HashSet<>();
        for (Map.Entry<String, HashMap<String, Object[]>> kind : found.entrySet()) {
            if (!Set.of("filters", "scores", "balance").contains(kind.getKey())) {
                throw new IllegalStateException("an unknown kind " + kind.getKey());
            }
            for (Map.Entry<String, Object[]> unit : kind.getValue().entrySet()) {
                DECLARATION.matcher(unit.getValue()[1].toString()).matches();
                if (unit.getKey().length() > 128 || unit.getValue()[0].toString().indexOf('\0') >= 0) {
                    throw new IllegalStateException("a unit that fits no column: " + unit.getKey());
                }
                names.add(unit.getKey());
            }
        }
        return names.size();
    }

    private void filter(int seed, List<String> units) throws Exception {
        String[] hosts = hosts();
        Object[] arguments = {units.toArray(), hosts, vm(seed), properties(seed)};
        Object[] accepted = (Object[]) result(execute("runFilters", arguments));
        for (Object host : accepted) {
            among(hosts, UUID.fromString(host.toString()));
        }
        count(accepted.length % HOSTS != 0);
    }

    private void score(int seed, List<String> units) throws Exception {
        String[] hosts = hosts();
        Object[] weighted = units.stream().map(unit -> new Object[] {unit, 3}).toArray();
        Map<String, Integer> seen = new HashMap<>();
        Object[] arguments = {weighted, hosts, vm(seed), properties(seed)};
        for (Object row : (Object[]) result(execute("runCostFunctions", arguments))) {
            Object[] fields = (Object[]) row;
            if (fields.length != 3) {
                throw new IllegalStateException("a row of " + fields.length);
            }
            among(hosts, UUID.fromString(fields[0].toString()));
            Integer weight = (Integer) fields[1];
            seen.merge(fields[2].toString(), weight == null ? HOSTS + 1 : 1, Integer::sum);
        }
        count(!seen.isEmpty());
        for (Map.Entry<String, Integer> unit : seen.entrySet()) {
            if (unit.getValue() != HOSTS) {
                throw new IllegalStateException(unit.getKey() + " weighs " + unit.getValue() + " hosts");
            }
        }
    }

    private void balance(int seed, String unit) throws Exception {
        String[] hosts = hosts();
        Object[] result = (Object[]) result(execute("runLoadBalancing", unit, hosts, properties(seed)));
        for (Object host : (Object[]) result[1]) {
            among(hosts, UUID.fromString(host.toString()));
        }
        if (!result[0].toString().isEmpty()) {
            UUID.fromString(result[0].toString());
        }
        count(!result[0].toString().isEmpty());
    }

    private void count(boolean content) {
        full.addAndGet(content ? 1 : 0);
    }

    @SuppressWarnings("unchecked")
    private Object result(Object received) {
        Map<String, Object> reply = (HashMap<String, Object>) received;
        if ((int) reply.get("result_code") != 0) {
            failures.incrementAndGet();
            Map<String, Object[]> errors = (Map<String, Object[]>) reply.get("plugin_errors");
            for (Map.Entry<String, Object[]> unit : errors.entrySet()) {
                for (Object message : unit.getValue()) {
                    if (message.toString().length() > 1000) {
                        throw new IllegalStateException("a message of " + message.toString().length());
                    }
                }
            }
            for (Object message : (Object[]) reply.get("errors")) {
                ((String) message).length();
            }
        }
        return reply.get("result");
    }

    private Object execute(String method, Object... parameters) throws Exception {
        XmlRpcClient client = new XmlRpcClient();
        client.setConfig(config);
        client.setTransportFactory(new ByHand(client));
        return client.execute(method, parameters);
    }

    private static List<String> units(String one, String further) {
        return further == null ? List.of(one) : List.of(one, further);
    }

    private static Map<String, String> properties(int seed) {
        Map<String, String> properties = new HashMap<>();
        properties.put("seed", Integer.toString(seed));
        properties.put("without_value", null);
        properties.put("odd_value", ODD_TEXT);
        return properties;
    }

    private static String vm(int seed) {
        return new UUID(1, seed).toString();
    }

    private static String[] hosts() {
        String[] hosts = new String[HOSTS];
        for (int index = 0; index < HOSTS; index++) {
            hosts[index] = new UUID(2, index).toString();
        }
        return hosts;
    }

    private static void among(String[] hosts, UUID host) {
        if (!List.of(hosts).contains(host.toString())) {
            throw new IllegalStateException("a host that was not asked about: " + host);
        }
    }

    /** The library's own transport, with the header that tells the calls of administrators. */
    private static final class ByHand extends XmlRpcSun15HttpTransportFactory {
        private ByHand(XmlRpcClient client) {
            super(client);
        }

        @Override
        public XmlRpcTransport getTransport() {
            return new XmlRpcSun15HttpTransport(getClient()) {
                @Override
                protected void initHttpHeaders(XmlRpcRequest request) throws XmlRpcClientException {
                    super.initHttpHeaders(request);
                    setRequestHeader("X-Trouble-Shooting", "1");
                }
            };
        }
    }
}
