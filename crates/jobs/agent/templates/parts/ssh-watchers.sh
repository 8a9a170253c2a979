
# Agents that send no load and report what the machines of the target use.
watcher="$(
    cat <<'END'
IFS= read -r name && IFS= read -r port && IFS= read -r PLIMSOLL_BUS_TOKEN || exit 1
export PLIMSOLL_BUS_TOKEN
exec 3<&0
@PROGRAM@ agent --role watch @WATCH_SHELL@ --bus "nats://127.0.0.1:$port" --fleet @FLEET@ --name "$name" --once --wait 1m \
@HELD@
END
)"
for host in @WATCHED@; do
    start "$host" "watcher-$host" "$watcher"
done
