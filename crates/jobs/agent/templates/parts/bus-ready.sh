tries=0
while [ ! -s "$files/ready" ]; do
    if [ "$tries" -ge 60 ] || ! kill -0 "$bus" 2>/dev/null; then
        echo "the bus did not start@SEE@" >&2
        exit 1
    fi
    tries=$((tries + 1))
    sleep 1
done
