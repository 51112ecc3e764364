# whylate.  `make diagnose` and `make test` do all of their own set-up; `make help` lists the rest.
SHELL := /bin/bash
.DELETE_ON_ERROR:
.SECONDARY:
.DEFAULT_GOAL := all

BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
ARCH ?= $(shell uname -m | sed 's/aarch64/arm64/')
CROSS_COMPILE ?=
# Where another architecture's headers and libraries are (scripts/cross-sysroot makes such a tree).
SYSROOT ?=

V ?= 0
ifeq ($(V),1)
Q :=
say = @:
else
Q := @
say = @printf '  %-8s %s\n'
endif

CC := $(CROSS_COMPILE)gcc $(if $(SYSROOT),--sysroot=$(SYSROOT))
CXX := $(CROSS_COMPILE)g++ $(if $(SYSROOT),--sysroot=$(SYSROOT))
CLANG ?= clang-19
BPFTOOL ?= $(shell command -v bpftool || echo /usr/sbin/bpftool)
PKG_CONFIG ?= pkg-config
BPF_ARCH := $(if $(filter x86_64,$(ARCH)),x86,$(ARCH))

VERSION := 0.1
WARN := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes
OPT ?= -O2 -g
SAN ?=
CPPFLAGS += -Iinclude -Iagent -I. -I$(BUILD) -D_GNU_SOURCE -DWHYLATE_VERSION='"$(VERSION)"'
CFLAGS += -std=gnu11 $(OPT) $(WARN) -fno-omit-frame-pointer $(SAN)
LDFLAGS += $(SAN)
LIBS := -lbpf -ldw -lelf -lz -lzstd -ljson-c -lcap -lseccomp -lcurl -lmicrohttpd -lgnutls -lm -lpthread -lcapstone -llzma -liberty -lncursesw
BPF_CFLAGS := -std=gnu11 -O2 -g -target bpf -mcpu=v3 -D__TARGET_ARCH_$(BPF_ARCH) -Wall -Wextra -Werror \
	-Wno-unused-parameter -Wno-missing-declarations -Iinclude -Ivmlinux/$(ARCH) -Ibpf

