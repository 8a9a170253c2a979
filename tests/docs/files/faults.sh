# Query files with faults, and what plimsoll says of each.
say() { plimsoll "$@" 2>&1 >/dev/null | sed 's/^plimsoll: //'; }
q='fbench -n 1 -s 1 -q queries.txt 127.0.0.1 8080'
printf '/a\n/b\n/search/ c\n' >queries.txt
say $q
printf '{"no":"url"}\n/a\nbody\n' >queries.txt
say fbench -P ${q#fbench}
printf '/a\n/b\n/c\nhttp://other/a\n' >queries.txt
say load http://127.0.0.1:8080 --queries queries.txt
printf '/a\n/a\n/a\n/a\n/a\n/a\n/b\0c\n' >queries.txt
say $q
printf '/a\n{"a":1}\n' >queries.txt
say fbench -P -d ${q#fbench}
yes '{"path":"/a"}' | head -n 40 >queries.ndjson
printf '{"pat":"/b"}\n' >>queries.ndjson
say load http://127.0.0.1:8080 --queries queries.ndjson
