package plimsoll;

import java.util.Map;
import java.util.TreeMap;
import org.voltdb.SQLStmt;
import org.voltdb.VoltProcedure;
import org.voltdb.VoltTable;
import org.voltdb.VoltType;

/** Who leads in each state, all of them where several do; and how many votes each contestant has. */
public class GetStateHeatmap extends VoltProcedure {
    public final SQLStmt byState =
            new SQLStmt(
                    "SELECT state, contestant_number, SUM(num_votes) AS num_votes"
                            + " FROM v_votes_by_contestant_number_state"
                            + " GROUP BY state, contestant_number"
                            + " ORDER BY state, num_votes DESC, contestant_number");

    public VoltTable[] run() {
        voltQueueSQL(byState);
        VoltTable all = voltExecuteSQL(true)[0];
        VoltTable winners =
                new VoltTable(
                        new VoltTable.ColumnInfo("STATE", VoltType.STRING),
                        new VoltTable.ColumnInfo("CONTESTANT_NUMBER", VoltType.INTEGER),
                        new VoltTable.ColumnInfo("NUM_VOTES", VoltType.BIGINT));
        Map<Integer, Long> totals = new TreeMap<>();
        String state = null;
        long most = 0;
        while (all.advanceRow()) {
            if (!all.getString(0).equals(state)) {
                state = all.getString(0);
                most = all.getLong(2);
            }
            int contestant = (int) all.getLong(1);
            totals.merge(contestant, all.getLong(2), Long::sum);
            if (all.getLong(2) == most) {
                winners.addRow(state, contestant, most);
            }
        }
        VoltTable sums =
                new VoltTable(
                        new VoltTable.ColumnInfo("CONTESTANT_NUMBER", VoltType.INTEGER),
                        new VoltTable.ColumnInfo("C2", VoltType.BIGINT));
        totals.forEach((contestant, votes) -> sums.addRow(contestant, votes));
        return new VoltTable[] {winners, sums};
    }
}
