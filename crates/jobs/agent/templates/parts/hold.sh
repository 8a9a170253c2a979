mkfifo "$hold/hold"
exec 9<>"$hold/hold"
exec 8<"$hold/hold"
