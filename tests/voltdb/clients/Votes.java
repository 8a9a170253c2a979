import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import org.voltdb.VoltTable;
import org.voltdb.client.Client;
import org.voltdb.client.ClientConfig;
import org.voltdb.client.ClientFactory;
import org.voltdb.client.ClientResponse;

/** Votes through VoltDB's own client for Java: a port, how many, and the first telephone number. */
public final class Votes {
    private static final String NAMES =
            "Edwina Burnam,Tabatha Gehling,Kelly Clauss,Jessie Alloway,Alana Bregman,Jessie Eichman";

    private Votes() {}

    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(arguments[0]);
        int votes = Integer.parseInt(arguments[1]);
        long phone = Long.parseLong(arguments[2]);
        Client client = ClientFactory.createClient(new ClientConfig("", ""));
        client.createConnection("127.0.0.1", port);
        long contestants =
                client.callProcedure("Initialize", 6, NAMES).getResults()[0].asScalarLong();
        long before = results(client);
        AtomicLongArray outcomes = new AtomicLongArray(3);
        AtomicLong failed = new AtomicLong();
        for (int number = 0; number < votes; number++) {
            // One telephone votes again and again, and nobody has the number 999.
            long caller = number % 50 == 0 ? phone : phone + number;
            int contestant = number % 100 == 99 ? 999 : 1 + number % 6;
            boolean queued =
                    client.callProcedure(
                            response -> count(response, outcomes, failed),
                            "Vote",
                            caller,
                            contestant,
                            2L);
            if (!queued) {
                failed.incrementAndGet();
            }
        }
        client.drain();
        System.out.printf(
                "{\"contestants\":%d,\"accepted\":%d,\"no_contestant\":%d,\"over_limit\":%d,"
                        + "\"failed\":%d,\"counted\":%d}%n",
                contestants,
                outcomes.get(0),
                outcomes.get(1),
                outcomes.get(2),
                failed.get(),
                results(client) - before);
        client.close();
    }

    private static void count(ClientResponse response, AtomicLongArray outcomes, AtomicLong failed) {
        if (response.getStatus() == ClientResponse.SUCCESS) {
            outcomes.incrementAndGet((int) response.getResults()[0].asScalarLong());
        } else {
            failed.incrementAndGet();
        }
    }

    private static long results(Client client) throws Exception {
        VoltTable table = client.callProcedure("Results").getResults()[0];
        long votes = 0;
        while (table.advanceRow()) {
            votes += table.getLong("TOTAL_VOTES");
        }
        return votes;
    }
}
