# Five runs against a server, and one against a slower one.
for seed in 1 2 3 4 5; do
    plimsoll load http://127.0.0.1:8080/ --rate 100 --duration 500ms --seed $seed --name before --quiet
done
plimsoll load http://127.0.0.1:8081/ --rate 100 --duration 500ms --seed 6 --name after --quiet
# 3 if other programs take the processor.
exit 0
