// Answers questions about states with the engine's own classes: a question a line in, an answer a line out.
package conformance;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.logging.LogManager;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

public final class Main {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Main() {
    }

    public static void main(String[] arguments) throws Exception {
        LogManager.getLogManager().reset();
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        Settings.install();
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            answers.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
            if (!questions.ready()) {
                answers.flush();
            }
        }
        answers.flush();
    }

    private static Map<String, Object> answer(JsonNode question) {
        Map<String, Object> answer = new LinkedHashMap<>();
        try {
            Beans beans = new Beans();
            State state = new State(question);
            Stores.fill(beans, state);
            answer.put("answer", Kinds.answer(question.get("kind").asText(), beans, state, question.get("request")));
        } catch (Throwable error) {
            Throwable cause = error;
            while (cause.getCause() != null) {
                cause = cause.getCause();
            }
            answer.put("raised", cause.getClass().getSimpleName());
            answer.put("where", cause.toString() + " at "
                    + (cause.getStackTrace().length > 0 ? cause.getStackTrace()[0] : "?"));
        }
        return answer;
    }
}
