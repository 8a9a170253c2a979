# The digest of a visit, by the page's line of Python.
set -e
plimsoll visit http://127.0.0.1:8080 --cluster music --out all.ndjson --quiet --verbose >page.txt
python3 - <<PYTHON
import hashlib, json, re
lines = [json.loads(line) for line in open("all.ndjson")]
ids = [line.get("put") or line.get("id") for line in lines]
digest = $(cat digest.py)
shown = re.search("digest ([0-9a-f]+)", open("page.txt").read())[1]
assert len(ids) == 300 and f"{digest:032x}" == shown, (len(ids), f"{digest:032x}", shown)
PYTHON
