# Runs on 1 to 4 workers: closed clients (one, two, three, four), and few and many of them on one and two workers (slow-1, fast-1, ...).
# A run that is not valid, because other programs had the processor, is repeated; the newest of a name is meant.
load() {
    for try in 1 2 3 4 5 6; do
        plimsoll load "$url/" --label workers="$n" --name "$@" --quiet >/dev/null && break
    done
}
n=0
for name in one two three four; do
    n=$((n + 1))
    plimsoll serve queue --servers $n --service exponential:4ms --port 0 > ready-$n &
    server=$!
    until grep -q ready ready-$n; do sleep 0.05; done
    url=$(cut -d ' ' -f 3 ready-$n)
    load $name --clients 32 --duration 1s
    if [ $n -le 2 ]; then
        load slow-$n --clients $n --duration 1s
        load fast-$n --clients 40 --duration 1s
    fi
    kill $server
    wait $server || true
done
