import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.tools.consumer.group.ConsumerGroupCommand;

/**
 * Runs Kafka's command line tools, many in one JVM.
 *
 * <p>Each line of standard input is a JSON array: {@code groups} for kafka-consumer-groups or
 * {@code configs} for kafka-configs, and its arguments. Each run prints an event {@code done} with
 * the exit code and what the tool printed.
 */
public final class ToolsProgram {
    private static final ObjectMapper JSON = new ObjectMapper();

    private ToolsProgram() {}

    /** In place of the end of the process. */
    private static final class Ended extends RuntimeException {
        private static final long serialVersionUID = 1;
        final int code;

        Ended(int code) {
            this.code = code;
        }
    }

    public static void main(String[] args) throws IOException {
        Exit.setExitProcedure((code, message) -> {
            throw new Ended(code);
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

    private static int run(String tool, String[] arguments) {
        try {
            switch (tool) {
                case "groups" -> ConsumerGroupCommand.main(arguments);
                case "configs" -> kafka.admin.ConfigCommand.main(arguments);
                default -> throw new IllegalArgumentException("no tool " + tool);
            }
            return 0;
        } catch (Ended ended) {
            return ended.code;
        }
    }
}
