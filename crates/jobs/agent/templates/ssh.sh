#!/bin/sh
# Fleet @FLEET@ of plimsoll: an agent on each of @AGENTS@ hosts, bus and coordinator on this machine. Printed by plimsoll @VERSION@.
#
# Usage: sh @FILE@ COMMAND...
#   sh @FILE@ load http://search.internal:8080/ --rate 10000 --duration 1m
#
# The bus listens on loopback. The agents reach it through their ssh connections, which also encrypt it: no port is opened.
# All hosts need the same build of plimsoll, and a POSIX shell as the shell of the user.
@OPEN@
set -eu
umask 077

hosts="@HOSTS@"
program=@PROGRAM@
fleet=@FLEET@
agents=@AGENTS@

if [ "$#" -lt 2 ]; then
    echo "usage: sh $0 load URL FLAGS...: a command that agents carry out" >&2
    exit 64
fi
files="$(mktemp -d)"
token="$files/bus.token"
bus="" tunnels="" coordinator=""

# Called by the trap: ends all that this script has started.
# shellcheck disable=SC2317
end() {
    trap '' HUP INT TERM
    # The end of their stdin is the end of the agents.
    exec 9>&-
    tries=0
    for tunnel in $tunnels; do
        while kill -0 "$tunnel" 2>/dev/null && [ "$tries" -lt 10 ]; do
            tries=$((tries + 1))
            sleep 1
        done
        kill "$tunnel" 2>/dev/null || true
    done
    if [ -n "$bus" ]; then
        kill "$bus" 2>/dev/null || true
        wait "$bus" || true
    fi
    rm -rf "$files"
}
trap end EXIT
trap 'exit 143' HUP INT TERM
mkfifo "$files/hold"
exec 9<>"$files/hold"
exec 8<"$files/hold"

# In a session of its own: a Ctrl-C is for the coordinator, which still needs the bus.
setsid "$program" serve nats --port @PORT@ --token-file "$token" --ready-file "$files/ready" >"$files/bus.out" 9>&- &
bus=$!
tries=0
while [ ! -s "$files/ready" ]; do
    if [ "$tries" -ge 60 ] || ! kill -0 "$bus" 2>/dev/null; then
        echo "the bus did not start" >&2
        exit 1
    fi
    tries=$((tries + 1))
    sleep 1
done
port="$(sed 's/.*://' "$files/ready")"

# On each host: name, port and token come in three lines, and the end of stdin ends the agent. Stdout is the coordinator's.
remote="$(
    cat <<'END'
IFS= read -r name && IFS= read -r port && IFS= read -r PLIMSOLL_BUS_TOKEN || exit 1
export PLIMSOLL_BUS_TOKEN
exec 3<&0
# Homes may be one folder on all hosts, and an agent that finds no folder for its records tries one and removes it again.
mkdir -p plimsoll-runs
@PROGRAM@ agent --bus "nats://127.0.0.1:$port" --fleet @FLEET@ --name "$name" --once --wait 1m \
    --runs plimsoll-runs @ALLOW_SHELL@ \
    </dev/null >/dev/null 3<&- &
agent=$!
{ cat <&3; kill "$agent"; } >/dev/null 2>&1 &
exec 3<&-
trap 'kill "$agent"' HUP INT TERM
code=0
while kill -0 "$agent" 2>/dev/null; do
    code=0
    wait "$agent" || code=$?
done
exit "$code"
END
)"
for host in $hosts; do
    {
        exec 9>&-
        printf '%s\n%s\n' "$host" "$port"
        cat "$token" -
    } <&8 | ssh -T -o BatchMode=yes -o ExitOnForwardFailure=yes -o ServerAliveInterval=5 \
        -R "127.0.0.1:$port:127.0.0.1:$port" "$host" "$remote" 9>&- &
    tunnels="$tunnels $!"
done

command="$1"
shift
"$program" "$command" --agents "$agents" --agents-within 1m --bus "nats://127.0.0.1:$port" --fleet "$fleet" \
    --bus-token-file "$token" "$@" 9>&- &
coordinator=$!
trap : INT
trap 'kill "$coordinator" 2>/dev/null' HUP TERM
code=0
# A signal ends a wait early.
while kill -0 "$coordinator" 2>/dev/null; do
    code=0
    wait "$coordinator" || code=$?
done
exit "$code"
