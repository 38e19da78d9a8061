#!/usr/bin/env python3
"""A node in Python that delivers in causal order: `precede emulate SCENARIO --program ./causal.py`.

A message carries the ids of the messages it comes directly after. A node delivers it when it has delivered
these. Messages are kept and passed on: to all neighbours when they arrive, and to each neighbour what it lacks,
again and again. With `--as-it-comes` the node is wrong on purpose: it delivers messages as they arrive.
"""

import json
import os
import select
import sys

AS_IT_COMES = "--as-it-comes" in sys.argv
RESYNC_SECONDS = 0.1

me = {"id": None, "neighbours": []}
messages = {}  # id -> ids that it comes directly after
delivered = set()
frontier = set()  # delivered messages that no other delivered message comes after


def say(dest, body):
    sys.stdout.write(json.dumps({"src": me["id"], "dest": dest, "body": body}) + "\n")


def deliver(id):
    delivered.add(id)
    frontier.difference_update(messages[id])
    frontier.add(id)
    say("c0", {"type": "deliver", "message": id})


def deliver_what_can_be():
    progress = True
    while progress:
        progress = False
        for id, after in messages.items():
            if id not in delivered and (AS_IT_COMES or delivered.issuperset(after)):
                deliver(id)
                progress = True


def give(to, ids):
    say(to, {"type": "give", "messages": [[id, messages[id]] for id in ids]})


def handle(message):
    src, body = message["src"], message["body"]
    kind = body["type"]
    if kind == "init":
        me["id"] = body["node_id"]
    elif kind == "topology":
        me["neighbours"] = body["topology"][me["id"]]
        resync()
    elif kind == "broadcast":
        id = body["message"]
        messages[id] = sorted(frontier)
        deliver(id)
        for neighbour in me["neighbours"]:
            give(neighbour, [id])
    elif kind == "have":
        lacking = [id for id in messages if id not in set(body["ids"])]
        if lacking:
            give(src, lacking)
    elif kind == "give":
        new = [id for id, after in body["messages"] if id not in messages]
        messages.update((id, after) for id, after in body["messages"] if id in new)
        deliver_what_can_be()
        for neighbour in me["neighbours"]:
            if new and neighbour != src:
                give(neighbour, new)
    if "msg_id" in body:
        say(src, {"type": kind + "_ok", "in_reply_to": body["msg_id"]})


def resync():
    for neighbour in me["neighbours"]:
        say(neighbour, {"type": "have", "ids": sorted(messages)})


def main():
    buffer = b""
    while True:
        ready, _, _ = select.select([0], [], [], RESYNC_SECONDS)
        if not ready:
            resync()
        else:
            data = os.read(0, 1 << 16)
            if not data:
                return
            *lines, buffer = (buffer + data).split(b"\n")
            for line in lines:
                handle(json.loads(line))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
