package plimsoll;

import org.voltdb.SQLStmt;
import org.voltdb.VoltProcedure;
import org.voltdb.VoltTable;

/** Keeps how a dialect greets the world. */
public class Insert extends VoltProcedure {
    public final SQLStmt insert =
            new SQLStmt("INSERT INTO helloworld (dialect, hello, world) VALUES (?, ?, ?)");

    public VoltTable[] run(String dialect, String hello, String world) {
        voltQueueSQL(insert, dialect, hello, world);
        return voltExecuteSQL(true);
    }
}
