// Calls the proxy as the engine does, with its library, its settings and its casts; one command a line on stdin.
package contract;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

import org.apache.xmlrpc.XmlRpcException;
import org.apache.xmlrpc.client.XmlRpcClient;
import org.apache.xmlrpc.client.XmlRpcClientConfigImpl;

/** Prints one line for each command: the answer, or the fault. */
public final class EngineClient {
    private static final int CONNECTION_TIMEOUT_MILLISECONDS = 100;
    private static final int REPLY_TIMEOUT_MILLISECONDS = 120_000;

    private final XmlRpcClientConfigImpl config = new XmlRpcClientConfigImpl();

    private EngineClient(String url) throws Exception {
        config.setServerURL(new URL(url));
        config.setEnabledForExtensions(true);
        config.setConnectionTimeout(CONNECTION_TIMEOUT_MILLISECONDS);
        config.setReplyTimeout(REPLY_TIMEOUT_MILLISECONDS);
    }

    public static void main(String[] arguments) throws Exception {
        EngineClient engine = new EngineClient(arguments[0]);
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                out.println(engine.run(line.split(" ")));
            } catch (XmlRpcException fault) {
                out.println("fault " + fault.code + " " + fault.getMessage());
            }
        }
    }

    private String run(String[] words) throws XmlRpcException {
        switch (words[0]) {
            case "discover":
                return discover();
            case "runFilters":
                return filter(words[1].split(","), hosts(words[2]));
            case "runCostFunctions":
                return score(words[1].split(","), hosts(words[2]));
            case "runLoadBalancing":
                return balance(words[1], hosts(words[2]));
            default:
                return execute(words[0]).toString();
        }
    }

    /** A new client for each call, as the engine makes them; connections are kept alive below it all the same. */
    private Object execute(String method, Object... parameters) throws XmlRpcException {
        XmlRpcClient client = new XmlRpcClient();
        client.setConfig(config);
        return client.execute(method, parameters);
    }

    @SuppressWarnings("unchecked")
    private String discover() throws XmlRpcException {
        Map<String, Map<String, Object[]>> found = (Map<String, Map<String, Object[]>>) execute("discover");
        List<String> units = new ArrayList<>();
        for (Map.Entry<String, Map<String, Object[]>> kind : new TreeMap<>(found).entrySet()) {
            for (Map.Entry<String, Object[]> unit : new TreeMap<>(kind.getValue()).entrySet()) {
                String description = (String) unit.getValue()[0];
                String properties = (String) unit.getValue()[1];
                units.add(kind.getKey() + "/" + unit.getKey() + "/" + description + "/" + properties);
            }
        }
        return String.join(" | ", units);
    }

    private String filter(String[] units, String[] hosts) throws XmlRpcException {
        Map<String, Object> reply = reply(execute("runFilters", units, hosts, "vm", properties()));
        List<String> accepted = new ArrayList<>();
        for (Object host : (Object[]) reply.get("result")) {
            accepted.add(host.toString());
        }
        return told(reply) + " " + String.join(",", accepted);
    }

    private String score(String[] units, String[] hosts) throws XmlRpcException {
        Object[] weighted = new Object[units.length];
        for (int index = 0; index < units.length; index++) {
            weighted[index] = new Object[] {units[index], 2};
        }
        Map<String, Object> reply = reply(execute("runCostFunctions", weighted, hosts, "vm", properties()));
        List<String> weights = new ArrayList<>();
        for (Object row : (Object[]) reply.get("result")) {
            Object[] fields = (Object[]) row;
            Integer weight = (Integer) fields[1];
            weights.add(fields[0] + "=" + weight + "=" + (String) fields[2]);
        }
        return told(reply) + " " + String.join(",", weights);
    }

    private String balance(String unit, String[] hosts) throws XmlRpcException {
        Map<String, Object> reply = reply(execute("runLoadBalancing", unit, hosts, properties()));
        Object[] result = (Object[]) reply.get("result");
        List<String> targets = new ArrayList<>();
        for (Object host : (Object[]) result[1]) {
            targets.add(host.toString());
        }
        return told(reply) + " " + result[0] + ":" + String.join(",", targets);
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> reply(Object received) {
        return (Map<String, Object>) received;
    }

    /** The result code, unboxed as the engine does, and the units that the administrator is told of. */
    @SuppressWarnings("unchecked")
    private static String told(Map<String, Object> reply) {
        int code = (int) reply.get("result_code");
        Map<String, Object[]> errors = (Map<String, Object[]>) reply.get("plugin_errors");
        for (Object[] messages : errors.values()) {
            for (Object message : messages) {
                ((String) message).length();
            }
        }
        ((Object[]) reply.get("errors")).clone();
        return code + " " + String.join(",", new TreeMap<>(errors).keySet());
    }

    private static Map<String, String> properties() {
        Map<String, String> properties = new HashMap<>();
        properties.put("CpuOverCommitDurationMinutes", "2");
        properties.put("HighUtilization", "80");
        return properties;
    }

    private static String[] hosts(String count) {
        String[] hosts = new String[Integer.parseInt(count)];
        for (int index = 0; index < hosts.length; index++) {
            hosts[index] = String.format("%08d-1111-2222-3333-444444444444", index);
        }
        return hosts;
    }
}
