    </dev/null >/dev/null 3<&- &
agent=$!
{ cat <&3; kill "$agent"; } >/dev/null 2>&1 &
exec 3<&-
trap 'kill "$agent"' HUP INT TERM
@WAIT@
