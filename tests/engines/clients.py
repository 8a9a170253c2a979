"""What programs do with the clients of Elasticsearch and OpenSearch, against the server at an address.

Called with the address and the name of the client's package. Every step checks what the client was given; errors must
be the client's own exceptions.
"""

import importlib
import sys
import warnings

# Version 7 wants some members by name and takes others as a body only.
warnings.simplefilter("ignore", DeprecationWarning)
ADDRESS, NAME = sys.argv[1:]
client = importlib.import_module(NAME)
helpers = importlib.import_module(NAME + ".helpers")
by_name = NAME == "elasticsearch8"
es = {"opensearchpy": "OpenSearch"}.get(NAME, "Elasticsearch")
es = getattr(client, es)(ADDRESS)
NotFound, Conflict = client.NotFoundError, client.ConflictError
Refused = getattr(client, "BadRequestError", None) or client.RequestError
INDEX = "client-" + NAME


def check(condition, what):
    if not condition:
        sys.exit(f"{NAME}: {what}")


def fails(kind, call, **arguments):
    try:
        call(**arguments)
    except kind as error:
        return error
    sys.exit(f"{NAME}: no {kind.__name__} from {call} {arguments}")


def body(**members):
    """Members of a request: by name from version 8 on, as a body before."""
    return members if by_name else {"body": members}


def status(error):
    return error.status_code if hasattr(error, "status_code") else error.meta.status


MAPPINGS = {"properties": {"body": {"type": "text"}, "tag": {"type": "keyword"}, "n": {"type": "long"}}}
check(es.ping(), "ping")
check(es.info()["version"]["number"] == "7.10.2", "info")
check(not es.indices.exists(index=INDEX), "the index is there")
made = es.indices.create(index=INDEX, **body(settings={"number_of_shards": 3}, mappings=MAPPINGS))
check(made["acknowledged"] and made["index"] == INDEX, made)
check(es.indices.exists(index=INDEX), "the index is not there")
error = fails(Refused, es.indices.create, index=INDEX)
check(status(error) == 400 and "resource_already_exists_exception" in str(error), error)
check(es.indices.get_mapping(index=INDEX)[INDEX]["mappings"]["properties"]["n"] == {"type": "long"}, "mapping")

source = {"body": "a plimsoll line", "tag": "ship", "n": 1}
one = {"document": source} if by_name else {"body": source}
check(es.index(index=INDEX, id="one", refresh=True, **one)["result"] == "created", "index")
check(es.get(index=INDEX, id="one")["_source"] == source, "get")
check(es.exists(index=INDEX, id="one") and not es.exists(index=INDEX, id="two"), "exists")
error = fails(Conflict, es.create, index=INDEX, id="one", **one)
check(status(error) == 409, error)
check(es.update(index=INDEX, id="one", **body(doc={"n": 2}))["result"] == "updated", "update")
fails(NotFound, es.update, index=INDEX, id="two", **body(doc={"n": 2}))
fails(NotFound, es.get, index=INDEX, id="two")
check([doc["found"] for doc in es.mget(index=INDEX, **body(ids=["one", "two"]))["docs"]] == [True, False], "mget")

words = ["harbour", "harbor", "lighthouse", "lighthuose", "anchor"]
actions = (
    {"_index": INDEX, "_id": str(n), "_source": {"body": f"{words[n % 5]} number {n}", "tag": words[n % 5], "n": n}}
    for n in range(2000)
)
check(helpers.bulk(es, actions, chunk_size=300, refresh=True) == (2000, []), "bulk")
bad = [{"_index": INDEX, "_id": "bad", "_source": {"n": "many"}}, {"_op_type": "delete", "_index": INDEX, "_id": "no"}]
error = fails(helpers.BulkIndexError, helpers.bulk, client=es, actions=bad)
check(len(error.errors) == 2 and error.errors[0]["index"]["error"]["type"] == "mapper_parsing_exception", error.errors)
good, failed = helpers.bulk(es, bad[:1], raise_on_error=False)
check((good, len(failed)) == (0, 1), "bulk that goes on")

fuzzy = {"match": {"body": {"query": "harbuor", "fuzziness": 2}}}
found = es.search(index=INDEX, **body(query=fuzzy, size=5, sort=[{"n": "desc"}]))
check(found["hits"]["total"] == {"value": 800, "relation": "eq"}, found["hits"]["total"])
check([hit["_source"]["n"] for hit in found["hits"]["hits"]] == [1996, 1995, 1991, 1990, 1986], "sort")
check(es.count(index=INDEX, **body(query={"term": {"tag": "anchor"}}))["count"] == 400, "count")
searches = [{}, {"query": {"match_all": {}}}, {"index": "nope"}, {}]
several = es.msearch(index=INDEX, **({"searches": searches} if by_name else {"body": searches}))["responses"]
check(several[0]["hits"]["total"]["value"] == 2001 and several[1]["status"] == 404, "msearch")
error = fails(Refused, es.search, index=INDEX, **body(query={"nope": {}}))
check("unknown query [nope]" in str(error), error)
error = fails(Refused, es.search, index=INDEX, **body(query={"match": {"n": "x"}}))
check("search_phase_execution_exception" in str(error), error)
error = fails(NotFound, es.search, index="nope")
check(status(error) == 404 and "index_not_found_exception" in str(error), error)

check(es.delete(index=INDEX, id="one", refresh=True)["result"] == "deleted", "delete")
fails(NotFound, es.delete, index=INDEX, id="one")
check(es.cat.count(index=INDEX, format="json")[0]["count"] == "2000", "cat")
check(es.cluster.health(index=INDEX)["status"] == "green", "health")
check(es.indices.refresh(index=INDEX)["_shards"]["failed"] == 0, "refresh")
check(es.indices.delete(index=INDEX)["acknowledged"], "removing the index")
fails(NotFound, es.indices.delete, index=INDEX)
print(f"{NAME}: fine")
