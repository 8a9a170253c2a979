# The bundled text as operations, fed to a server that refuses some of them.
plimsoll corpus write --limit 67700 |
    jq -c '{put: ("id:plimsoll:doc::" + .id), fields: del(.id)}' >bundled.ndjson
plimsoll feed http://127.0.0.1:8083 bundled.ndjson --quiet
