#!/usr/bin/env python3
"""A worker that takes updates by leases, with nothing but the standard library.

It counts what each chat writes, and answers. Run as many of it as you like; the
updates of one chat come one after the other. One that is killed loses nothing:
its lease runs out, and the update goes to another.

It gets what no handler takes, and what a handler with pull = true takes.
"""

import http.client
import json
import os
import signal
import socket
import sys
import threading
import time

SOCKET = os.environ.get("TGSPOOL_SOCKET", "/run/tgspool/tgspool.sock")
BASE = "/v1/bots/" + os.environ.get("TGSPOOL_BOT", "home")
LEASE = 60  # seconds


class Connection(http.client.HTTPConnection):
    """HTTP over the daemon's socket."""

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(SOCKET)


def ask(method, path, body=None):
    """Return the status and the JSON of an answer.

    While nobody listens (the daemon is being restarted) it asks again.
    """
    data = None if body is None else json.dumps(body)
    while True:
        connection = Connection("tgspool", timeout=90)
        try:
            connection.request(method, BASE + path, data, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text else None
        except (OSError, http.client.HTTPException):
            time.sleep(1)
        finally:
            connection.close()


def handle(update, session):
    """Return the calls to make and the new session. This is the part to write yourself."""
    message = update.get("message", {})
    if "text" not in message:
        return [], session
    count = session.get("count", 0) + 1
    text = f"{count}: {message['text']}"
    return [{"method": "sendMessage", "params": {"chat_id": message["chat"]["id"], "text": text}}], {"count": count}


class Held:
    """Holds a lease for as long as the work takes."""

    def __init__(self, item):
        self.path = f"/updates/{item['seq']}"
        self.lease = item["lease"]
        self.ended = threading.Event()

    def __enter__(self):
        threading.Thread(target=self.extend, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.ended.set()

    def extend(self):
        while not self.ended.wait(LEASE / 2):
            self.end("extend", **{"for": f"{LEASE}s"})

    def end(self, how, **more):
        return ask("POST", f"{self.path}/{how}", {"lease": self.lease, **more})


def work(item):
    """Handle one update to its end."""
    session, version = item["session"], item["session_version"]
    with Held(item) as held:
        while True:
            try:
                jobs, after = handle(item["update"], session)
            except Exception as error:  # whatever it is: the update comes again, later
                held.end("fail", error=f"{type(error).__name__}: {error}")
                return
            result = {"jobs": jobs}
            if after != session:
                result.update(session=after, session_version=version)
            status, answer = held.end("complete", **result)
            if status == 412:  # the session has changed meanwhile: once more with the new one
                status, answer = ask("GET", f"/sessions/{item['session_key']}")
                session, version = (answer["data"], answer["version"]) if status == 200 else ({}, 0)
                continue
            if status == 409:  # it took too long: another has the update now
                print(f"update {item['seq']} is no longer ours", file=sys.stderr)
            elif status != 200:
                print(answer["detail"], file=sys.stderr)
                held.end("fail", error=answer["detail"], permanent=True)
            return


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    while True:
        # It waits for an update without asking again and again.
        status, answer = ask("POST", "/updates/claim", {"max": 1, "lease": f"{LEASE}s", "wait": "50s"})
        if status != 200:
            print(answer["detail"], file=sys.stderr)
            time.sleep(5)
            continue
        for item in answer["items"]:
            work(item)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
