import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.tools.TopicCommand;
import org.apache.kafka.tools.consumer.group.ConsumerGroupCommand;

/**
 * Runs Kafka's command line tools, many in one JVM.
 *
 * <p>Each line of standard input is a JSON array: {@code groups} for kafka-consumer-groups,
 * {@code configs} for kafka-configs or {@code topics} for kafka-topics, and its arguments; or {@code admin}, a bootstrap address, and a
 * call of {@link GroupCalls} (or, after {@code plain}, of {@link AdminCalls}) with its arguments.
 * Each run prints an event {@code done} with the exit code and what the tool printed.
 */
public final class ToolsProgram {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<String, Admin> ADMINS = new HashMap<>();

    private ToolsProgram() {}

    /** The first exit code of a run: a tool may catch what stops it, and end a second time. */
    private static Integer exitCode;

    /** In place of the end of the process. */
    private static final class Ended extends RuntimeException {
        private static final long serialVersionUID = 1;

        Ended() {
            super("the tool ends", null, false, false);
        }
    }

    public static void main(String[] args) throws IOException {
        Exit.setExitProcedure((code, message) -> {
            exitCode = exitCode == null ? code : exitCode;
            throw new Ended();
        });
        PrintStream out = System.out;
        PrintStream err = System.err;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = JSON.readValue(line, String[].class);
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            PrintStream captured = new PrintStream(printed, true, StandardCharsets.UTF_8);
            System.setOut(captured);
            System.setErr(captured);
            int code = run(words[0], Arrays.copyOfRange(words, 1, words.length));
            System.setOut(out);
            System.setErr(err);
            Events.print("done", "exit", code, "printed", printed.toString(StandardCharsets.UTF_8));
        }
    }

    private static int run(String tool, String[] arguments) throws IOException {
        exitCode = null;
        try {
            switch (tool) {
                case "admin" -> System.out.println(JSON.writeValueAsString(call(arguments)));
                case "groups" -> ConsumerGroupCommand.main(arguments);
                case "topics" -> TopicCommand.main(arguments);
                case "configs" -> kafka.admin.ConfigCommand.main(arguments);
                default -> throw new IllegalArgumentException("no tool " + tool);
            }
        } catch (Ended ended) {
            // Its code is kept.
        }
        return exitCode == null ? 0 : exitCode;
    }

    private static Object call(String[] arguments) {
        Admin admin = ADMINS.computeIfAbsent(arguments[0], address -> Admin.create(Map.of(
            AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, address,
            AdminClientConfig.DEFAULT_API_TIMEOUT_MS_CONFIG, 15_000,
            AdminClientConfig.REQUEST_TIMEOUT_MS_CONFIG, 10_000)));
        List<String> words = Arrays.asList(arguments).subList(2, arguments.length);
        try {
            return arguments[1].equals("plain")
                ? new AdminCalls(admin).call(words.get(0), words.subList(1, words.size()))
                : new GroupCalls(admin).call(arguments[1], words);
        } catch (Exception error) {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            return cause.getClass().getSimpleName() + ": " + cause.getMessage();
        }
    }
}
