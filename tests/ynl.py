#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
#
# Usage: tests/ynl.py [REQUEST]
#
# Sends requests to the family rdma-mpa with the kernel's own YNL client (build/pyynl), which knows the
# family only from Documentation/netlink/specs/rdma-mpa.yaml. Without REQUEST it takes a request from each
# line of its input and prints a line for each, because Python takes seconds to start under emulation.
# REQUEST is one of
#
#   show [PLACE]             policies of PLACE (default, DEVICE or DEVICE/PORT) or of all
#   set PLACE NAME=VALUE…    settings; values by their names in the specification, or as numbers
#   reset PLACE [NAME…]      resets settings
#   caps [DEVICE]            capabilities of devices
#   monitor GROUP…           prints notifications until it is stopped
#
# An answer is `ok JSON` or `refused: errno N: TEXT`. Exit status of a single REQUEST: 0, or 1 if it is
# refused, 2 for anything else.
import json
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "build/pyynl"))
# pylint: disable=wrong-import-position
from lib import NlError, YnlFamily  # noqa: E402
from lib.ynl import GenlProtocol  # noqa: E402

SPEC = ROOT / "Documentation/netlink/specs/rdma-mpa.yaml"
KINDS = {"rtr-offer", "rtr-accept"}


class Session:
    """A socket, opened again when the module has come back as another family"""

    def __init__(self):
        self.ynl = None

    def ask(self, method, operation, attributes):
        for attempt in (1, 2):
            if self.ynl is None:
                GenlProtocol.genl_family_name_to_id = {}
                self.ynl = YnlFamily(str(SPEC), schema="")
            try:
                return getattr(self.ynl, method)(operation, attributes)
            except NlError as error:
                if error.error != 2 or attempt == 2:  # ENOENT
                    raise
                self.ynl.close()
                self.ynl = None
        return None

    def place(self, text):
        """Attributes that name default, DEVICE or DEVICE/PORT; a number is an index"""
        if text == "default":
            return {}
        name, _, port = text.partition("/")
        index = [r["dev-index"] for r in self.ask("dump", "dev-get", {}) if r["dev-name"] == name]
        attributes = {"dev-index": index[0] if index else int(name)}
        return attributes | {"port": int(port)} if port else attributes

    def show(self, place=None):
        if place is None:
            return self.ask("dump", "policy-get", {})
        return self.ask("do", "policy-get", self.place(place))

    def set(self, place, *assignments):
        policy = dict(self.setting(*a.split("=", 1)) for a in assignments)
        return self.ask("do", "policy-set", self.place(place) | {"policy": policy})

    @staticmethod
    def setting(name, text):
        if name in KINDS:
            return name, text if text.isdigit() else text.split(",")
        if name == "rtr-order":
            return name, {"kind": [[kind] for kind in text.split(",")]}
        return name, text

    def reset(self, place, *names):
        return self.ask("do", "policy-reset", self.place(place) | ({"setting": list(names)} if names else {}))

    def caps(self, device=None):
        if device is None:
            return self.ask("dump", "dev-get", {})
        return self.ask("do", "dev-get", self.place(device))

    def monitor(self, *groups):
        self.ynl = YnlFamily(str(SPEC), schema="")
        self.ynl.sock.bind((0, 0))
        for group in groups:
            # ntf_subscribe() binds, which works only once
            self.ynl.sock.setsockopt(270, 1, self.ynl.nlproto.get_mcast_id(group, self.ynl.mcast_groups))
        print("listening", flush=True)
        for event in self.ynl.poll_ntf():
            print(encode(event), flush=True)


def encode(answer):
    """As cli.py does: flags are a set"""
    return json.dumps(answer, default=lambda o: sorted(o) if isinstance(o, set) else o.hex(),
                      separators=(",", ":"))


def answer_to(session, words):
    try:
        return "ok " + encode(getattr(session, words[0])(*words[1:]))
    except NlError as error:
        text = (error.nl_msg.extack or {}).get("msg") or os.strerror(error.error)
        return f"refused: errno {error.error}: {text}"


def main():
    session = Session()
    if len(sys.argv) > 1:
        answer = answer_to(session, sys.argv[1:])
        print(answer)
        return 0 if answer.startswith("ok ") else 1
    for line in sys.stdin:
        try:
            answer = answer_to(session, line.split())
        except Exception as error:  # the next request may succeed
            answer = f"error: {type(error).__name__}: {error}"
        print(answer, flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Exception as error:
        print(f"ynl.py: {type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(2)
