//! Examples in the help of each server.

pub const NULL: &str = "\
Examples:
  On port 8080:                     plimsoll serve null --port 8080
  Replies of 30 kB:                 plimsoll serve null --port 8080 --body-bytes 30000";

pub const QUEUE: &str = "\
Examples:
  Four servers with an exponential service of 20 ms, whose load line is known:
    plimsoll serve queue --port 8080 --servers 4 --service exponential:20ms
  The same, with the predicted response times at 120 requests per second:
    plimsoll serve queue --port 8080 --servers 4 --service exponential:20ms --rate 120";

pub const SEARCH: &str = "\
Examples:
  Documents in a temporary folder:  plimsoll serve search --port 8080
  Documents that are kept:          plimsoll serve search --port 8080 --data /tmp/plimsoll-data";

pub const RANK: &str = "\
Examples:
  For two processors:               plimsoll serve rank --port 11222
  For one, with the smallest work:  plimsoll serve rank --port 11222 --preset mini --threads 1";

pub const VOTER: &str = "\
Examples:
  Votes in memory:                  plimsoll serve voter --port 21212
  Votes that are on disk when they are acknowledged:
    plimsoll serve voter --port 21212 --data /tmp/plimsoll-votes --durability sync";

pub const OPENSEARCH: &str = "\
Examples:
  A heap of 1 GiB, the data kept:
    plimsoll serve opensearch --port 9200 --heap 1GiB --data /var/tmp/opensearch";

pub const ELASTICSEARCH: &str = "\
Examples:
  A heap of 1 GiB, the data kept:
    plimsoll serve elasticsearch --port 9200 --heap 1GiB --data /var/tmp/elasticsearch";

pub const POSTGRESQL: &str = "\
Examples:
  In a temporary folder:            plimsoll serve postgresql --port 5433";

pub const VOLTDB: &str = "\
Examples:
  Four partitions:                  plimsoll serve voltdb --port 21212 --partitions 4";

pub const NATS: &str = "\
Examples:
  On loopback, for agents here:     plimsoll serve nats --port 4222
  For agents elsewhere, with a token that it writes to a file:
    plimsoll serve nats --host 0.0.0.0 --port 4222 --token-file bus.token";
