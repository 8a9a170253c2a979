package plimsoll;

import org.voltdb.SQLStmt;
import org.voltdb.VoltProcedure;
import org.voltdb.VoltTable;

/** The contestants that have votes, the most voted for first. */
public class Results extends VoltProcedure {
    public final SQLStmt results =
            new SQLStmt(
                    "SELECT c.contestant_name, c.contestant_number, SUM(v.num_votes) AS total_votes"
                            + " FROM contestants AS c, v_votes_by_contestant_number_state AS v"
                            + " WHERE v.contestant_number = c.contestant_number"
                            + " GROUP BY c.contestant_name, c.contestant_number"
                            + " ORDER BY total_votes DESC, contestant_number, contestant_name");

    public VoltTable[] run() {
        voltQueueSQL(results);
        return voltExecuteSQL(true);
    }
}