bpf_src := $(wildcard bpf/*.bpf.c)
bpf_obj := $(bpf_src:bpf/%.bpf.c=$(BUILD)/bpf/%.bpf.o)
skel := $(BUILD)/whylate.skel.h

# Everything but main, in the order of knowing (DESIGN §2): the unit tests link exactly that.
rooms := base target values probe shard model capture net/wire net/send net/collect net/project session analysis rounds view live fleet selftest cmd
lib_src := $(foreach room,$(rooms),$(wildcard agent/$(room)/*.c))
agent_src := agent/main.c
lib_obj := $(lib_src:%.c=$(BUILD)/%.o)
agent_obj := $(agent_src:%.c=$(BUILD)/%.o)

# As many jobs as there are CPUs, unless make was told how many: make -j1 is one after the other.
jobs = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

.PHONY: all build
all: setup-build
	@$(MAKE) --no-print-directory $(jobs) build
build: $(BUILD)/whylate workloads presets

# --- set-up -----------------------------------------------------------------------------------------------------------
.PHONY: setup-build setup-test setup-rest setup-targets setup-lint setup-bench setup-cluster setup-matrix setup-matrix-all setup-deb
setup-build setup-test setup-rest setup-targets setup-lint setup-bench setup-cluster setup-matrix setup-matrix-all setup-deb: setup-%:
	@scripts/setup.sh $*

# --- the kernel side --------------------------------------------------------------------------------------------------
$(BUILD)/bpf/%.bpf.o: bpf/%.bpf.c
	$(say) BPF $@
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -MT $@ -MF $(@:.o=.d) -c $< -o $@

$(BUILD)/whylate.bpf.o: $(bpf_obj)
	$(say) BPFLINK $@
	$(Q)$(BPFTOOL) gen object $@ $^

$(skel): $(BUILD)/whylate.bpf.o
	$(say) SKEL $@
	$(Q)$(BPFTOOL) gen skeleton $< name whylate_bpf > $@

$(BUILD)/syscall_number.def: include/whylate/syscall.def scripts/syscall-numbers
	$(say) GEN $@
	@mkdir -p $(@D)
	$(Q)scripts/syscall-numbers $< $(CC) > $@

# --- what the HTML page embeds: its style, its script and uPlot -------------------------------------------------------
page_src := $(wildcard agent/view/html/*.js agent/view/html/*.css agent/view/html/*.html)
uplot := agent/view/html/node_modules/.package-lock.json

$(uplot): agent/view/html/package-lock.json
	$(Q)scripts/setup.sh charts

$(BUILD)/html_assets.h: $(page_src) $(uplot) scripts/html-assets
	$(say) GEN $@
	@mkdir -p $(@D)
	$(Q)scripts/html-assets agent/view/html > $@

# --- the agent --------------------------------------------------------------------------------------------------------
$(BUILD)/agent/%.o: agent/%.c
	$(say) CC $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(foreach room,capture session rounds selftest cmd,$(patsubst %.c,$(BUILD)/%.o,$(wildcard agent/$(room)/*.c))): | $(skel)
$(foreach room,capture session rounds selftest cmd,$(patsubst %.c,$(BUILD)/unit/%.o,$(wildcard agent/$(room)/*.c))): | $(skel)
$(BUILD)/agent/base/syscalls.o $(BUILD)/unit/agent/base/syscalls.o: $(BUILD)/syscall_number.def
$(BUILD)/agent/view/html.o $(BUILD)/unit/agent/view/html.o: $(BUILD)/html_assets.h

$(BUILD)/libwhylate.a: $(lib_obj)
	$(say) AR $@
	$(Q)rm -f $@ && $(CROSS_COMPILE)ar rcs $@ $^

$(BUILD)/whylate: $(agent_obj) $(BUILD)/libwhylate.a
	$(say) LD $@
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

# --- symbol lists of common servers, where the program finds them before it is installed ---------------------------------
presets := $(patsubst %,$(BUILD)/%,$(wildcard presets/*.symbols))

.PHONY: presets
presets: $(presets)
$(BUILD)/presets/%: presets/%
	@mkdir -p $(@D)
	$(Q)cp $< $@

# --- workloads with a known cause of lateness -------------------------------------------------------------------------
workload_src := $(wildcard tests/workloads/*.c)
workload_bin := $(patsubst tests/workloads/%.c,$(BUILD)/workloads/%,$(filter-out tests/workloads/common.c $(if $(CROSS_COMPILE),tests/workloads/cplusplus.c),$(workload_src)))

queue_bin := $(patsubst %,$(BUILD)/workloads/queues-%,O0 O2 O3 stripped lockless $(if $(CROSS_COMPILE),,cplusplus))

.PHONY: workloads
workloads: $(workload_bin) $(BUILD)/workloads/lib/libwlplugin.so $(BUILD)/workloads/lib/libwltracer.so $(BUILD)/workloads/prelinked/library $(BUILD)/workloads/split-dwarf/basket $(queue_bin)
$(BUILD)/workloads/%: tests/workloads/%.c $(wildcard tests/workloads/common.c tests/workloads/*.h)
	$(say) CC $@
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -O2 -g $(WARN) -D_GNU_SOURCE -Iinclude -Itests/workloads $< $(wildcard tests/workloads/common.c) -o $@ $(workload_with) -lpthread -lm

# What DWARF says of its variables is in .dwo files beside it.
$(BUILD)/workloads/split-dwarf/basket: tests/workloads/basket.c $(wildcard tests/workloads/common.c tests/workloads/*.h)
	$(say) CC $@
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -O2 -g -gsplit-dwarf $(WARN) -D_GNU_SOURCE -Iinclude -Itests/workloads $< tests/workloads/common.c -o $@ -lpthread -lm

# What some of them have beside C: a library of their own, behind the PLT, and C++.
$(BUILD)/workloads/lib/libwlcodec.so: tests/workloads/lib/codec.c tests/workloads/lib/codec.h
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -O2 -g $(WARN) -fPIC -shared $< -o $@
$(BUILD)/workloads/lib/libwlplugin.so: tests/workloads/lib/plugin.c tests/workloads/lib/plugin.h
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -O2 -g $(WARN) -fPIC -shared $< -o $@
# As the specification of thread contexts asks for.
tls_dialect := $(if $(filter x86_64,$(ARCH)),-mtls-dialect=gnu2)
$(BUILD)/workloads/lib/libwltracer.so: tests/workloads/lib/tracer.c tests/workloads/lib/trace.h
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -O2 -g $(WARN) $(tls_dialect) -fPIC -shared $< -o $@
$(BUILD)/workloads/lib/%.o: tests/workloads/lib/%.cc tests/workloads/lib/%.h
	$(say) CXX $@
	@mkdir -p $(@D)
	$(Q)$(CXX) -std=gnu++17 -O2 -g -Wall -Wextra -Werror -c $< -o $@
$(BUILD)/workloads/library: $(BUILD)/workloads/lib/libwlcodec.so
$(BUILD)/workloads/library: workload_with = -L$(BUILD)/workloads/lib -lwlcodec -Wl,-rpath,'$$ORIGIN/lib'
$(BUILD)/workloads/traced: tests/workloads/lib/trace.h
$(BUILD)/workloads/cplusplus: $(BUILD)/workloads/lib/engine.o
$(BUILD)/workloads/cplusplus: workload_with = $(BUILD)/workloads/lib/engine.o -lstdc++

# Queues in shared memory, as several optimisations leave them, and without names.
$(BUILD)/workloads/queues-O%: tests/workloads/queues/queues.c
	$(say) CC $@
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -O$* -g $(WARN) -D_GNU_SOURCE $< -o $@ -lpthread
$(BUILD)/workloads/queues-lockless: tests/workloads/queues/lockless.c
	$(say) CC $@
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -O2 $(WARN) -D_GNU_SOURCE $< -o $@ -lpthread
$(BUILD)/workloads/queues-cplusplus: tests/workloads/queues/pool.cc
	$(say) CXX $@
	@mkdir -p $(@D)
	$(Q)$(CXX) -std=gnu++17 -O2 -g -Wall -Wextra -Werror $< -o $@ -lpthread
$(BUILD)/workloads/queues-stripped: $(BUILD)/workloads/queues-O2
	$(say) STRIP $@
	$(Q)$(CROSS_COMPILE)strip -o $@ $<

# Linked for fixed addresses, as `prelink` left programs and libraries; segments lie further apart than in the file.
prelinked_cc = $(CC) -std=gnu11 -O2 -g $(WARN) -D_GNU_SOURCE -Iinclude -Itests/workloads -Wl,-z,max-page-size=0x10000
$(BUILD)/workloads/prelinked/libwlcodec.so: tests/workloads/lib/codec.c tests/workloads/lib/codec.h
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(prelinked_cc) -fPIC -shared -Wl,-Ttext-segment=0x41000000 $< -o $@
$(BUILD)/workloads/prelinked/library: tests/workloads/library.c $(BUILD)/workloads/prelinked/libwlcodec.so \
		$(wildcard tests/workloads/common.c tests/workloads/*.h)
	$(say) CC $@
	$(Q)$(prelinked_cc) -fno-pie -no-pie -Wl,-Ttext-segment=0x10000000 $< tests/workloads/common.c -o $@ \
		-L$(@D) -lwlcodec -Wl,-rpath,'$$ORIGIN' -lpthread -lm

# --- programs that do what probes may break, plain and under the sanitizers ---------------------------------------------
safety_src := $(wildcard tests/safety/*.c tests/safety/*.cc)
safety_name := $(basename $(notdir $(safety_src)))
# Without symbols there is still .eh_frame.
safety_stripped := many-stripped throwing-stripped
GO ?= $(shell command -v go)
safety_bin := $(addprefix $(BUILD)/safety/,$(safety_name) $(safety_stripped) $(if $(GO),goroutines)) \
	$(addprefix $(BUILD)/safety-san/,$(safety_name))

.PHONY: safety
safety: $(safety_bin)
$(BUILD)/safety-san/%: safety_san = $(SANITIZE)
# The address sanitizer of GCC 12 stumbles over the frames that a cancelled thread leaves behind.
$(BUILD)/safety-san/cancelling: safety_san = -fsanitize=undefined -fno-sanitize-recover=undefined
$(BUILD)/safety/cancelling $(BUILD)/safety-san/cancelling: safety_with = -fexceptions
$(BUILD)/safety/shadow $(BUILD)/safety-san/shadow: safety_with = $(if $(filter x86_64,$(ARCH)),-fcf-protection=full -Wl$(,)-z$(,)shstk)
safety_cc = $(CC) -std=gnu11 -O2 -g $(WARN) -D_GNU_SOURCE -Itests/safety $(safety_with) $(safety_san)
safety_cxx = $(CXX) -std=gnu++17 -O2 -g -Wall -Wextra -Werror -Itests/safety $(safety_san)
, := ,

define safety_rules
$(BUILD)/$(1)/%: tests/safety/%.c tests/safety/safety.h
	$$(say) CC $$@
	@mkdir -p $$(@D)
	$$(Q)$$(safety_cc) $$< -o $$@ -lpthread -ldl
$(BUILD)/$(1)/%: tests/safety/%.cc tests/safety/safety.h
	$$(say) CXX $$@
	@mkdir -p $$(@D)
	$$(Q)$$(safety_cxx) $$< -o $$@ -lpthread
$(BUILD)/$(1)/libwlplugin.so: tests/safety/lib/plugin.c tests/safety/lib/plugin.h
	$$(say) LD $$@
	@mkdir -p $$(@D)
	$$(Q)$$(safety_cc) -fPIC -shared $$< -o $$@
$(BUILD)/$(1)/libwlthrower.so: tests/safety/lib/thrower.cc tests/safety/lib/plugin.h
	$$(say) LD $$@
	@mkdir -p $$(@D)
	$$(Q)$$(safety_cxx) -fPIC -shared $$< -o $$@
$(BUILD)/$(1)/libwlswitcher.so: tests/safety/lib/switcher.c tests/safety/lib/switcher.h
	$$(say) LD $$@
	@mkdir -p $$(@D)
	$$(Q)$$(safety_cc) -fPIC -shared $$< -o $$@
$(BUILD)/$(1)/reloading $(BUILD)/$(1)/loading: $(BUILD)/$(1)/libwlplugin.so
$(BUILD)/$(1)/hosting: $(BUILD)/$(1)/libwlswitcher.so
$(BUILD)/$(1)/loading: $(BUILD)/$(1)/libwlthrower.so
endef
$(eval $(call safety_rules,safety))
$(eval $(call safety_rules,safety-san))

$(BUILD)/safety/%-stripped: $(BUILD)/safety/%
	$(say) STRIP $@
	$(Q)$(CROSS_COMPILE)strip -s -o $@ $<
$(BUILD)/safety/goroutines: tests/safety/goroutines.go
	$(say) GO $@
	@mkdir -p $(@D)
	$(Q)GO111MODULE=off GOFLAGS= GOCACHE=$(abspath $(BUILD))/go-cache $(GO) build -o $@ $<

# --- unit tests: no root, no BPF, under the sanitizers ----------------------------------------------------------------
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined
unit_src := $(wildcard tests/unit/*.c)
unit_go := $(if $(GO),$(addprefix $(BUILD)/unit/,go-subject go-subject-stripped go-subject-plain))
unit_lib_obj := $(lib_src:%.c=$(BUILD)/unit/%.o)
unit_obj := $(unit_src:%.c=$(BUILD)/unit/%.o) $(BUILD)/unit/tests/unit/value_subject_cxx.o

$(BUILD)/unit/%.o: %.c
	$(say) CC $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -Itests/unit $(CFLAGS) $(unit_opt) $(SANITIZE) -MMD -MP -c $< -o $@
unit_opt := -O1
# The tests themselves are compiled in a third of the time without optimisation, and run hardly longer.
$(BUILD)/unit/tests/unit/%.o: unit_opt := -O0

# Looked at by the unwinder: without frame pointers, as distributions compile, and without the sanitizers' own frames.
$(BUILD)/unit/tests/unit/unwind_subject.o: SANITIZE := -O2 -fomit-frame-pointer
# Their variables are read where DWARF says they are.
$(foreach level,0 2 3,$(eval $(BUILD)/unit/tests/unit/value_subject_o$(level).o: SANITIZE := -O$(level)))
$(BUILD)/unit/tests/unit/value_subject_cxx.o: tests/unit/value_subject_cxx.cc
	$(say) CXX $@
	@mkdir -p $(@D)
	$(Q)$(CXX) -std=gnu++17 -O2 -g -Wall -Wextra -Werror -c $< -o $@
# Their critical sections are read as compilers leave them.
$(foreach level,0 2 3,$(eval $(BUILD)/unit/tests/unit/section_subject_o$(level).o: SANITIZE := -O$(level)))

$(BUILD)/unit/run: $(unit_obj) $(unit_lib_obj)
	$(say) LD $@
	$(Q)$(CC) $(LDFLAGS) $(SANITIZE) -o $@ $^ -lcunit $(LIBS)

# --- live tests: root, real BPF, real servers -------------------------------------------------------------------------
# Go programs: as they are built by default, without symbols, and with debugging information that is not packed.
go_flags_stripped := -ldflags='-s -w'
go_flags_plain := -ldflags=-compressdwarf=false
define go_rule
$(BUILD)/$(1): $(2)
	$$(say) GO $$@
	@mkdir -p $$(@D)
	$$(Q)GO111MODULE=off GOFLAGS= GOCACHE=$$(abspath $$(BUILD))/go-cache $$(GO) build $$(go_flags_$(3)) -o $$@ $$<
endef
$(eval $(call go_rule,unit/go-subject,tests/unit/go_subject.go,))
$(eval $(call go_rule,unit/go-subject-stripped,tests/unit/go_subject.go,stripped))
$(eval $(call go_rule,unit/go-subject-plain,tests/unit/go_subject.go,plain))
$(eval $(call go_rule,goroutines/server,tests/goroutines/server.go,))
$(eval $(call go_rule,goroutines/server-stripped,tests/goroutines/server.go,stripped))
$(eval $(call go_rule,goroutines/broker,tests/goroutines/broker.go,))
live_go := $(if $(GO),$(addprefix $(BUILD)/goroutines/,server server-stripped broker))
# At the same time each would compile the same packages of Go's library.
$(BUILD)/unit/go-subject-stripped $(BUILD)/unit/go-subject-plain: | $(BUILD)/unit/go-subject
$(BUILD)/goroutines/server-stripped $(BUILD)/goroutines/broker: | $(BUILD)/goroutines/server
# And by the other versions that are installed.
define go_version_rule
$(BUILD)/goroutines/server-$(1) $(BUILD)/goroutines/server-$(1)-stripped: GO := /usr/lib/$(1)/bin/go
$(call go_rule,goroutines/server-$(1),tests/goroutines/server.go,)
$(call go_rule,goroutines/server-$(1)-stripped,tests/goroutines/server.go,stripped)
$(BUILD)/goroutines/server-$(1)-stripped: | $(BUILD)/goroutines/server-$(1)
live_go_rest += $(BUILD)/goroutines/server-$(1) $(BUILD)/goroutines/server-$(1)-stripped
endef
go_versions := $(foreach version,1.21 1.22 1.23 1.24,$(if $(wildcard /usr/lib/go-$(version)/bin/go),go-$(version)))
$(foreach version,$(go_versions),$(eval $(call go_version_rule,$(version))))

live_src := $(wildcard tests/live/*.c)
live_obj := $(live_src:%.c=$(BUILD)/%.o)

$(BUILD)/tests/live/%.o: tests/live/%.c
	$(say) CC $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -Itests/live $(CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/live/run: $(live_obj) $(BUILD)/libwhylate.a
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -lcunit $(LIBS)

# The product's planner and capture without the rest, for proofs and benchmarks of probes.
$(BUILD)/tests/prober/prober.o: tests/prober/prober.c
	$(say) CC $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/live/prober: $(BUILD)/tests/prober/prober.o $(BUILD)/libwhylate.a
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

# --- the HTML page in a browser: no root ------------------------------------------------------------------------------
$(BUILD)/browser/recording: tests/browser/recording.c tests/unit/row_writer.c $(BUILD)/libwhylate.a
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -Itests/unit $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

run_again = UNSTABLE=$(abspath $(BUILD)/unstable) tests/again
.PHONY: browser screen others
browser: $(BUILD)/whylate $(BUILD)/browser/recording
	@$(run_again) browser tests/browser/run $^

# --- `whylate top` in a terminal: no root --------------------------------------------------------------------------------
screen: $(BUILD)/whylate $(BUILD)/browser/recording
	@$(run_again) screen tests/screen/run $^

# --- other programs on what is written for them: pprof, the completion of three shells --------------------------------------
others: $(BUILD)/whylate $(BUILD)/browser/recording
	@$(run_again) others tests/others/run $^

# --- the kernel matrix: this binary on Debian's kernels, emulated -----------------------------------------------------
# It runs after the live tests (.ci/run), never beside them: they want a quiet machine.  Exit code 77: it cannot be run
# here, and prints why.
sysroot_arm64 := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/whylate/sysroot-arm64
run_matrix := scripts/kernel-matrix --binary $(if $(filter arm64,$(ARCH)),arm64,amd64)=$(BUILD)/whylate

.PHONY: matrix matrix-all matrix-or-skip
matrix: setup-matrix
	@$(MAKE) --no-print-directory $(jobs) build
	@$(run_matrix) $(MATRIX_FLAGS)

matrix-all: setup-matrix-all
	@$(MAKE) --no-print-directory $(jobs) build
	@scripts/cross-sysroot arm64 $(sysroot_arm64)
	@$(MAKE) --no-print-directory $(jobs) ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu- SYSROOT=$(sysroot_arm64) \
		BUILD=$(BUILD)/arm64 $(BUILD)/arm64/whylate
	@$(run_matrix) --all --binary arm64=$(BUILD)/arm64/whylate --sysroot arm64=$(sysroot_arm64) $(MATRIX_FLAGS)

matrix-or-skip: $(BUILD)/whylate
	@scripts/setup.sh matrix || true
	@$(run_matrix) $(MATRIX_FLAGS) || [ $$? -eq 77 ]

-include $(bpf_obj:.o=.d) $(lib_obj:.o=.d) $(agent_obj:.o=.d) $(unit_obj:.o=.d) $(unit_lib_obj:.o=.d) $(live_obj:.o=.d) $(BUILD)/tests/prober/prober.d

# --- what people call -------------------------------------------------------------------------------------------------
.PHONY: diagnose diagnose-all targets targets-run targets-all test stack unit live lint format bench bench-probes fuzz install clean help
PID ?=
SYMBOLS ?=
DURATION ?=
export PID SYMBOLS DURATION

diagnose: setup-build
	@$(MAKE) --no-print-directory $(jobs) build
	@WHYLATE=$(BUILD)/whylate DEMO=$(BUILD)/workloads/demo scripts/diagnose

# What the tests take beside the build is installed while that compiles.  What needs no root runs while the programs of the
# live tests are built; these want a quiet machine.  The unit tests take longest, so that theirs is built before.
test: setup-build
	@$(MAKE) --no-print-directory $(jobs) setup-test build stack unit-objects
	@$(MAKE) --no-print-directory $(jobs) unit-programs
	@rm -rf $(BUILD)/unstable
	@$(MAKE) --no-print-directory $(jobs) -O unit browser screen others live-programs planted
	@$(MAKE) --no-print-directory live-short
	@$(run_planted) --dozen
	@$(run_targets) --short $(targets_quick)

# No chain of calls on the kernel side takes more stack than Linux 6.1 grants; the kernels that run tests grant more.
stack: $(BUILD)/whylate.bpf.o
	$(Q)scripts/bpf-stack $<

unit: unit-programs
	@$(BUILD)/unit/run

.PHONY: unit-programs unit-objects
unit-programs: $(BUILD)/unit/run $(unit_go)
unit-objects: $(unit_lib_obj)

# All of them, or those of one form (tests/live/harness.h): `make test` runs the short form, .ci/run then the rest.
run_live = WHYLATE=$(abspath $(BUILD)/whylate) WORKLOADS=$(abspath $(BUILD)/workloads) $(BUILD)/live/run
live: live-programs $(live_go_rest)
	@$(run_live)

.PHONY: live-programs live-short live-rest live-rest-programs
live-programs: $(BUILD)/live/run $(BUILD)/live/prober $(BUILD)/whylate $(live_go) workloads presets safety

live-short: live-programs
	@$(run_live) --short

live-rest: setup-rest
	@$(MAKE) --no-print-directory $(jobs) build live-rest-programs
	@$(run_live) --rest

live-rest-programs: live-programs $(live_go_rest)

# The threads of the collector, and the uploader's process, under a sanitizer: what it finds fails the test.
.PHONY: live-thread live-address
live-thread live-address: live-%: $(BUILD)/live/run $(BUILD)/whylate
	@$(MAKE) --no-print-directory $(jobs) BUILD=$(BUILD)/san-$* SAN=-fsanitize=$* OPT='-O1 -g' $(BUILD)/san-$*/whylate
	@WHYLATE=$(abspath $(BUILD)/san-$*/whylate) WORKLOADS=$(abspath $(BUILD)/workloads) WHYLATE_SANITIZED=1 $(BUILD)/live/run collect crowd

# The agent under sanitizers, while it probes the programs that do what probes may break, which are run both ways anyhow.
# (Leaks are the unit tests' affair: who looks for them wants privileges that the agent has given up by then.)
SANITIZED_SUITES ?= safety attach newcomers places invocations functions probes markers
.PHONY: live-agent
live-agent: $(BUILD)/live/run
	@$(MAKE) --no-print-directory $(jobs) BUILD=$(BUILD)/san-agent SAN='$(SANITIZE)' OPT='-O1 -g' \
		build safety $(BUILD)/san-agent/live/prober
	@WHYLATE=$(abspath $(BUILD)/san-agent/whylate) WORKLOADS=$(abspath $(BUILD)/san-agent/workloads) \
		WHYLATE_SANITIZED=1 ASAN_OPTIONS=detect_leaks=0 $(BUILD)/live/run $(SANITIZED_SUITES)

# Which room includes which: it needs no tool.
.PHONY: lint-order
lint-order:
	$(Q)scripts/lint-order

# clang-format only looks, cppcheck only at our own code; `make format` writes.
c_files = $(shell git ls-files '*.c' '*.h' ':!vmlinux')
lint: setup-lint stack lint-order
	$(Q)clang-format-19 --dry-run --Werror $(c_files)
	$(Q)cppcheck --quiet --error-exitcode=1 --std=c11 --inline-suppr --enable=warning,performance,portability \
		--suppress=missingIncludeSystem -Iinclude -Iagent -I. \
		-D__x86_64__ -D'LIBBPF_OPTS(type, name, ...)=struct type name = { 0 }' \
		-D'bpf_object__for_each_program(program, object)=while ((program = next(object, program)))' agent

format: setup-lint
	$(Q)clang-format-19 -i $(c_files)

bench: setup-bench
	@$(MAKE) --no-print-directory $(jobs) build $(BUILD)/bench/report $(BUILD)/bench/path $(BUILD)/bench/switch
	@WHYLATE=$(abspath $(BUILD)/whylate) REPORT=$(abspath $(BUILD)/bench/report) tests/bench/run
	@WHYLATE=$(abspath $(BUILD)/whylate) PATHS=$(abspath $(BUILD)/bench/path) SWITCH=$(abspath $(BUILD)/bench/switch) \
		tests/bench/run --trace
	@$(MAKE) --no-print-directory $(BUILD)/bench/factors
	@$(BUILD)/bench/factors

# --- servers with planted causes, each diagnosed: PLANTS='own lock-cpu' chooses, FLAGS=--no-gain judges no gains ---------
planted := $(addprefix $(BUILD)/diagnose/,server client holdout oncall hops server-cxx holdout-cxx oncall-cxx \
	hops-cxx $(if $(GO),server-go holdout-go oncall-go hops-go))

$(BUILD)/diagnose/%: tests/diagnose/%.c tests/diagnose/planted.h tests/diagnose/switch.h
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -O2 -g -fno-ipa-icf $(WARN) -D_GNU_SOURCE -o $@ $< -lpthread

$(BUILD)/diagnose/%-cxx: tests/diagnose/%.cc tests/diagnose/planted.h tests/diagnose/lines.hh tests/diagnose/switch.h
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CXX) -std=c++17 -O2 -g -fno-ipa-icf -Wall -Wextra -o $@ $< -lpthread

