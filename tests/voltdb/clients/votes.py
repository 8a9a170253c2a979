"""Votes through VoltDB's own client for Python: a port, how many, and the first telephone number."""

import json
import sys
import threading

from voltclient import VoltClient, VoltType

NAMES = "Edwina Burnam,Tabatha Gehling,Kelly Clauss,Jessie Alloway,Alana Bregman,Jessie Eichman"
TYPES = [VoltType.BIGINT, VoltType.INTEGER, VoltType.BIGINT]


def results(client):
    response = client.call("Results")
    assert response.status == 1, response.statusString
    return sum(row[2] for row in response.tables[0].tuples)


def main():
    port, votes, phone = (int(word) for word in sys.argv[1:4])
    counts = {0: 0, 1: 0, 2: 0, "failed": 0}
    all_done = threading.Semaphore(0)

    def count(future):
        try:
            response = future.result()
            counts[response.tables[0].tuples[0][0] if response.status == 1 else "failed"] += 1
        except Exception as problem:
            print(problem, file=sys.stderr)
            counts["failed"] += 1
        finally:
            all_done.release()

    with VoltClient(hosts=["127.0.0.1"], port=port) as client:
        names = client.call("Initialize", [VoltType.INTEGER, VoltType.STRING], [6, NAMES])
        before = results(client)
        for number in range(votes):
            # One telephone votes again and again, and nobody has the number 999.
            caller = phone if number % 50 == 0 else phone + number
            contestant = 999 if number % 100 == 99 else 1 + number % 6
            client.call_async("Vote", TYPES, [caller, contestant, 2]).add_done_callback(count)
        for _ in range(votes):
            assert all_done.acquire(timeout=60), "a vote was not answered"
        told = {
            "contestants": names.tables[0].tuples[0][0],
            "accepted": counts[0],
            "no_contestant": counts[1],
            "over_limit": counts[2],
            "failed": counts["failed"],
            "counted": results(client) - before,
        }
    print(json.dumps(told))


main()
