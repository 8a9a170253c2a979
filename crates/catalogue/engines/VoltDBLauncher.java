import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.voltdb.VoltDB;

/**
 * One VoltDB node on loopback, with the catalogue that was made when it was installed. Arguments are its settings,
 * name=value: path.home, port, http, sites and user, whose password is what VOLTDB_PASSWORD holds.
 */
public final class VoltDBLauncher {
    private static final String LOOPBACK = "127.0.0.1";
    /** Where the database and its catalogue are installed. */
    private static final String INSTALLED = System.getProperty("plimsoll.engine", ".");
    private static final long LOOK_EVERY_MS = 20;
    private static final int PORT_MIN = 10_000;
    private static final String CONNECTIONS = "/proc/sys/net/ipv4/ip_local_port_range";
    private static final int TRIES_MAX = 1000;
    /** Ports between the first one of a process and that of the process with the next number. */
    private static final int PORTS_EACH = 16;
    /** How many ports were looked at. */
    private static int lookedAt = 0;

    private VoltDBLauncher() {}

    public static void main(String[] arguments) {
        try {
            Map<String, String> settings = settings(arguments);
            Path home = Path.of(settings.get("path.home"));
            Loopback.endWithParent();
            int port = port(settings.get("port"));
            Thread watch = new Thread(() -> sayReady(port), "ready");
            watch.setDaemon(true);
            watch.start();
            VoltDB.main(command(settings, home, port));
        } catch (Throwable problem) {
            Loopback.failed(problem);
        }
    }

    private static Map<String, String> settings(String[] arguments) {
        Map<String, String> settings = new HashMap<>();
        settings.put("path.home", ".");
        settings.put("port", "0");
        settings.put("http", "0");
        settings.put("sites", "2");
        settings.put("user", "");
        for (String argument : arguments) {
            int at = argument.indexOf('=');
            if (at < 1 || !settings.containsKey(argument.substring(0, at))) {
                throw new IllegalArgumentException("no setting is " + argument);
            }
            settings.put(argument.substring(0, at), argument.substring(at + 1));
        }
        return settings;
    }

    /** What the database's own main is told: every port of it is on loopback. */
    private static String[] command(Map<String, String> settings, Path home, int port)
            throws IOException {
        Path root = Files.createDirectories(home.resolve("root"));
        List<String> words = new ArrayList<>();
        // It starts empty; the edition for the community knows no other beginning without its older command log.
        words.addAll(List.of("create", "catalog", INSTALLED + "/voter.jar"));
        words.addAll(List.of("deployment", deployment(settings, home).toString()));
        words.addAll(List.of("voltdbroot", root.toString()));
        String internal = at(0);
        words.addAll(List.of("host", internal));
        words.addAll(List.of("internalport", internal.substring(LOOPBACK.length() + 1)));
        for (String listener :
                List.of("externalinterface", "internalinterface", "publicinterface")) {
            words.addAll(List.of(listener, LOOPBACK));
        }
        words.addAll(List.of("port", LOOPBACK + ":" + port));
        words.addAll(List.of("adminport", at(0)));
        words.addAll(List.of("httpport", at(Integer.parseInt(settings.get("http")))));
        words.addAll(List.of("zkport", at(0)));
        words.addAll(List.of("replicationport", at(0)));
        return words.toArray(new String[0]);
    }

    private static String at(int port) throws IOException {
        return LOOPBACK + ":" + port(port);
    }

    private static int port(String text) throws IOException {
        return port(Integer.parseInt(text));
    }

    /**
     * The port itself, or for 0 one that is free now. The database takes its ports seconds later: so it is none of those
     * that the system hands out to connections meanwhile, and none that another database looks at, whose process has
     * another number.
     */
    private static int port(int port) throws IOException {
        if (port != 0) {
            return port;
        }
        int span = Math.max(PORTS_EACH, firstOfConnections() - PORT_MIN);
        long first = ProcessHandle.current().pid() * PORTS_EACH;
        for (int tries = 0; tries < TRIES_MAX; tries++) {
            int candidate = PORT_MIN + (int) ((first + lookedAt++) % span);
            try (ServerSocket socket =
                    new ServerSocket(candidate, 1, InetAddress.getByName(LOOPBACK))) {
                return candidate;
            } catch (IOException inUse) {
                // Another one will be free.
            }
        }
        throw new IOException("no port from " + PORT_MIN + " to " + (PORT_MIN + span) + " is free");
    }

    /** The lowest port that the system gives to connections. */
    private static int firstOfConnections() throws IOException {
        // The kernel tells it to the first read only.
        byte[] range = new byte[64];
        try (InputStream file = Files.newInputStream(Path.of(CONNECTIONS))) {
            int length = Math.max(0, file.read(range));
            String text = new String(range, 0, length, StandardCharsets.US_ASCII);
            return Integer.parseInt(text.trim().split("\\s+")[0]);
        }
    }

    private static Path deployment(Map<String, String> settings, Path home) throws IOException {
        String user = settings.get("user");
        StringBuilder text = new StringBuilder("<?xml version=\"1.0\"?>\n<deployment>\n");
        text.append("  <cluster hostcount=\"1\" kfactor=\"0\" sitesperhost=\"");
        text.append(Integer.parseInt(settings.get("sites"))).append("\"/>\n");
        text.append("  <partition-detection enabled=\"false\"/>\n");
        text.append("  <snapshot enabled=\"false\"/>\n");
        text.append("  <commandlog enabled=\"false\"/>\n");
        text.append("  <httpd enabled=\"true\"><jsonapi enabled=\"true\"/></httpd>\n");
        if (!user.isEmpty()) {
            String password = System.getenv().getOrDefault("VOLTDB_PASSWORD", "");
            text.append("  <security enabled=\"true\"/>\n  <users><user name=\"");
            text.append(escaped(user)).append("\" password=\"").append(escaped(password));
            text.append("\" roles=\"administrator\"/></users>\n");
        }
        text.append("</deployment>\n");
        Path file = home.resolve("deployment.xml");
        Files.deleteIfExists(file);
        // It may hold a password.
        Files.createFile(
                file,
                PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
        return Files.writeString(file, text);
    }

    private static String escaped(String text) {
        return text.replace("&", "&amp;").replace("<", "&lt;").replace("\"", "&quot;");
    }

    /** Says so when somebody listens; whether the database really answers, plimsoll asks itself. */
    private static void sayReady(int port) {
        while (true) {
            try (Socket socket = new Socket()) {
                Thread.sleep(LOOK_EVERY_MS);
                socket.connect(new InetSocketAddress(LOOPBACK, port), 1000);
                Loopback.ready(port);
                return;
            } catch (IOException notYet) {
                // It has ended by itself when it does not come at all, and that is seen.
            } catch (InterruptedException end) {
                return;
            }
        }
    }
}
