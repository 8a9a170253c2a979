"""Feeds, reads, changes, visits and searches with pyvespa as it comes from the package index.

Called with the address of an empty server and "use". Every step checks what the client was given; what the server
holds in the end is printed as JSON, for the caller to compare with what another program reads. Called once more with
"delete", everything is removed.
"""

import json
import sys
import urllib.request

import vespa.querybuilder as qb
from vespa.application import Vespa
from vespa.exceptions import VespaError

BASE, PORT = sys.argv[1].rsplit(":", 1)
APP = Vespa(url=BASE, port=int(PORT))
CLUSTER = "plimsoll"
held = {}


def check(condition, what):
    if not condition:
        sys.exit(f"pyvespa: {what}")


def visit(**arguments):
    """All documents of a visit by id; none may come twice."""
    found = {}
    for part in APP.visit(content_cluster_name=CLUSTER, **arguments):
        for reply in part:
            check(reply.status_code == 200, f"visit: {reply.status_code} {reply.json}")
            check(reply.number_documents_retrieved == len(reply.documents), "the count is that of the documents")
            for document in reply.documents:
                check(document["id"] not in found, f"{document['id']} came twice")
                found[document["id"]] = document["fields"]
    return found


def fields(kind, n):
    # Every third is longer than what this client sends unpacked.
    long = "body" if n % 3 else "author"
    made = {"title": f"{kind} {n} \u00e6\u6f22", "score": n, long: "word " * (400 if n % 3 == 0 else 3)}
    return made


def feed_both_ways():
    failed = []

    def callback(reply, name):
        if reply.status_code != 200:
            failed.append((name, reply.status_code, reply.json))

    for kind, feed in (("sync", APP.feed_iterable), ("async", APP.feed_async_iterable)):
        documents = [{"id": f"{kind}-{n}", "fields": fields(kind, n)} for n in range(400)]
        feed(documents, schema="doc", namespace="py", callback=callback)
        for document in documents:
            held[f"id:py:doc::{document['id']}"] = document["fields"]
    check(not failed, f"feed: {failed[:3]}")
    updates = [{"id": f"sync-{n}", "fields": {"score": 1000 + n}} for n in range(0, 400, 7)]
    APP.feed_iterable(updates, schema="doc", namespace="py", operation_type="update", callback=callback)
    for update in updates:
        held[f"id:py:doc::{update['id']}"]["score"] = update["fields"]["score"]
    removed = [{"id": f"async-{n}"} for n in range(0, 400, 9)]
    APP.feed_async_iterable(removed, schema="doc", namespace="py", operation_type="delete", callback=callback)
    for document in removed:
        del held[f"id:py:doc::{document['id']}"]
    check(not failed, f"updates and removals: {failed[:3]}")
    # A bad one is told from the good ones.
    bad = [{"id": "bad", "fields": {"nosuch": 1}}, {"id": "good", "fields": {"score": 1}}]
    APP.feed_iterable(bad, schema="doc", namespace="py", callback=callback)
    held["id:py:doc::good"] = {"score": 1}
    check([name for name, *_ in failed] == ["bad"] and failed[0][1] == 400, f"bad: {failed}")


def one_by_one():
    for name in ("plain", "a b", "x/y/z", "per%cent", "\u00e6\u6f22", "q?r&s=t"):
        reply = APP.feed_data_point(schema="doc", data_id=name, namespace="py", fields={"title": "t", "score": 1})
        check(reply.status_code == 200, f"put {name}: {reply.json}")
        stored = reply.json["id"]
        reply = APP.get_data(schema="doc", data_id=name, namespace="py")
        check(reply.status_code == 200 and reply.json["id"] == stored, f"get {name}: {reply.json}")
        check(reply.json["fields"] == {"title": "t", "score": 1}, f"get {name}: {reply.json}")
        reply = APP.update_data(schema="doc", data_id=name, namespace="py", fields={"score": 2})
        check(reply.status_code == 200, f"update {name}: {reply.json}")
        held[stored] = {"title": "t", "score": 2}
    reply = APP.update_data(schema="doc", data_id="made", namespace="py", fields={"score": 3}, create=True)
    check(reply.status_code == 200, f"create: {reply.json}")
    held["id:py:doc::made"] = {"score": 3}
    for dry in ("True", "TRUE", "true", True):
        reply = APP.feed_data_point(schema="doc", data_id="dry", namespace="py", fields={"score": 1}, dryRun=dry)
        check(reply.status_code == 200, f"dry run: {reply.json}")
    check(APP.get_data(schema="doc", data_id="dry", namespace="py").status_code == 404, "a dry run writes nothing")
    reply = APP.update_data(schema="doc", data_id="missing", namespace="py", fields={"score": 3})
    check(reply.status_code == 200, f"update of a missing one: {reply.json}")
    check(APP.get_data(schema="doc", data_id="missing", namespace="py").status_code == 404, "it is missing")
    check(APP.delete_data(schema="doc", data_id="missing", namespace="py").status_code == 200, "removed or not")
    try:
        APP.update_data(schema="doc", data_id="made", namespace="py", fields={"score": 9}, condition="doc.score == 8")
    except VespaError as error:
        check("TEST_AND_SET_CONDITION_FAILED" in str(error), f"condition: {error}")
    else:
        sys.exit("pyvespa: the condition did not count")
    reply = APP.update_data(
        schema="doc", data_id="made", namespace="py", fields={"score": {"increment": 4}}, auto_assign=False
    )
    check(reply.status_code == 200, f"increment: {reply.json}")
    held["id:py:doc::made"] = {"score": 7}
    reply = APP.feed_data_point(schema="doc", data_id="x", namespace="py", fields={"score": 5}, groupname="a group")
    check(reply.json["id"] == "id:py:doc:g=a group:x", f"group: {reply.json}")
    held[reply.json["id"]] = {"score": 5}


