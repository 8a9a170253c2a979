#!/bin/bash
# Fleet @FLEET@ of plimsoll: @AGENTS@ agents on nodes of their own, the bus and the coordinator on one more node. Printed by plimsoll
# @VERSION@.
#
# Usage: sbatch @FILE@ COMMAND...
#   sbatch @FILE@ load http://search.internal:8080/ --rate 100000 --duration 5m
@OPEN@
#SBATCH --job-name=@BASE@
#SBATCH --nodes=@NODES@
#SBATCH --ntasks-per-node=1
@SBATCH@
#SBATCH --exclusive
set -euo pipefail
umask 077

program=@PROGRAM@
fleet=@FLEET@
agents=@AGENTS@

if [ "$#" -lt 2 ]; then
    echo "usage: sbatch $0 load URL FLAGS...: a command that agents carry out" >&2
    exit 64
fi
cd "$SLURM_SUBMIT_DIR"
# The folder is on all nodes. The token is in a file of mode 0600, and on no command line.
files="plimsoll-$SLURM_JOB_ID"
mkdir "$files"
token="$SLURM_SUBMIT_DIR/$files/bus.token"
bus="" agent_step="" coordinator=""

# Called by the trap: ends all that this script has started.
# shellcheck disable=SC2317
end() {
    trap '' HUP INT TERM
    # Agents that have carried out their part end by themselves.
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        if [ -z "$agent_step" ] || ! kill -0 "$agent_step" 2>/dev/null; then break; fi
        sleep 1
    done
    for pid in $agent_step $bus; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    rm -f "$token" "$files/ready"
}
trap end EXIT
trap 'exit 143' HUP INT TERM

# In a session of its own: a Ctrl-C is for the coordinator, which still needs the bus.
setsid "$program" serve nats --host 0.0.0.0 --port @PORT@ --token-file "$token" --ready-file "$files/ready" \
    --log "$files/bus.log" >"$files/bus.out" &
bus=$!
for _ in {1..60}; do
    [ -s "$files/ready" ] && break
    kill -0 "$bus" 2>/dev/null || break
    sleep 1
done
if [ ! -s "$files/ready" ]; then
    echo "the bus did not start; see $SLURM_SUBMIT_DIR/$files" >&2
    exit 1
fi
host="$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)"
url="nats://$host:$(sed 's/.*://' "$files/ready")"

agent="$(
    cat <<'END'
exec "$0" agent --bus "$1" --fleet "$2" --bus-token-file "$3" --name "agent-$SLURM_PROCID" --once --wait 2m \
    --runs "$4/agent-$SLURM_PROCID" @ALLOW_SHELL@ >"$4/agent-$SLURM_PROCID.out"
END
)"
# A node that is not the first one for each agent. An agent that fails does not end the others: the coordinator judges the run.
srun --relative=1 --nodes="$agents" --ntasks="$agents" --ntasks-per-node=1 --kill-on-bad-exit=0 \
    bash -c "$agent" "$program" "$url" "$fleet" "$token" "$SLURM_SUBMIT_DIR/$files" &
agent_step=$!

command="$1"
shift
"$program" "$command" --agents "$agents" --agents-within 2m --bus "$url" --fleet "$fleet" --bus-token-file "$token" \
    --runs "$files/runs" "$@" &
coordinator=$!
trap 'kill "$coordinator" 2>/dev/null' HUP INT TERM
code=0
# A signal ends a wait early.
while kill -0 "$coordinator" 2>/dev/null; do
    code=0
    wait "$coordinator" || code=$?
done
exit "$code"
