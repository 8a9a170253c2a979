# Four outputs of wrk, one for each number of nodes.
n=0
for rate in 490.82 960.10 1403.55 1822.40; do
    n=$((n + 1))
    sed "s/Requests.sec: .*/Requests\/sec:    $rate/" wrk.txt >wrk-$n.txt
done
