package plimsoll;

import org.voltdb.SQLStmt;
import org.voltdb.VoltProcedure;
import org.voltdb.VoltTable;

/** How a dialect greets the world. */
public class Select extends VoltProcedure {
    public final SQLStmt select =
            new SQLStmt("SELECT hello, world FROM helloworld WHERE dialect = ?");

    public VoltTable[] run(String dialect) {
        voltQueueSQL(select, dialect);
        return voltExecuteSQL(true);
    }
}
