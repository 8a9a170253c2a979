package plimsoll;

import java.util.ArrayList;
import java.util.List;
import org.voltdb.SQLStmt;
import org.voltdb.VoltProcedure;
import org.voltdb.VoltTable;
import org.voltdb.VoltType;

/** The states in which a contestant has the most votes, alone or with others, the largest first. */
public class ContestantWinningStates extends VoltProcedure {
    public final SQLStmt byState =
            new SQLStmt(
                    "SELECT state, contestant_number, SUM(num_votes) AS num_votes"
                            + " FROM v_votes_by_contestant_number_state"
                            + " GROUP BY state, contestant_number"
                            + " ORDER BY state, num_votes DESC, contestant_number");

    private static final class Won {
        final String state;
        final long votes;

        Won(String state, long votes) {
            this.state = state;
            this.votes = votes;
        }
    }

    public VoltTable run(int contestantNumber, int max) {
        voltQueueSQL(byState);
        VoltTable all = voltExecuteSQL(true)[0];
        List<Won> won = new ArrayList<>();
        String state = null;
        long most = 0;
        while (all.advanceRow()) {
            if (!all.getString(0).equals(state)) {
                state = all.getString(0);
                most = all.getLong(2);
            }
            if (all.getLong(1) == contestantNumber && all.getLong(2) == most) {
                won.add(new Won(state, most));
            }
        }
        // The sort keeps the order of the alphabet among equals.
        won.sort((one, other) -> Long.compare(other.votes, one.votes));
        VoltTable table =
                new VoltTable(
                        new VoltTable.ColumnInfo("STATE", VoltType.STRING),
                        new VoltTable.ColumnInfo("NUM_VOTES", VoltType.BIGINT));
        for (Won one : won.subList(0, Math.max(0, Math.min(max, won.size())))) {
            table.addRow(one.state, one.votes);
        }
        return table;
    }
}
