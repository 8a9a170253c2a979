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
bus="" steps="" coordinator=""

@END_PART@
hold="$files"
@HOLD@

# In a session of its own: a Ctrl-C is for the coordinator, which still needs the bus.
setsid "$program" serve nats --port @PORT@ --token-file "$token" --ready-file "$files/ready" >"$files/bus.out" 9>&- &
bus=$!
@BUS_READY@
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
@HELD@
END
)"
# Starts an agent on a host: the host, the name of the agent, and the text for the host's shell.
start() {
    {
        exec 9>&-
        printf '%s\n%s\n' "$2" "$port"
        cat "$token" -
    } <&8 | ssh -T -o BatchMode=yes -o ExitOnForwardFailure=yes -o ServerAliveInterval=5 \
        -R "127.0.0.1:$port:127.0.0.1:$port" "$1" "$3" 9>&- &
    steps="$steps $!"
}
for host in $hosts; do
    start "$host" "$host" "$remote"
done
@WATCHERS_PART@

command="$1"
shift
"$program" "$command" --agents "$agents"@WATCHERS_FLAG@ --agents-within 1m --bus "nats://127.0.0.1:$port" --fleet "$fleet" \
    --bus-token-file "$token" "$@" 9>&- &
coordinator=$!
trap : INT
trap 'kill "$coordinator" 2>/dev/null' HUP TERM
@WAIT@
