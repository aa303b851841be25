#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run -- tests/exsshim.sh [REGEX]
#
# Programs that know nothing of libexs, with exs-preload over siw. That their data do not go over plain TCP is
# seen by the connections that siw0 counts. REGEX "ten times" runs each program ten times (with --timeout 2400).
#
# Runs as exsshim: --packages iperf3,memcached,nginx,ngircd,redis-server,redis-tools; 600 s
# Sample exsshim: as with TCP|iperf3 transfers|nginx
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"

readonly SHIM=$BUILD/exs/exs-preload RDMA=${TESTS%/*}/build/rdma
head -c 5000000 /dev/urandom >"$WORK/input"

connections() {
	"$RDMA" -j mpa stat link siw0/1 | jq '.[0].mpa_established_initiator // 0'
}

# run_well client a SECONDS COMMAND…, which fails if the client had no connection of siw. A look at its QPs could come too late
over_rdma() { # SECONDS COMMAND…
	local before
	before=$(connections)
	run_well client a "$@"
	made=$(($(connections) - before))
	((made > 0)) || fail 'the client had no RDMA connection'
}

# The program is the test itself
own_tests() {
	run_well shim a 300 env "EXS_TEST_ADDRESS=$(address a)" "$BUILD/exs/exs_shim_tests"
	note "$(grep ' ran\.' "$WORK/shim.log")"
	grep -qE '^\[  PASSED  \] [1-9]' "$WORK/shim.log" || fail 'no test was run'
}

iperf() {
	start server b 100 "$SHIM" iperf3 -s -1 -B "$(address b)" -p 7701 --forceflush
	wait_ready server '^Server listening'
	over_rdma 60 "$SHIM" iperf3 -c "$(address b)" -p 7701 -t 5 "$@"
	ended_well server 30
	note "$(grep -E 'receiver' "$WORK/client.log")"
}

redis() {
	start server b 400 "$SHIM" redis-server --bind "$(address b)" --port 7702 --save '' --protected-mode no
	wait_line server 'Ready to accept' 30
	over_rdma 300 "$SHIM" redis-benchmark -h "$(address b)" -p 7702 -n 500 -c 4 -t set,get,lpush,lrange_100 --csv
	note "$(grep -E '"(SET|GET)"' "$WORK/client.log" | paste -sd' ')"
	# and what is stored is what comes back
	run_well client a 30 "$SHIM" redis-cli -h "$(address b)" -p 7702 set word "$(head -c 3000 "$WORK/input" | base64 -w 0)"
	run_well client a 30 "$SHIM" redis-cli -h "$(address b)" -p 7702 get word
	[[ $(<"$WORK/client.log") == "$(head -c 3000 "$WORK/input" | base64 -w 0)" ]] || fail 'the value read back differs'
}

web() {
	local i
	mkdir "$WORK/web"
	cp "$WORK/input" "$WORK/web/"
	cat >"$WORK/web/conf" <<-END
		daemon off;
		user root;
		worker_processes 1;
		pid $WORK/web/pid;
		error_log stderr;
		events { }
		http {
			access_log off;
			server { listen $(address b):7703; root $WORK/web; }
		}
	END
	start server b 150 "$SHIM" nginx -c "$WORK/web/conf" -e stderr
	wait_listener "$(address b)" 7703
	for ((i = 0; i < 3; i++)); do
		over_rdma 60 "$SHIM" curl -sS -o "$WORK/web/output" "http://$(address b):7703/input"
		cmp "$WORK/input" "$WORK/web/output" || fail "the file received by curl in round $((i + 1)) differs"
	done
	# several requests over one connection
	run_well client a 60 "$SHIM" curl -sS -o "$WORK/web/one" -o "$WORK/web/two" "http://$(address b):7703/"{input,input}
	cmp "$WORK/input" "$WORK/web/one"
	cmp "$WORK/input" "$WORK/web/two"
}

memcached_serves() { # CLIENTS [COMMAND…], which runs both ends
	start server b 150 "${@:2}" "$SHIM" memcached -u root -t 2 -l "$(address b)" -p 7706
	wait_listener "$(address b)" 7706
	over_rdma 60 "${@:2}" "$SHIM" "$TESTS/shimclients.py" memcached "$(address b)" 7706 "$1"
	note "$(tail -n 1 "$WORK/client.log"), $made connections over RDMA"
	stop server
}

irc() {
	cat >"$WORK/ngircd.conf" <<-END
		[Global]
			Name = irc.example.net
			Info = a test
			Listen = $(address b)
			Ports = 7707
			ServerUID = root
			ServerGID = root
		[Limits]
			MaxConnectionsIP = 0
			MaxPenaltyTime = 0
		[Options]
			DNS = no
			Ident = no
			PAM = no
			SyslogFacility = local1
	END
	start server b 150 "$SHIM" ngircd -n -f "$WORK/ngircd.conf"
	wait_listener "$(address b)" 7707
	over_rdma 100 "$SHIM" "$TESTS/shimclients.py" irc "$(address b)" 7707 "$1"
	note "$(tail -n 1 "$WORK/client.log")"
	stop server
}

ten_times() { # COMMAND…
	local i
	for ((i = 0; i < 10; i++)); do
		"$@"
		rm -rf "$WORK/web"
		stop server
	done
}

netcat() {
	start server b 100 "$SHIM" ncat -l "$(address b)" 7704 --recv-only -o "$WORK/output"
	wait_listener "$(address b)" 7704
	start client a 60 bash -c "'$SHIM' ncat --send-only $(address b) 7704 <'$WORK/input'"
	ended_well client 60
	ended_well server 30
	cmp "$WORK/input" "$WORK/server.log" || fail 'the received data differs'
}

# Against one that has no shim: it falls back to TCP
mixed() {
	start server b 100 iperf3 -s -1 -B "$(address b)" -p 7705 --forceflush
	wait_ready server '^Server listening'
	run client a 60 "$SHIM" iperf3 -c "$(address b)" -p 7705 -t 2
	note "iperf3 with a server without the shim ends with status $STATUS: $(tail -n 3 "$WORK/client.log" | paste -sd' ')"
	[[ $STATUS -ne 124 ]] || fail 'iperf3 -c with exs-preload had not ended after 60 s'
}

for name in iperf3 redis-server nginx ncat curl; do
	type -P "$name" >/dev/null || note "there is no $name"
done
check 'exs-preload: socket errors, 40 connects to a listener with backlog 10, ports and close() behave as with TCP' own_tests
check 'EXS-13: exs-preload: iperf3 transfers data over RDMA' iperf
check 'EXS-13: exs-preload: iperf3 -R transfers data over RDMA from server to client' iperf -R
check 'EXS-13: exs-preload: redis-benchmark completes over RDMA, a stored value is read back unchanged' redis
check 'EXS-13: exs-preload: curl receives a file of nginx over RDMA unchanged' web
check 'EXS-13: exs-preload: 20 clients get their values from memcached over RDMA' memcached_serves 20
check 'EXS-13: exs-preload: 20 clients get their values from memcached over RDMA with 8 MiB of locked memory' \
	memcached_serves 20 setpriv --bounding-set=-ipc_lock prlimit --memlock=8388608 # with the capability no limit holds
check 'exs-preload: 80 clients get their values from memcached with 8 MiB of locked memory, where 22 connections fit' \
	memcached_serves 80 setpriv --bounding-set=-ipc_lock prlimit --memlock=8388608
check 'EXS-13: exs-preload: 50 clients of ngircd in one channel get all messages over RDMA' irc 50
check 'EXS-13: exs-preload: ncat receives 5 MB from ncat unchanged' netcat
check 'exs-preload: an iperf3 client does not hang if its server runs without exs-preload' mixed
if [[ $only == *'ten times'* ]]; then
	check 'exs-preload: iperf3 transfers data ten times' ten_times iperf -t 2
	check 'exs-preload: redis-benchmark completes ten times' ten_times redis
	check 'exs-preload: curl receives files of nginx ten times' ten_times web
	check 'exs-preload: 20 clients get their values from memcached ten times' ten_times memcached_serves 20
	check 'exs-preload: 50 clients of ngircd get all messages ten times' ten_times irc 50
fi
finish
