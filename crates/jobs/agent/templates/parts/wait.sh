code=0
# A signal ends a wait early.
while kill -0 "$@CHILD@" 2>/dev/null; do
    code=0
    wait "$@CHILD@" || code=$?
done
exit "$code"
