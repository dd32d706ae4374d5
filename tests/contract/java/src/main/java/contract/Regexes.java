// Judges regular expressions, one a line on stdin, as the engine's Java does.
package contract;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;

/** Prints "right" or "wrong" for each. */
public final class Regexes {
    private Regexes() {
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        StringBuilder verdicts = new StringBuilder();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            verdicts.append(compiles(line) ? "right\n" : "wrong\n");
        }
        System.out.print(verdicts);
    }

    private static boolean compiles(String regex) {
        try {
            Pattern.compile(regex);
            return true;
        } catch (PatternSyntaxException error) {
            return false;
        }
    }
}
