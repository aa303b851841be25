#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Usage: handovers.py TRACE CONNECTIONS [--line]

Reads ftrace's text of connections that are set up and closed (tests/bench.sh, mode handovers). Prints one JSON object:
for each phase its duration in us, and for each kind of hand-over how many a connection has, how many of them go to
another processor, and the median time until the woken task runs; and for one connection what runs when on each
processor. --line prints the events of each phase in their order.

Phases: connect, from the first rdma_connect() to the last event of a program before the pause that follows; and
disconnect, from the first rdma_disconnect() to the end of the last QP.
"""
import collections
import dataclasses
import json
import re
import statistics
import sys

LINE = re.compile(r"\s*(?P<comm>.+)-(?P<pid>\d+)\s+\[(?P<cpu>\d+)\]\s+(?P<flags>\S{5,6})\s+(?P<time>\d+\.\d+): (?P<name>\w+): (?P<rest>.*)")
INTERRUPTS = {"reschedule_entry": "reschedule interrupt", "call_function_entry": "call-function interrupt",
              "call_function_single_entry": "call-function interrupt"}
# Probes of tests/bench.sh
BEGIN = {"connect": "connects", "disconnect": "disconnects"}
LAST = {"connect": ("gets_event",), "disconnect": ("gets_event", "destroys_qp")}
MARKS = {"connects": "rdma_connect()", "disconnects": "rdma_disconnect()", "sends": "sends", "gets_event": "event",
         "destroys_qp": "QP destroyed"}
# A pause between the phases: rdmabench waits 500 ms
PAUSE = 0.2


@dataclasses.dataclass
class Event:
    time: float
    cpu: int
    pid: int
    comm: str
    flags: str
    name: str
    rest: str

    def field(self, name):
        found = re.search(rf"\b{name}=(\S+)", self.rest)
        return found[1] if found else None


def read(path):
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            match = LINE.match(line)
            if match:
                yield Event(float(match["time"]), int(match["cpu"]), int(match["pid"]), match["comm"].strip(),
                            match["flags"], match["name"], match["rest"])


def kind_of(comm):
    if comm.startswith("kworker"):
        return "work queue"
    if comm.startswith(("rdmabench", "cmtime")):
        return "program"
    if comm.startswith(("ksoftirqd", "rcu")):
        return comm.split("/")[0]
    return "other"


def phases(events):
    """{phase: its events}"""
    result = {}
    for phase, probe in BEGIN.items():
        begin = next((i for i, e in enumerate(events) if e.name == probe), None)
        if begin is None:
            continue
        end = last = begin
        while end < len(events) and events[end].time - events[last].time < PAUSE:
            if events[end].name in LAST[phase] + (probe,):
                last = end
            end += 1
        result[phase] = events[begin:last + 1]
    return result


class Machine:
    """Follows which work each task does, and who wakes whom"""

    def __init__(self):
        self.work = {}      # pid: function of the work item that it runs
        self.pending = {}   # pid: (time, waker, elsewhere)
        self.found = collections.defaultdict(list)  # kind: [(elsewhere, seconds)]
        self.counts = collections.Counter()

    def waker(self, event):
        if "h" in event.flags or "H" in event.flags:
            return "interrupt"
        if "s" in event.flags:
            return "soft interrupt"
        return self.work.get(event.pid) or kind_of(event.comm)

    def take(self, event):
        if event.name == "workqueue_execute_start":
            self.work[event.pid] = event.rest.rsplit("function ", 1)[-1].split(" ")[0]
            self.counts["run of " + self.work[event.pid]] += 1
        elif event.name == "workqueue_execute_end":
            self.work.pop(event.pid, None)
        elif event.name in INTERRUPTS:
            self.counts[INTERRUPTS[event.name]] += 1
        elif event.name == "contention_begin":
            self.counts["contended lock"] += 1
        elif event.name == "sched_waking":
            elsewhere = int(event.field("target_cpu")) != event.cpu
            self.pending[int(event.field("pid"))] = (event.time, self.waker(event), elsewhere)
        elif event.name == "sched_switch":
            self.counts["context switch"] += 1
            self.run(int(event.field("next_pid")), event)

    def run(self, pid, event):
        begun = self.pending.pop(pid, None)
        if begun:
            time, waker, elsewhere = begun
            to = kind_of(event.field("next_comm"))
            self.found[f"{waker} to {to}"].append((elsewhere, event.time - time))


def summary(events, connections):
    machine = Machine()
    for event in events:
        machine.take(event)
    return {
        "us": round(1e6 * (events[-1].time - events[0].time)),
        "per_connection": {name: round(count / connections, 2) for name, count in sorted(machine.counts.items())},
        "wakes": {kind: {"per_connection": round(len(list_) / connections, 2),
                         "elsewhere": round(sum(e for e, _ in list_) / connections, 2),
                         "median_us": round(1e6 * statistics.median(s for _, s in list_)),
                         "total_us": round(1e6 * sum(s for _, s in list_))}
                  for kind, list_ in sorted(machine.found.items())},
    }


ITEMS = {"siw_cm_work_handler": "siw's work item", "cm_work_handler": "iw_cm's work item"}


def bars(events):
    """[processor, from, to, what runs] of one connection, and [processor, at, text] of what the programs do"""
    start, initiator = events[0].time, events[0].pid
    running, found, marks = {}, [], []
    comms = {e.field("next_pid"): e.field("next_comm") for e in events if e.name == "sched_switch"}

    def begin(cpu, time, kind):
        since, before = running.get(cpu, (events[0].time, None))
        if before and time > since:
            found.append([cpu, round(1e6 * (since - start)), round(1e6 * (time - start)), before])
        running[cpu] = (time, kind)

    def kind(pid, comm):
        if comm.startswith("rdmabench"):
            return "initiator's program" if int(pid) == initiator else "responder's program"
        return None if comm.startswith("swapper") else "work queue" if comm.startswith("kworker") else "other"

    begin(events[0].cpu, start, "initiator's program")
    for event in events:
        if event.name == "sched_switch":
            begin(event.cpu, event.time, kind(event.field("next_pid"), event.field("next_comm")))
        elif event.name == "workqueue_execute_start":
            item = event.rest.rsplit("function ", 1)[-1].split(" ")[0]
            begin(event.cpu, event.time, ITEMS.get(item, "other"))
        elif event.name == "workqueue_execute_end":
            begin(event.cpu, event.time, "work queue")
        elif event.name in MARKS:
            if event.cpu not in running:
                begin(event.cpu, start, kind(event.pid, comms.get(str(event.pid), "rdmabench")))
            marks.append([event.cpu, round(1e6 * (event.time - start)), MARKS[event.name]])
    for cpu in list(running):
        begin(cpu, events[-1].time, None)
    return {"bars": found, "marks": marks}


def line(events):
    machine, start = Machine(), events[0].time
    for event in events:
        machine.take(event)
        who = machine.waker(event)
        text = event.name
        if event.name == "sched_switch":
            text = f"{event.field('prev_comm')} -> {event.field('next_comm')}"
        elif event.name == "sched_waking":
            text = f"wakes {event.field('comm')} on processor {event.field('target_cpu')}"
        elif event.name.startswith("workqueue"):
            text = event.name.removeprefix("workqueue_") + " " + event.rest.rsplit("function ", 1)[-1]
        print(f"{1e6 * (event.time - start):9.0f} us  cpu {event.cpu}  {event.comm[:15]:15}  {who:24}  {text}")


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    events = list(read(sys.argv[1]))
    found = phases(events)
    if len(sys.argv) == 4:
        for phase, part in found.items():
            print(f"--- {phase}")
            line(part)
        return
    count = int(sys.argv[2])
    print(json.dumps({phase: summary(part, count) | (bars(part) if count == 1 else {}) for phase, part in found.items()}))


main()
