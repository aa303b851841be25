# SPDX-License-Identifier: GPL-2.0-only
#
# make demo     two virtual machines connect peer-to-peer; PCAP=FILE keeps the packets; LLP=sctp
# make check    every test; the last line is "N passed, N failed"
# make check-all  make check with every whole-system suite on all four kernels, each patch by itself, and the packages
# make conformance  tests and results of each requirement; STOCK=1 also against unmodified siw
# make bench    ours compared with unmodified modules, into results/; QUICK=1 for a short run
# make exs-random  libexs: fuzzers, random scheduler, threads under sanitizers, for SECONDS=20 each
# make soak     connections opened, killed and closed for MINUTES=10 on KERNEL=debian; total kept in tests/RESULTS.md
# make fuzz     each fuzzer for SECONDS=20
# make modules  our modules for Debian's kernel, in the cache
# make tools    user-space tools, in build/tools
# make deb      Debian packages, in build/deb; make deb-test installs them in a fresh system
# make dist     the release, in build/dist
# make datagram  datagram iWARP (read libdgm/NOTICE first): library, tools and source package, in build/datagram
# make datagram-deb  its Debian packages, in build/datagram/deb; make datagram-deb-test installs them in a fresh system
# make tree     the patched files of the kernel and ours, for reading: a git work tree with a commit for each patch,
#               in build/tree/7.2; KERNEL=… for another
# make rdma-tool  the rdma program with "rdma mpa", in the cache
# make series-check  each patch compiles and passes KUnit on 6.1; KERNEL=… for another
#
# Kernels, and programs built from others' source, are kept in the cache
# (${XDG_CACHE_HOME:-~/.cache}/iw_mpa); see scripts/kernel --help.

all: modules tools

modules:
	scripts/kernel prepare debian
	@scripts/kernel path debian modules

tools:
	scripts/tools

rdma-tool:
	@scripts/rdma-tool

series-check:
	@scripts/series-check $(KERNEL)

deb:
	@scripts/dist deb

deb-test:
	@scripts/deb-test

tree:
	@rm -rf build/tree/$(or $(KERNEL),7.2)
	@scripts/series tree build/tree/$(or $(KERNEL),7.2) $(or $(KERNEL),7.2)

dist:
	@scripts/dist

demo:
	@scripts/demo $(if $(LLP),--llp $(LLP)) $(PCAP)

check:
	@scripts/check

SECONDS ?= 20
check-all:
	@scripts/check all

conformance:
	@scripts/conformance $(if $(STOCK),--stock)

bench:
	@scripts/bench $(if $(QUICK),--quick)
	@scripts/bench-exs $(if $(QUICK),--quick)
	@scripts/bench-rpc $(if $(QUICK),--quick)

fuzz:
	@scripts/fuzz --seconds $(SECONDS)

datagram:
	@scripts/datagram build

datagram-deb:
	@scripts/datagram deb

datagram-deb-test:
	@scripts/deb-test --datagram

MINUTES ?= 10
soak:
	@scripts/soak --kernel $(or $(KERNEL),debian) --minutes $(MINUTES) --keep

exs-random:
	@scripts/exs-random --seconds $(SECONDS)

clean:
	rm -rf build

.PHONY: all modules tools rdma-tool deb deb-test dist series-check tree demo check check-all conformance bench fuzz soak exs-random datagram datagram-deb datagram-deb-test clean
