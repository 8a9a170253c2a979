"""Resolves names in the root of the image, in a network of its own whose only name server is this script."""
import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading

root, user = sys.argv[1], sys.argv[2]

# The loopback interface of a new network is down.
up = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
request = struct.pack("16sh", b"lo", 0x1 | 0x40) + bytes(14)
fcntl.ioctl(up, 0x8914, request)

asked = []
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))


def answer():
    while True:
        query, peer = server.recvfrom(512)
        at, labels = 12, []
        while query[at]:
            labels.append(query[at + 1 : at + 1 + query[at]].decode())
            at += 1 + query[at]
        kind = struct.unpack(">H", query[at + 1 : at + 3])[0]
        name = ".".join(labels)
        asked.append(name)
        known = name == "served.example" and kind == 1
        code = 0x8180 if name == "served.example" else 0x8183
        reply = query[:2] + struct.pack(">HHHHH", code, 1, int(known), 0, 0) + query[12 : at + 5]
        if known:
            reply += struct.pack(">HHHIH", 0xC00C, 1, 1, 60, 4) + socket.inet_aton("127.0.0.1")
        server.sendto(reply, peer)


threading.Thread(target=answer, daemon=True).start()
enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", f"--root={root}", "--wd=/data",
         f"--setgid={user}", f"--setuid={user}", "/usr/bin/plimsoll"]
target = subprocess.Popen(enter + ["serve", "null", "--port", "8080"], stdout=subprocess.PIPE, text=True)
try:
    while not target.stdout.readline().startswith("ready "):
        assert target.poll() is None, "serve null ended"
    flags = ["--clients", "1", "--requests", "3", "--no-record", "--quiet", "--json", "-"]

    def load(host):
        ended = subprocess.run(enter + ["load", f"http://{host}:8080/"] + flags, capture_output=True, text=True, timeout=60)
        try:
            return json.loads(ended.stdout)["ledger"]["ok"], ended
        except ValueError:
            return 0, ended

    for host in ["localhost", "listed.example", "served.example"]:
        ok, ended = load(host)
        assert ok == 3, f"{host}: {ok} of 3 requests succeeded: {ended.stderr}{ended.stdout[:300]}"
    assert "served.example" in asked, asked
    assert "listed.example" not in asked, asked
    ok, _ = load("unknown.example")
    assert ok == 0, "a name that nobody knows was resolved"
finally:
    # The child of the process that made the room is the server.
    with open(f"/proc/{target.pid}/task/{target.pid}/children") as children:
        for child in children.read().split():
            os.kill(int(child), signal.SIGKILL)
    target.wait()
print("localhost and a name of /etc/hosts, a name by DNS; an unknown name is not resolved")
