import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;

/** What the launchers of both engines share: their arguments, their ready line, and their end. */
final class Loopback {
    private Loopback() {}

    /** Settings from arguments of the form name=value; the ones below may be given anew, their addresses not. */
    static Map<String, String> settings(String[] arguments) {
        Map<String, String> settings = new LinkedHashMap<>();
        settings.put("cluster.name", "plimsoll");
        settings.put("node.name", "plimsoll");
        settings.put("discovery.type", "single-node");
        settings.put("http.type", "netty4");
        settings.put("transport.type", "netty4");
        settings.put("transport.port", "0");
        // A disk that is nearly full would make indices read-only in the middle of a measurement; who fills it
        // gets the disk's own error instead.
        settings.put("cluster.routing.allocation.disk.threshold_enabled", "false");
        for (String argument : arguments) {
            int at = argument.indexOf('=');
            if (at < 1) {
                throw new IllegalArgumentException("write name=value instead of " + argument);
            }
            settings.put(argument.substring(0, at), argument.substring(at + 1));
        }
        // The engines have no passwords here.
        settings.put("network.host", "127.0.0.1");
        settings.put("http.host", "127.0.0.1");
        settings.put("transport.host", "127.0.0.1");
        return settings;
    }

    /** Ends this process in order when whoever started it goes away: its standard input ends then. */
    static void endWithParent() {
        Thread watch =
                new Thread(
                        () -> {
                            try {
                                while (System.in.read() >= 0) {}
                            } catch (IOException broken) {
                                // Gone all the same.
                            }
                            System.exit(0);
                        },
                        "parent");
        watch.setDaemon(true);
        watch.start();
    }

    static void ready(int port) {
        System.out.println("ready 127.0.0.1:" + port);
        System.out.flush();
    }

    /** Says in one line why the engine does not start. */
    static void failed(Throwable problem) {
        Throwable cause = problem;
        while (cause.getCause() != null) {
            cause = cause.getCause();
        }
        String text = String.valueOf(cause.getMessage()).replace('\n', ' ');
        System.out.println("failed " + cause.getClass().getSimpleName() + ": " + text);
        System.out.flush();
        System.exit(1);
    }
}
