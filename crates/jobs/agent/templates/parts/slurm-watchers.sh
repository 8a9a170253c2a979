
# Agents that send no load and report what the machines of the target use. ssh starts them: the hosts have this folder, and are not
# those of the job. Their values come in lines, and the end of stdin ends them.
watcher="$(
    cat <<'END'
IFS= read -r name && IFS= read -r url && IFS= read -r token && IFS= read -r tls || exit 1
exec 3<&0
@PROGRAM@ agent --role watch @WATCH_SHELL@ --bus "$url" --fleet @FLEET@ --bus-token-file "$token"@TLS_CLIENT@ \
    --name "$name" --once --wait 2m \
@HELD@
END
)"
hold="$(mktemp -d)"
@HOLD@
rm -r "$hold"
for host in @WATCHED@; do
    {
        exec 9>&-
        printf '%s\n' "watcher-$host" "$url" "$token" "$tls"
        cat
    } <&8 | ssh -T -o BatchMode=yes -o ServerAliveInterval=5 "$host" "$watcher" 9>&- &
    steps="$steps $!"
done