$(BUILD)/diagnose/%-go: tests/diagnose/%.go tests/diagnose/lines.go tests/diagnose/switch.go
	$(say) GO $@
	@mkdir -p $(@D)
	$(Q)GO111MODULE=off GOFLAGS= GOCACHE=$(abspath $(BUILD))/go-cache $(GO) build -o $@ $^

.PHONY: planted
planted: $(planted)

run_planted = WHYLATE=$(abspath $(BUILD)/whylate) PLANTED=$(abspath $(BUILD)/diagnose) tests/diagnose/run
diagnose-all: setup-test
	@$(MAKE) --no-print-directory $(jobs) build planted
	@$(run_planted) $(FLAGS) $(PLANTS)

# Servers built from their sources with performance bugs brought back: FLAGS='--work DIR --again', CASES=redis-8145
bench-values: setup-bench
	@$(MAKE) --no-print-directory $(jobs) build
	@WHYLATE=$(abspath $(BUILD)/whylate) tests/bench/values/run $(FLAGS) $(CASES)
# Servers that the analysis was not made for: CASES=kdf.c
bench-values-holdout: setup-bench
	@$(MAKE) --no-print-directory $(jobs) build
	@WHYLATE=$(abspath $(BUILD)/whylate) tests/bench/values/holdout/run $(FLAGS) $(CASES)

