import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicLong;
import org.voltdb.client.Client;
import org.voltdb.client.ClientConfig;
import org.voltdb.client.ClientFactory;
import org.voltdb.client.ClientResponse;

/**
 * Votes as fast as VoltDB's own client for Java gets them through: a port, votes to warm up with, votes to count, votes
 * under way at once, and a seed. Says how many were answered, and what processor time and wall time the counted ones
 * took.
 */
public final class VoteLoad {
    private static final int[] AREA_CODES = {212, 415, 206, 617, 312, 305, 512, 702};

    private VoteLoad() {}

    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(arguments[0]);
        long warm = Long.parseLong(arguments[1]);
        long votes = Long.parseLong(arguments[2]);
        ClientConfig config = new ClientConfig("", "");
        config.setMaxOutstandingTxns(Integer.parseInt(arguments[3]));
        SplittableRandom dice = new SplittableRandom(Long.parseLong(arguments[4]));
        Client client = ClientFactory.createClient(config);
        client.createConnection("127.0.0.1", port);
        client.callProcedure("Initialize", 6, "A,B,C,D,E,F");
        long answered = vote(client, dice, warm);
        long cpuNs = cpuNs();
        long begunNs = System.nanoTime();
        answered += vote(client, dice, votes);
        double seconds = (System.nanoTime() - begunNs) / 1e9;
        double cpuS = (cpuNs() - cpuNs) / 1e9;
        client.close();
        System.out.printf(
                "{\"votes\":%d,\"answered\":%d,\"seconds\":%.6f,\"cpu_s\":%.6f}%n",
                warm + votes,
                answered,
                seconds,
                cpuS);
    }

    private static long vote(Client client, SplittableRandom dice, long votes) throws Exception {
        AtomicLong answered = new AtomicLong();
        for (long vote = 0; vote < votes; vote++) {
            long code = AREA_CODES[dice.nextInt(AREA_CODES.length)];
            long phone = code * 10_000_000L + dice.nextInt(10_000_000);
            client.callProcedure(
                    response -> {
                        if (response.getStatus() == ClientResponse.SUCCESS) {
                            answered.incrementAndGet();
                        }
                    },
                    "Vote",
                    phone,
                    1 + dice.nextInt(6),
                    2L);
        }
        client.drain();
        return answered.get();
    }

    private static long cpuNs() {
        return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
                .getProcessCpuTime();
    }
}
