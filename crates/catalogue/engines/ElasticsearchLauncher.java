import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.env.Environment;
import org.elasticsearch.http.HttpServerTransport;
import org.elasticsearch.index.reindex.ReindexPlugin;
import org.elasticsearch.node.InternalSettingsPreparer;
import org.elasticsearch.node.Node;
import org.elasticsearch.plugins.Plugin;
import org.elasticsearch.transport.Netty4Plugin;

/** One Elasticsearch node on loopback. Arguments are its settings, name=value; its data is below path.home. */
public final class ElasticsearchLauncher extends Node {
    private static final Collection<Class<? extends Plugin>> PLUGINS =
            List.of(
                    Netty4Plugin.class,
                    ReindexPlugin.class);

    private ElasticsearchLauncher(Environment environment) {
        super(environment, PLUGINS, false);
    }

    public static void main(String[] arguments) {
        try {
            Settings.Builder settings = Settings.builder();
            Loopback.settings(arguments).forEach(settings::put);
            Environment environment =
                    InternalSettingsPreparer.prepareEnvironment(
                            settings.build(), Map.of(), null, () -> "plimsoll");
            Node node = new ElasticsearchLauncher(environment);
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
