#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Usage: shimclients.py irc|memcached ADDRESS PORT CLIENTS

Clients of ngircd and memcached in one process, for exsshim.sh: each checks what it gets. A failed connect, a wrong answer
or a wait of more than 20 s ends it with status 1.
"""
import select
import socket
import sys
import time

PATIENCE = 20


class Client:
    def __init__(self, address, port):
        self.socket = socket.create_connection((address, port), PATIENCE)
        self.data = b""

    def send(self, text):
        self.socket.sendall(text.encode() + b"\r\n")

    def more(self):
        if not select.select([self.socket], [], [], PATIENCE)[0]:
            sys.exit(f"no answer within {PATIENCE} s; before that: {self.data[-200:]!r}")
        got = self.socket.recv(65536)
        if not got:
            sys.exit(f"the server has closed the connection; before that: {self.data[-200:]!r}")
        self.data += got

    def line(self):
        while b"\r\n" not in self.data:
            self.more()
        line, self.data = self.data.split(b"\r\n", 1)
        return line.decode()

    def take(self, length):
        while len(self.data) < length:
            self.more()
        taken, self.data = self.data[:length], self.data[length:]
        return taken

    # a line that has this word; answers pings meanwhile
    def until(self, word):
        while word not in (line := self.line()).split(" "):
            if line.startswith("PING"):
                self.send("PONG" + line[4:])
        return line


def irc(clients):
    for number, client in enumerate(clients):
        client.send(f"NICK user{number}")
        client.send(f"USER user{number} 0 * :user {number}")
    for client in clients:
        client.until("001")
        client.send("JOIN #all")
        client.until("366")
    for number, client in enumerate(clients):
        client.send(f"PRIVMSG #all :from-{number}")
    for number, client in enumerate(clients):
        heard = {client.until("PRIVMSG").split(":")[-1] for _ in range(len(clients) - 1)}
        expected = {f"from-{other}" for other in range(len(clients)) if other != number}
        if heard != expected:
            sys.exit(f"user{number} got {sorted(heard)}")
    return len(clients) * (len(clients) - 1)


def memcached(clients):
    values = [bytes((number * 7 + i) % 256 for i in range(1 + number * 997)) for number in range(len(clients))]
    for number, client in enumerate(clients):
        client.socket.sendall(b"set key%d 0 0 %d\r\n%s\r\n" % (number, len(values[number]), values[number]))
    for client in clients:
        if (line := client.line()) != "STORED":
            sys.exit(f"set is answered by {line}")
    for number, client in enumerate(clients):
        other = len(clients) - 1 - number
        client.send(f"get key{other}")
        expected = b"VALUE key%d 0 %d\r\n%s\r\nEND\r\n" % (other, len(values[other]), values[other])
        if (got := client.take(len(expected))) != expected:
            sys.exit(f"get of key{other} is answered by {got[:60]!r}")
    return len(clients)


def main():
    kind, address, port, count = sys.argv[1:]
    clients = [Client(address, int(port)) for _ in range(int(count))]
    messages = irc(clients) if kind == "irc" else memcached(clients)
    time.sleep(2)  # the suite counts the queue pairs meanwhile
    print(f"{len(clients)} clients, {messages} messages")


main()