def visits():
    everything = visit(namespace="py", schema="doc")
    check(everything == held, f"{len(everything)} visited, {len(held)} held")
    for arguments in (
        {"slices": 1},
        {"slices": 4, "wanted_document_count": 30},
        {"slices": 3, "stream": True},
        {"slices": 7, "concurrency": 4},
    ):
        check(visit(**arguments) == held, f"{arguments} gives the same")
    slices = [visit(slices=2, slice_id=number) for number in (0, 1)]
    check(not slices[0].keys() & slices[1].keys(), "slices are disjoint")
    check({**slices[0], **slices[1]} == held, "slices are everything")
    chosen = visit(selection="doc.score > 1000 and doc.title = 'sync*'", slices=2)
    check(chosen == {i: f for i, f in held.items() if f["score"] > 1000}, "the selection chooses")
    only = visit(fieldSet="[id]")
    check(only == {i: {} for i in held}, "ids alone")


def queries():
    request = urllib.request.Request(f"{sys.argv[1]}/state/v1/refresh", method="POST")
    urllib.request.urlopen(request, timeout=20).read()
    reply = APP.query(yql="select * from doc where score >= 1000", hits=100)
    expected = sum(f["score"] >= 1000 for f in held.values())
    check(reply.is_successful() and reply.number_documents_retrieved == expected, f"query: {reply.json}")
    check(len(reply.hits) == expected and {h["id"] for h in reply.hits} <= held.keys(), "hits are documents")
    text = {"yql": "select * from doc where userQuery()", "query": "sync 14", "hits": 2}
    words = [set(f.get("title", "").split()) for f in held.values()]
    for more, matches in (
        ({}, lambda title: title & {"sync", "14"}),
        ({"type": "any"}, lambda title: title & {"sync", "14"}),
        ({"type": "all"}, lambda title: title >= {"sync", "14"}),
    ):
        reply = APP.query(body={**text, **more})
        expected = sum(1 for title in words if matches(title))
        check(reply.number_documents_retrieved == expected, f"query {more}: {reply.json}")
        check(reply.hits[0]["id"] == "id:py:doc::sync-14", f"the best has both words: {reply.json}")
    title = qb.QueryField("title")
    both = sum(1 for title in words if title >= {"sync", "14"})
    some = sum(1 for title in words if title & {"sync", "14"})
    for condition, expected in (
        (qb.weakAnd(title.contains("sync"), title.contains("14"), annotations={"targetHits": 5}), some),
        (qb.rank(title.contains("sync"), title.contains("14")), sum(1 for title in words if "sync" in title)),
        (qb.userInput("sync 14", annotations={"grammar": "all"}), both),
        (qb.userInput("sync 14", annotations={"defaultIndex": "title"}), some),
        (title.contains(qb.near("14", "sync")), both),
        (title.contains(qb.onear("sync", "14", distance=1)), both),
        (title.contains(qb.onear("14", "sync")), 0),
    ):
        reply = APP.query(yql=qb.select("*").from_("doc").where(condition))
        check(reply.number_documents_retrieved == expected, f"{condition}: {reply.json}")
    for refused in (qb.wand("title", {"a": 1}), qb.dotProduct("title", {"a": 1}), qb.weightedSet("title", {"a": 1})):
        try:
            APP.query(yql=qb.select("*").from_("doc").where(refused))
        except VespaError as error:
            check("() is not supported by this server" in str(error), f"{error}")
        else:
            sys.exit(f"pyvespa: {refused} was answered")
    requests = [{"yql": f"select * from doc where score = {n}", "hits": 10} for n in range(20)]
    for n, reply in enumerate(APP.query_many(requests)):
        expected = sum(f["score"] == n for f in held.values())
        check(reply.number_documents_retrieved == expected, f"score {n}: {reply.json}")
    try:
        APP.query(yql="select nonsense")
    except VespaError as error:
        check("Could not create query from YQL" in str(error), f"{error}")
    else:
        sys.exit("pyvespa: nonsense was answered")


if sys.argv[2] == "delete":
    check(visit() != {}, "something is there")
    APP.delete_all_docs(content_cluster_name=CLUSTER, schema="doc", namespace="py", slices=3)
    check(visit() == {}, "nothing is left")
else:
    check(APP.get_application_status().status_code == 200, "the application is up")
    feed_both_ways()
    one_by_one()
    visits()
    queries()
    print(json.dumps(held))
