// Judges custom properties as the engine does: what a unit declares, and whether a value may be set.
package contract;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Pattern;

/** Takes lines of DECLARED, NAME and VALUE with tabs between them, and prints for each what becomes of it. */
public final class EngineProperties {
    private static final String ENTRY = "(([a-z_A-Z0-9])+)=(([^;])+)";
    private static final Pattern DECLARATION = Pattern.compile(ENTRY + "(;" + ENTRY + ")*;?");

    private EngineProperties() {
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split("\t", -1);
            out.println(judge(parts[0], parts[1], parts[2]));
        }
    }

    private static String judge(String declared, String name, String value) {
        if (!DECLARATION.matcher(declared).matches()) {
            return "bad declaration";
        }
        Map<String, String> patterns = new LinkedHashMap<>();
        for (String entry : declared.split(";")) {
            String[] pair = entry.split("=", 2);
            patterns.put(pair[0], pair[1]);
        }
        if (!patterns.containsKey(name)) {
            return "unknown";
        }
        return Pattern.compile(patterns.get(name)).matcher(value).matches() ? "right" : "wrong";
    }
}
