#!/bin/bash
# Fleet @FLEET@ of plimsoll: @AGENTS@ agents on nodes of their own, the bus and the coordinator on one more node. Printed by plimsoll
# @VERSION@.
#
# Usage: sbatch @FILE@ COMMAND...
#   sbatch @FILE@ load http://search.internal:8080/ --rate 100000 --duration 5m
@TLS_STEPS@
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
tls=@TLS_FOLDER@

if [ "$#" -lt 2 ]; then
    echo "usage: sbatch $0 load URL FLAGS...: a command that agents carry out" >&2
    exit 64
fi
cd "$SLURM_SUBMIT_DIR"
# The folder is on all nodes. The token is in a file of mode 0600, and on no command line.
files="plimsoll-$SLURM_JOB_ID"
mkdir "$files"
token="$SLURM_SUBMIT_DIR/$files/bus.token"
bus="" steps="" coordinator=""

@END_PART@

# In a session of its own: a Ctrl-C is for the coordinator, which still needs the bus.
setsid "$program" serve nats --host 0.0.0.0 --port @PORT@ --token-file "$token"@TLS_BUS@ --ready-file "$files/ready" \
    --log "$files/bus.log" >"$files/bus.out" &
bus=$!
@BUS_READY@
host="$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)"
url="@SCHEME@://$host:$(sed 's/.*://' "$files/ready")"

agent="$(
    cat <<'END'
tls="$5"
exec "$0" agent --bus "$1" --fleet "$2" --bus-token-file "$3"@TLS_CLIENT@ --name "agent-$SLURM_PROCID" --once --wait 2m \
    --runs "$4/agent-$SLURM_PROCID" @ALLOW_SHELL@ >"$4/agent-$SLURM_PROCID.out"
END
)"
# A node that is not the first one for each agent. An agent that fails does not end the others: the coordinator judges the run.
srun --relative=1 --nodes="$agents" --ntasks="$agents" --ntasks-per-node=1 --kill-on-bad-exit=0 \
    bash -c "$agent" "$program" "$url" "$fleet" "$token" "$SLURM_SUBMIT_DIR/$files" "$tls" &
steps="$!"
@WATCHERS_PART@

command="$1"
shift
"$program" "$command" --agents "$agents"@WATCHERS_FLAG@ --agents-within 2m --bus "$url" --fleet "$fleet" --bus-token-file "$token"@TLS_CLIENT@ \
    --runs "$files/runs" "$@" 9>&- &
coordinator=$!
trap 'kill "$coordinator" 2>/dev/null' HUP INT TERM
@WAIT@
