# A feed that is stopped before its input ends: the line that says where. It has begun after a few seconds on a busy machine too.
i=0
while [ $i -lt 20000 ]; do
    echo "{\"put\":\"id:shop:music::$i\",\"fields\":{\"artist\":\"a\"}}"
    i=$((i + 1))
done >in.ndjson
timeout -s INT 6 plimsoll feed http://127.0.0.1:8080 in.ndjson --rate 50 --quiet | grep '^Not read'
