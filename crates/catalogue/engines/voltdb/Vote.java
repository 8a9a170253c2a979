package plimsoll;

import org.voltdb.SQLStmt;
import org.voltdb.VoltProcedure;
import org.voltdb.VoltTable;

/** Counts one telephone's vote, or says why not. */
public class Vote extends VoltProcedure {
    /** The vote is counted. */
    public static final long ACCEPTED = 0;
    /** Nobody has this number. */
    public static final long NO_SUCH_CONTESTANT = 1;
    /** This telephone has voted as often as it may. */
    public static final long TOO_MANY_VOTES = 2;

    /** The state of a telephone whose area code is none. */
    private static final String NO_STATE = "XX";
    /** Digits of a telephone number behind its area code, as a factor. */
    private static final long BEHIND_AREA_CODE = 10_000_000L;

    public final SQLStmt contestant =
            new SQLStmt("SELECT contestant_number FROM contestants WHERE contestant_number = ?");
    public final SQLStmt votesSoFar =
            new SQLStmt("SELECT num_votes FROM v_votes_by_phone_number WHERE phone_number = ?");
    public final SQLStmt stateOf =
            new SQLStmt("SELECT state FROM area_code_state WHERE area_code = ?");
    public final SQLStmt insert =
            new SQLStmt(
                    "INSERT INTO votes (phone_number, state, contestant_number) VALUES (?, ?, ?)");

    public long run(long phoneNumber, int contestantNumber, long maxVotesPerPhoneNumber) {
        voltQueueSQL(contestant, EXPECT_ZERO_OR_ONE_ROW, contestantNumber);
        voltQueueSQL(votesSoFar, EXPECT_ZERO_OR_ONE_ROW, phoneNumber);
        voltQueueSQL(stateOf, EXPECT_ZERO_OR_ONE_ROW, (short) (phoneNumber / BEHIND_AREA_CODE));
        VoltTable[] known = voltExecuteSQL();
        if (known[0].getRowCount() == 0) {
            return NO_SUCH_CONTESTANT;
        }
        // The limit is only looked at where the telephone has voted, as VoltDB's own example does it: a first vote always counts.
        if (known[1].getRowCount() == 1 && known[1].asScalarLong() >= maxVotesPerPhoneNumber) {
            return TOO_MANY_VOTES;
        }
        String state = known[2].getRowCount() == 1 ? known[2].fetchRow(0).getString(0) : NO_STATE;
        voltQueueSQL(insert, EXPECT_SCALAR_MATCH(1), phoneNumber, state, contestantNumber);
        voltExecuteSQL(true);
        return ACCEPTED;
    }
}