# For those who build: the schema of `whylate values schema` from source, by clang -fpass-plugin= (docs/whylate-values.1)
LLVM_INCLUDE ?= $(shell llvm-config-19 --includedir 2>/dev/null || echo /usr/lib/llvm-19/include)
llvm-pass: setup-bench
	@$(MAKE) --no-print-directory $(BUILD)/whylate-values-schema.so

$(BUILD)/whylate-values-schema.so: llvm/values_schema.cc
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CXX) -std=c++17 -O2 -fPIC -shared -fno-rtti -Wall -Wextra -Werror -D_GNU_SOURCE -isystem $(LLVM_INCLUDE) $< -o $@

# Those that take no more than `make test` installs, which runs them as well; the long form has all.
run_targets = WHYLATE=$(abspath $(BUILD)/whylate) GOCACHE=$(abspath $(BUILD))/go-cache tests/targets/run
targets_quick := lighttpd haproxy aiohttp $(if $(GO),go)
targets: setup-test
	@$(MAKE) --no-print-directory targets-run TARGETS='$(or $(TARGETS),$(targets_quick))'

targets-all: setup-targets
	@$(MAKE) --no-print-directory targets-run

targets-run: build
	@$(run_targets) $(FLAGS) $(TARGETS)

bench-goroutines: setup-bench
	@$(MAKE) --no-print-directory $(jobs) build $(BUILD)/goroutines/server
	@WHYLATE=$(abspath $(BUILD)/whylate) SERVER=$(abspath $(BUILD)/goroutines/server) tests/bench/goroutines

