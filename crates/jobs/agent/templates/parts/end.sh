# Called by the trap: ends all that this script has started.
# shellcheck disable=SC2317
end() {
    trap '' HUP INT TERM
    # The end of their stdin is the end of agents that ssh has started.
    exec 9>&-
    # Agents that have carried out their part end by themselves.
    tries=0
    for step in $steps; do
        while kill -0 "$step" 2>/dev/null && [ "$tries" -lt 10 ]; do
            tries=$((tries + 1))
            sleep 1
        done
        kill "$step" 2>/dev/null || true
        wait "$step" 2>/dev/null || true
    done
    if [ -n "$bus" ]; then
        kill "$bus" 2>/dev/null || true
        wait "$bus" 2>/dev/null || true
    fi
    @CLEAN@
}
trap end EXIT
trap 'exit 143' HUP INT TERM
