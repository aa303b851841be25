#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Usage: install.sh SOURCE BUILD
#
# Does as a user of libexs: installs it, finds it by pkg-config and by CMake, builds the examples, and follows
# doc/ten-minutes.md word by word. Over TCP, on the loopback interface. Also: the library alone needs no package of the tools, each file
# has the licence, the symbols are those of libexs.map, in its version, and of the header. Prints a line for each step; exit status 1 at the first that fails.
set -euo pipefail

source=$(cd "$1" && pwd -P)
build=$(cd "$2" && pwd -P)
work=$(mktemp -d)
servers=()
step='the beginning'
end() {
	local status=$?
	((status == 0)) || echo "not ok $step" >&2
	((${#servers[@]} == 0)) || kill "${servers[@]}" 2>/dev/null || true
	rm -rf "$work"
}
trap end EXIT

begin() {
	step=$1
	echo "# $step"
}

fail() {
	echo "$*" >&2
	exit 1
}

# below the ports that the kernel gives to clients
port=$((20000 + RANDOM % 12000))
# serve COMMAND…: ADDRESS and PORT are the last words of it; it listens when this returns
serve() {
	local i tries
	for ((tries = 0; tries < 5; tries++)); do
		port=$((port + 1))
		"$@" 127.0.0.1 $port >"$work/server.log" 2>&1 &
		servers+=($!)
		for ((i = 0; i < 300; i++)); do
			! grep -q '^listening' "$work/server.log" || return 0
			kill -0 "${servers[-1]}" 2>/dev/null || break
			sleep 0.1
		done
		grep -q 'Address already in use' "$work/server.log" || break
	done
	fail "no server: $(<"$work/server.log")"
}

begin 'it can be installed'
DESTDIR=$work/root cmake --install "$build" >"$work/install.log"
pc=$(find "$work/root" -name exs.pc)
[[ $pc ]] || fail 'there is no exs.pc'
config=$(find "$work/root" -name exsConfig.cmake)
library=$(find "$work/root" -name libexs.so)
export PKG_CONFIG_PATH=${pc%/*} PKG_CONFIG_SYSROOT_DIR=$work/root LD_LIBRARY_PATH=${library%/*}
cp -r "$source/examples" "$work/examples"

begin 'without CLI11, fmt and JSON the library, exs-preload and the examples are built, and no tools'
alone=$work/alone
cmake -S "$source" -B "$alone" -G 'Unix Makefiles' -DCMAKE_BUILD_TYPE=None \
	-DCMAKE_DISABLE_FIND_PACKAGE_{fmt,CLI11,nlohmann_json}=ON >"$work/cmake.log" 2>&1 || fail "$(<"$work/cmake.log")"
cmake --build "$alone" -j "$(nproc)" >"$work/cmake.log" 2>&1 || fail "$(tail -n 30 "$work/cmake.log")"
for file in libexs.so libexs.a libexs-preload.so exs_example_echo; do
	[[ -e $alone/$file ]] || fail "no $file was built"
done
[[ ! -e $alone/exs-blast ]] || fail 'it has built the tools'
find "$alone" -name '*.d' -exec cat {} + | tr '\134 ' '\n' | grep -E '^(\.\.|/)' | sort -u >"$work/named"
! grep -E '/(fmt|CLI|nlohmann)/' "$work/named" || fail 'it needs headers of the tools'

begin 'it is under the licence of libexs, with all that is compiled into it'
readonly LICENCE='SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause'
grep -v '^/usr/' "$work/named" >"$work/compiled" # of the system's no licence is known here
[[ $(wc -l <"$work/compiled") -gt 30 ]] || fail 'few files were compiled'
(cd "$alone" && xargs grep -L "^\\(//\\|/\\*\\) $LICENCE" <"$work/compiled" >"$work/others") || true
# texts have no such line, and a page that is another one has no other line
(find "$source" -type f ! -name '*.md' -exec grep -L "$LICENCE" {} + || true) | while read -r file; do
	grep -q '^\.so ' "$file" || echo "$file"
done >>"$work/others"
[[ ! -s $work/others ]] || fail "another licence: $(<"$work/others")"
! cmake -S "$source" -B "$alone" -DEXS_TOOLS=ON >"$work/cmake.log" 2>&1 || fail 'it builds tools without their packages'
rm -r "$alone"

begin 'a manual page for each function'
for name in $(sed -nE 's/^\t(exs_[a-z_]+);$/\1/p' "$source/libexs.map") exs_event; do
	page=$(find "$work/root" -name "$name.3")
	[[ $page ]] || fail "$name has none"
	grep -q "^\.SH SYNOPSIS" "$page" || fail "$name: no synopsis"
	sed -n '/^\.SH SYNOPSIS/,/^\.fi/p' "$page" | grep "$name" >/dev/null || fail "$name: not in its synopsis"
done

begin 'installed elsewhere, the tools find the library that was installed with them'
cmake --install "$build" --prefix "$work/elsewhere" >"$work/install.log"
for program in "$work"/elsewhere/bin/exs-{blast,ping,exchange} "$work"/elsewhere/lib/*/exs/libexs-preload.so "$work"/elsewhere/lib/exs/libexs-preload.so; do
	[[ -e $program ]] || continue
	found=$(env -u LD_LIBRARY_PATH ldd "$program" | grep libexs)
	[[ $found == *"libexs.so.0 => $work/elsewhere/"* ]] || fail "$program finds $found"
done
[[ $(env -C / "$work/elsewhere/bin/exs-preload" printenv LD_PRELOAD) == "$work"/elsewhere/*/libexs-preload.so ]] || fail 'exs-preload finds another library'
rm -r "$work/elsewhere"

begin 'the symbols are those of libexs.map and of the header'
sed -nE 's/^\t(exs_[a-z_]+);$/\1/p' "$source/libexs.map" | sort >"$work/map"
nm -D --defined-only --with-symbol-versions "$library" | sed -nE 's/.* T (exs_[a-z_]+)@@EXS_0\.[12]$/\1/p' | sort | diff "$work/map" -
[[ $(nm -D --defined-only "$library" | grep -cvE ' (T exs_|A EXS_)') == 0 ]] || fail 'it defines other symbols'
grep -oE '^[a-z_]+[a-z_0-9 ]* \*?exs_[a-z_]+\(' "$work/root"/usr/*/include/exs.h | grep -oE 'exs_[a-z]+(_[a-z]+)?\($' | tr -d '(' | sort | diff "$work/map" -
packaged=$source/../debian/libexs0.symbols
[[ ! -e $packaged ]] || sed -nE 's/^ (exs_[a-z_]+)@EXS_0\.[12] .*/\1/p' "$packaged" | sort | diff "$work/map" -

begin 'pkg-config finds it, and the command of the page builds the file server'
command=$(grep -oE 'cc -o files file_server\.c \$\(pkg-config[^)]*\)' "$source/doc/ten-minutes.md")
(cd "$work/examples" && eval "$command")
nm -D --with-symbol-versions "$work/examples/files" | grep -q 'U exs_sendfile@EXS_0.1$' || fail 'the program has no version of its symbols'
seq 1 100000 >"$work/file"
serve env -C "$work" "$work/examples/files"
timeout 60 "$work/examples/files" 127.0.0.1 $port file | cmp - "$work/file"

begin 'pkg-config --static lists the libraries that the static library needs'
# shellcheck disable=SC2046 # words
cc -o "$work/examples/static" "$work/examples/file_server.c" $(pkg-config --cflags exs) \
	$(pkg-config --static --libs exs | sed -E 's/(^| )-lexs( |$)/\1-l:libexs.a\2/')
[[ $(ldd "$work/examples/static") != *libexs* ]] || fail 'the static library is not used'
rm "$work/examples/static"

begin 'exs.hpp asks for C++20'
read -ra cflags < <(pkg-config --cflags exs)
! echo '#include <exs.hpp>' | c++ -std=c++17 -fsyntax-only -x c++ "${cflags[@]}" - 2>"$work/cxx.log" || fail 'it compiles as C++17'
[[ $(grep -c 'error:' "$work/cxx.log") -ge 1 && $(grep -m 1 'error:' "$work/cxx.log") == *'needs C++20'* ]] ||
	fail "the first error is: $(grep -m 1 'error:' "$work/cxx.log")"

begin 'CMake finds it, and builds the examples in C++'
mkdir "$work/project"
cat >"$work/project/CMakeLists.txt" <<-END
	cmake_minimum_required(VERSION 3.18)
	project(user C CXX)
	find_package(exs \${WANTED} CONFIG REQUIRED)
	foreach(example echo publisher)
	    add_executable(\${example} $work/examples/\${example}.cpp)
	    target_link_libraries(\${example} exs::exs)
	endforeach()
	add_executable(files $work/examples/file_server.c)
	target_link_libraries(files exs::static)
END
user() { # VERSION
	cmake -S "$work/project" -B "$work/user" -DCMAKE_PREFIX_PATH="${config%/lib*}" -DWANTED="$1" >"$work/cmake.log" 2>&1
}
! user 0.3 || fail 'it takes itself for a later version'
wanted=$(sed -nE 's/^find_package\(exs ([0-9.]+) .*/\1/p' "$source/doc/install.md")
[[ $wanted ]] || fail 'install.md has no find_package()'
user "$wanted" || fail "$(<"$work/cmake.log")"
cmake --build "$work/user" >"$work/cmake.log" 2>&1 || fail "$(<"$work/cmake.log")"
serve "$work/user/echo"
[[ $(timeout 60 "$work/user/echo" 127.0.0.1 $port hello) == hello ]] || fail 'no echo'
echo_port=$port
[[ $(ldd "$work/user/echo") == *libexs* ]] || fail 'the shared library is not used'
[[ $(ldd "$work/user/files") != *libexs* ]] || fail 'the static library is not used'
serve env -C "$work" "$work/user/files"
timeout 60 "$work/user/files" 127.0.0.1 $port file | cmp - "$work/file"

# block LANGUAGE N: the Nth block of the page in this language
block() {
	awk -v begin="\`\`\`$1" -v wanted="$2" '$0 == begin { n++; inside = 1; next } /^```/ { inside = 0 } inside && n == wanted' \
		"$source/doc/ten-minutes.md"
}
compile() { # PROGRAM: from standard input
	cat >"$work/$1.c"
	# shellcheck disable=SC2046 # words
	cc -Wall -Werror -Wno-unused-variable -o "$work/$1" "$work/$1.c" $(pkg-config --cflags --libs exs)
}
readonly HEAD='#include <arpa/inet.h>
#include <err.h>
#include <exs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[2])), .sin_addr.s_addr = inet_addr(argv[1])};
	const struct sockaddr *address = (struct sockaddr *)&to;
	socklen_t length = sizeof(to);'

begin 'ten minutes: memory, a queue, a message there and back'
{ echo "$HEAD" && block c 1 && block c 2 && echo '}'; } | compile talk
timeout 60 "$work/talk" 127.0.0.1 $echo_port | sort >"$work/talk.log"
diff "$work/talk.log" - <<-'END'
	the receive: Success, 100 octets
	the send: Success, 100 octets
END

begin 'ten minutes: a send that lasts'
{
	echo "$HEAD" && block c 1
	echo 'for (int i = 0; i < (int)sizeof(buffer); i++) buffer[i] = "abcdefgh"[i / 64 % 8];
	struct exs_event event; exs_qh_t queue = exs_qcreate(); exs_fd_t listener = exs_socket(AF_INET, SOCK_SEQPACKET, EXS_PROTO_ANY);
	if (exs_bind(listener, address, length) || exs_listen(listener, 1)) err(1, "listen");
	puts("listening"); fflush(stdout); exs_accept(listener, queue, NULL); exs_qdequeue(queue, &event, 1, -1);
	exs_fd_t fd = event.accepted;'
	block c 3 | sed -n '/publisher/p'
	echo 'pause(); }'
} | compile publish
serve "$work/publish"
{
	echo "$HEAD" && block c 1 && block c 2 | sed '/^exs_send/,$d'
	echo 'for (int row = 0; row < 1000; row += 333) {'
	block c 3 | sed -n '/reader/p'
	echo 'if (exs_qdequeue(queue, &event, 1, 20000) != 1 || event.error) errx(1, "%s", strerror(event.error));
	printf("%lu %c%c", event.length, buffer[0], buffer[63]); puts(""); } }'
} | compile read
timeout 60 "$work/read" 127.0.0.1 $port >"$work/read.log"
diff "$work/read.log" - <<-'END'
	64 aa
	64 ff
	64 cc
	64 hh
END

begin 'ten minutes: the same with co_await'
{
	echo '#include <exs.hpp>
#include <iostream>
static exs::task<> talk(exs::loop &loop) {'
	block cpp 1 | sed "s/\"192.0.2.1\", 7471/\"127.0.0.1\", $echo_port/"
	echo 'std::cout << sent << std::endl; }
int main() { const exs::library library; exs::loop loop; loop.spawn(talk(loop)); loop.run(); }'
} >"$work/talk.cpp"
# shellcheck disable=SC2046 # words
c++ -std=c++20 -o "$work/talk++" "$work/talk.cpp" $(pkg-config --cflags --libs exs)
[[ $(timeout 60 "$work/talk++") == 100 ]] || fail 'nothing was sent'

begin 'no example has 100 lines'
wc -l "$work"/examples/* | awk '$2 != "total" && $1 >= 100 { print; bad = 1 } END { exit bad }'
echo 'ok all'