bench-probes: setup-bench
	@$(MAKE) --no-print-directory $(jobs) build $(BUILD)/bench/calls $(BUILD)/live/prober
	@WHYLATE=$(abspath $(BUILD)/whylate) PROBER=$(abspath $(BUILD)/live/prober) CALLS=$(abspath $(BUILD)/bench/calls) \
		tests/bench/probes

$(BUILD)/bench/%: tests/bench/bench_%.c $(BUILD)/libwhylate.a
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

# Agents, collectors, database and Prometheus on loopback; needs root.
.PHONY: fleet-demo
fleet-demo: setup-cluster
	@$(MAKE) --no-print-directory $(jobs) build
	@WHYLATE=$(abspath $(BUILD)/whylate) scripts/fleet-demo

# libFuzzer, a bounded time each, so many at once: make fuzz FUZZ_SECONDS=3600 FUZZ_JOBS=8
FUZZ_SECONDS ?= 60
FUZZ_JOBS ?= $(shell nproc)
fuzz_bin := $(patsubst tests/fuzz/fuzz_%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
fuzz: setup-lint
	@$(MAKE) --no-print-directory $(jobs) $(fuzz_bin)
	$(Q)printf '%s\n' $(fuzz_bin) | xargs -P $(FUZZ_JOBS) -I {} scripts/fuzz {} $(FUZZ_SECONDS)

# The product is compiled once for all of them, without the rooms that none of them reaches.
fuzz_rooms := $(filter-out capture net/project rounds live fleet selftest cmd,$(rooms))
fuzz_lib_obj := $(foreach room,$(fuzz_rooms),$(patsubst %.c,$(BUILD)/fuzz-lib/%.o,$(wildcard agent/$(room)/*.c)))
fuzz_cc = $(CLANG) $(CPPFLAGS) -std=gnu11 -O1 -g -Wno-unknown-attributes -fno-sanitize-recover=undefined
$(BUILD)/fuzz-lib/%.o: %.c | $(skel) $(BUILD)/syscall_number.def $(BUILD)/html_assets.h
	$(say) CLANG $@
	@mkdir -p $(@D)
	$(Q)$(fuzz_cc) -fsanitize=fuzzer-no-link,address,undefined -MMD -MP -c $< -o $@
$(BUILD)/fuzz-lib/libwhylate.a: $(fuzz_lib_obj)
	$(Q)rm -f $@ && ar rcs $@ $^
-include $(fuzz_lib_obj:.o=.d)

$(BUILD)/fuzz/%: tests/fuzz/fuzz_%.c $(BUILD)/fuzz-lib/libwhylate.a $(wildcard tests/fuzz/*.h)
	$(say) CLANG $@
	@mkdir -p $(@D)
	$(Q)$(fuzz_cc) -Itests/fuzz -fsanitize=fuzzer,address,undefined -o $@ $(filter %.c %.a,$^) $(LIBS)

# SETCAP=1 gives the installed program what recording takes, so that the members of a group need not be root.
CAPS_GROUP ?= whylate
CAPS ?= cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search,cap_checkpoint_restore,cap_sys_nice,cap_syslog
SETCAP ?=
install: $(BUILD)/whylate presets
	install -Dm755 $(BUILD)/whylate $(DESTDIR)$(PREFIX)/bin/whylate
	$(Q)$(if $(filter 1,$(SETCAP)),getent group $(CAPS_GROUP) >/dev/null || groupadd --system $(CAPS_GROUP))
	$(Q)$(if $(filter 1,$(SETCAP)),chown root:$(CAPS_GROUP) $(DESTDIR)$(PREFIX)/bin/whylate)
	$(Q)$(if $(filter 1,$(SETCAP)),chmod 0750 $(DESTDIR)$(PREFIX)/bin/whylate)
	$(Q)$(if $(filter 1,$(SETCAP)),setcap $(CAPS)=ep $(DESTDIR)$(PREFIX)/bin/whylate)
	$(Q)for page in docs/*.1; do install -Dm644 $$page $(DESTDIR)$(PREFIX)/share/man/man1/$${page##*/}; done
	$(Q)for list in presets/*.symbols; do install -Dm644 $$list $(DESTDIR)$(PREFIX)/share/whylate/$$list; done
	install -Dm644 packaging/completion/whylate.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/whylate
	install -Dm644 packaging/completion/_whylate $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_whylate
	install -Dm644 packaging/completion/whylate.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/whylate.fish
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system
	$(Q)for unit in packaging/*.service.in; do \
		name=$${unit##*/}; \
		sed 's|@bindir@|$(PREFIX)/bin|' $$unit >$(DESTDIR)$(PREFIX)/lib/systemd/system/$${name%.in}; \
	done
	install -Dm644 include/whylate/annotate.h $(DESTDIR)$(PREFIX)/include/whylate/annotate.h
	install -Dm644 docs/SHARD-FORMAT.md $(DESTDIR)$(PREFIX)/share/doc/whylate/SHARD-FORMAT.md
	install -Dm644 docs/PROTOCOL.md $(DESTDIR)$(PREFIX)/share/doc/whylate/PROTOCOL.md
	install -Dm644 packaging/network.conf $(DESTDIR)$(PREFIX)/share/doc/whylate/network.conf
	install -Dm644 packaging/whylate.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/whylate.conf
	$(Q)$(if $(DESTDIR),,scripts/make-account)
	install -Dm644 docs/perfetto.proto $(DESTDIR)$(PREFIX)/share/doc/whylate/perfetto.proto
	install -Dm644 docs/otlp.proto $(DESTDIR)$(PREFIX)/share/doc/whylate/otlp.proto

# A Debian package into build/deb; and its check, which needs root and downloads a Debian system.
.PHONY: deb deb-check
deb: setup-build setup-deb
	@$(MAKE) --no-print-directory $(uplot)
	@debian/rules binary
	@debian/rules clean
	@ls -l build/deb/whylate_*.deb

deb-check: deb
	@scripts/deb-check build/deb/whylate_$(VERSION)_$$(dpkg --print-architecture).deb

clean:
	rm -rf $(BUILD)

help:
	@echo 'make diagnose [PID=1234] [SYMBOLS=file] [DURATION=30s]   why are requests late: of that process, or of a bundled server'
	@echo 'make test      unit, browser, screen, others and a live test of every suite   make live-rest  the other live tests'
	@echo 'make unit, make browser, make screen, make others, make live-short, make live (all of them, LONG=1: the long form)  one of them'
	@echo 'make matrix    self-test on 4 kernels     make matrix-all       on all of them, arm64 too (emulated)'
	@echo 'make           set up and build           make build            build only'
	@echo 'make install   [DESTDIR=] [PREFIX=] [SETCAP=1 [CAPS=…]]   SETCAP=1: recording without being root'
	@echo 'make deb       a Debian package         make deb-check        installed in a fresh root, and removed (root)'
	@echo 'make live-thread, make live-address   the collector under a sanitizer   make live-agent   … the agent and its probes'
	@echo 'make bench     figures for docs/OVERHEAD.md   make bench-probes  … of probes on functions'
	@echo 'make fleet-demo   20 agents, 2 collectors, 2 database servers and Prometheus on loopback: who is late, and why'
	@echo 'make diagnose-all [PLANTS=…] [FLAGS=--no-gain]   servers with planted causes, each diagnosed: is the first line right?'
	@echo 'make targets [TARGETS=…] [FLAGS=-v]       four programs of Debian, each with a planted cause, diagnosed by name'
	@echo 'make targets-all [TARGETS=…] [FLAGS=-v]   fourteen programs of Debian, each with a planted cause, diagnosed by port'
	@echo 'make lint      format and cppcheck        make fuzz             libFuzzer on what is not trusted'
