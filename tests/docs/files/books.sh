# The documents and the query mix of docs/load.md.
plimsoll corpus write --limit 500 |
    jq -c '{method: "POST", path: ("/document/v1/books/doc/docid/" + .id), body: {fields: del(.id)}}' >feed.ndjson
plimsoll load http://127.0.0.1:8082 --queries feed.ndjson --clients 8 --requests 500 --quiet
plimsoll corpus queries --limit 500 --each 50 --out mix.ndjson
