import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.opensearch.analysis.common.CommonAnalysisPlugin;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.http.HttpServerTransport;
import org.opensearch.index.reindex.ReindexPlugin;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.plugins.Plugin;
import org.opensearch.transport.Netty4Plugin;

/** One OpenSearch node on loopback. Arguments are its settings, name=value; its data is below path.home. */
public final class OpenSearchLauncher extends Node {
    private static final Collection<Class<? extends Plugin>> PLUGINS =
            List.of(
                    Netty4Plugin.class,
                    CommonAnalysisPlugin.class,
                    ReindexPlugin.class);

    private OpenSearchLauncher(Environment environment) {
        super(environment, PLUGINS, false);
    }

    public static void main(String[] arguments) {
        try {
            Settings.Builder settings = Settings.builder();
            Loopback.settings(arguments).forEach(settings::put);
            Environment environment =
                    InternalSettingsPreparer.prepareEnvironment(
                            settings.build(), Map.of(), null, () -> "plimsoll");
            Node node = new OpenSearchLauncher(environment);
            Runtime.getRuntime().addShutdownHook(new Thread(() -> close(node), "stop"));
            Loopback.endWithParent();
            node.start();
            // Indices that were here before are found again before anybody is told that the engine answers.
            node.client().admin().cluster().prepareHealth().setWaitForYellowStatus().get("60s");
            HttpServerTransport http = node.injector().getInstance(HttpServerTransport.class);
            Loopback.ready(http.boundAddress().publishAddress().getPort());
            // The node's own threads keep no process alive.
            Thread.currentThread().join();
        } catch (Throwable problem) {
            Loopback.failed(problem);
        }
    }

    private static void close(Node node) {
        try {
            node.close();
        } catch (Exception problem) {
            System.err.println("the node did not close in order: " + problem);
        }
    }
}
