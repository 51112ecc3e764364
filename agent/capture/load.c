// SPDX-License-Identifier: GPL-2.0-or-later
/* The programs as they are loaded: which of them, what they are told, how large their tables are. */
#include "capture/capture.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/syscalls.h"
#include "bpf/knobs.h"
#include "capture/internal.h"
#include "whylate.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RING_SZ_MAX (1024 * 1024 * 1024)
/* Of words, where only intervals that are not kept go into them: for 50 ms of 100,000 a second. */
#define BRIEF_RING_SZ (256 * 1024)

/* The tier of the socket hooks that needs tables of its own. */
#define SOCKET_TIER_BY_ADDRESS 3

static int libbpf_says(enum libbpf_print_level level, const char *fmt, va_list args)
{
	(void)level;
	log_debug_text(fmt, args);
	return 0;
}

/* Only programs of the chosen tiers are loaded. */
static void choose_programs(struct capture *capture)
{
	struct hook_purpose purpose = capture_purpose(capture);
	struct bpf_program *program;

	bpf_object__for_each_program(program, capture->object) bpf_program__set_autoload(program, false);
	for (size_t i = 0; i < hook_cnt; i++) {
		if (!hook_taken(&capture->survey, i, purpose))
			continue;
		program = bpf_object__find_program_by_name(capture->object, hooks[i].program);
		if (program)
			bpf_program__set_autoload(program, true);
	}
}

static int check_survey(struct capture *capture)
{
	struct hook_purpose purpose = capture_purpose(capture);

	for (int f = 0; f < HOOK_FEATURE_CNT; f++) {
		enum hook_need need = features[f].need;

		if (capture->opts.force_tier[f])
			capture->survey.tier[f] = capture->opts.force_tier[f];
		if (capture->survey.tier[f] || !hook_feature_wanted(f, purpose))
			continue;
		if (need == HOOK_NEED_REQUIRED || need == HOOK_NEED_SOCKETS || need == HOOK_NEED_PROBES) {
			log_error("cannot record %s on this kernel: %s (`whylate doctor` shows what it can do)",
				  features[f].what,
				  capture->survey.missing[f] ? capture->survey.missing[f] : "no hook for it");
			return -ENOTSUP;
		}
	}
	return 0;
}

static void set_port(uint64_t *ports, uint16_t port)
{
	ports[port / 64] |= 1ULL << (port % 64);
}

static void set_ports(struct controls *controls, const target_listeners *listeners)
{
	for (size_t i = 0; listeners && i < listeners->cnt; i++) {
		if (listeners->items[i].family == TARGET_TCP)
			set_port(controls->tcp_ports, listeners->items[i].port);
		else if (listeners->items[i].family == TARGET_UDP)
			set_port(controls->udp_ports, listeners->items[i].port);
	}
}

static uint64_t words_mask(const struct capture *capture)
{
	uint32_t sz = capture->opts.ring_sz;

	if (!capture->opts.trace && sz > BRIEF_RING_SZ)
		sz = BRIEF_RING_SZ;
	return word_rings_mask(sz);
}

/* Those of the processes; more than there is room for: any. */
static void set_netns(struct controls *controls, const target_processes *processes)
{
	uint32_t all[KNOB_NETNS_MAX] = {0};
	size_t cnt = 0;

	for (size_t i = 0; i < processes->cnt; i++) {
		uint32_t netns = target_netns(processes->items[i].pid);
		bool known = !netns;

		for (size_t j = 0; j < cnt; j++)
			known = known || all[j] == netns;
		if (!known && cnt == KNOB_NETNS_MAX) {
			cnt = 0;
			break;
		}
		if (!known)
			all[cnt++] = netns;
	}
	for (size_t i = 0; i < KNOB_NETNS_MAX; i++)
		__atomic_store_n(&controls->netns[i], i < cnt ? all[i] : 0, __ATOMIC_RELAXED);
}

static void configure(struct capture *capture)
{
	struct knobs *knobs = (struct knobs *)&capture->skel->rodata->cfg_knobs;
	struct controls *controls = &capture->skel->bss->controls;

	set_netns(controls, capture->opts.processes);
	if (capture->opts.cgroup) {
		knobs->cgroup_id = capture->opts.cgroup->id;
		knobs->cgroup_hierarchy = capture->opts.cgroup->hierarchy;
	}
	knobs->children = capture->opts.children;
	knobs->ring_wake_bytes = capture->opts.ring_sz / 4;
	knobs->hw = capture->hw != NULL;
	knobs->trace = capture->opts.trace;
	knobs->probes = capture->opts.probes;
	knobs->stacks = capture->opts.stacks;
	knobs->values = capture->opts.values;
	knobs->outside_max = capture->opts.outside_max;
	knobs->words_mask = words_mask(capture);
	knobs->sockets = capture->opts.sockets;
	knobs->goroutines = capture->opts.goroutines;
	knobs->rt = !access("/sys/kernel/realtime", F_OK);
	syscall_wait_classes(knobs->wait_class, KNOB_SYSCALLS);
	knobs->first_bytes = capture->opts.first_bytes;
	syscall_read_classes(knobs->read_class, KNOB_SYSCALLS);
	knobs->windows = capture->opts.windows;
	controls->selection = SELECTION_NONE;
	capture->rate = capture->opts.rate;
	set_ports(controls, capture->opts.listeners);
}

/* A type names a Unix listener by its place in the list. */
static int set_unix_listeners(struct capture *capture, const target_listeners *listeners)
{
	int unix_listeners = bpf_map__fd(capture->skel->maps.unix_listeners);

	for (uint32_t i = 0; listeners && i < listeners->cnt; i++) {
		const struct target_listener *listener = &listeners->items[i];
		struct unix_name name = {};

		if (listener->family != TARGET_UNIX)
			continue;
		memcpy(name.path, listener->path, listener->path_len);
		name.len = name.path[0] ? 0 : listener->path_len;
		if (bpf_map_update_elem(unix_listeners, &name, &i, BPF_ANY))
			return -errno;
	}
	return 0;
}

static int fill_maps(struct capture *capture)
{
	const target_processes *processes = capture->opts.processes;
	int targets = bpf_map__fd(capture->skel->maps.targets);

	for (size_t i = 0; i < processes->cnt; i++) {
		uint32_t pid = processes->items[i].pid, yes = 1;

		if (bpf_map_update_elem(targets, &pid, &yes, BPF_ANY))
			return -errno;
	}
	return set_unix_listeners(capture, capture->opts.listeners);
}

static uint32_t ring_size(uint32_t wanted, uint32_t page_sz)
{
	uint32_t sz = page_sz;

	if (wanted > RING_SZ_MAX)
		wanted = RING_SZ_MAX;
	while (sz < wanted)
		sz *= 2;
	return sz;
}

/* Without probes their tables take no memory. */
static int shrink_probe_maps(struct capture *capture)
{
	struct bpf_map *const tables[] = {
		capture->skel->maps.holders,      capture->skel->maps.keyed_intervals, capture->skel->maps.queued_tasks,
		capture->skel->maps.handed_bases, capture->skel->maps.taken_cnts,
	};
	int err = 0;

	if (capture->opts.probes)
		return 0;
	bpf_map__set_autocreate(capture->skel->maps.probe_specs, false);
	bpf_map__set_autocreate(capture->skel->maps.probe_hits, false);
	for (size_t i = 0; !err && i < sizeof(tables) / sizeof(tables[0]); i++)
		err = bpf_map__set_max_entries(tables[i], 1);
	return err;
}

/* How far each program is from the verifier's limit of a million, with -v. */
static void say_verified(const struct capture *capture)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, capture->object)
	{
		struct bpf_prog_info info;
		uint32_t sz = sizeof(info);

		memset(&info, 0, sizeof(info));
		if (bpf_program__autoload(program) && bpf_program__fd(program) >= 0 &&
		    !bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &sz))
			log_debug("%s: %u instructions verified", bpf_program__name(program), info.verified_insns);
	}
}

/* Likewise without values. */
static int shrink_value_maps(struct capture *capture)
{
	struct bpf_map *const tables[] = {capture->skel->maps.value_ranges, capture->skel->maps.value_reads,
					  capture->skel->maps.value_globals, capture->skel->maps.value_images,
					  capture->skel->maps.value_steps};
	int err = 0;

	for (size_t i = 0; !err && i < sizeof(tables) / sizeof(tables[0]); i++)
		err = bpf_map__set_max_entries(tables[i], 1);
	return err;
}

/* Without stacks their tables take no memory. */
static int size_stack_maps(struct capture *capture)
{
	bool stacks = capture->opts.stacks;

	bpf_map__set_autocreate(capture->skel->maps.stack_cpus, stacks || capture->opts.sockets);
	bpf_map__set_autocreate(capture->skel->maps.known_stacks, stacks);
	bpf_map__set_autocreate(capture->skel->maps.pythons, stacks);
	bpf_map__set_autocreate(capture->skel->maps.stack_pids, stacks);
	if (!capture->opts.values && shrink_value_maps(capture))
		return -errno;
	if (!stacks && bpf_map__set_max_entries(capture->skel->maps.owed, 1))
		return -errno;
	return bpf_map__set_max_entries(capture->skel->maps.run_queues, stacks ? capture->cpu_cnt : 1);
}

static int load(struct capture *capture)
{
	LIBBPF_OPTS(bpf_object_open_opts, open_opts, .btf_custom_path = capture->opts.btf_path);
	int err;

	capture->skel = whylate_bpf__open_opts(&open_opts);
	if (!capture->skel)
		return -errno;
	capture->object = capture->skel->obj;
	choose_programs(capture);
	configure(capture);
	if (bpf_map__set_max_entries(capture->skel->maps.rings, capture->cpu_cnt) ||
	    bpf_map__set_max_entries(capture->skel->maps.hw_events, capture->cpu_cnt * WL_HW_SLOTS))
		return -errno;
	if (capture->survey.tier[HOOK_FEATURE_SOCKET] != SOCKET_TIER_BY_ADDRESS || !capture->opts.sockets) {
		bpf_map__set_autocreate(capture->skel->maps.conns_by_address, false);
		bpf_map__set_autocreate(capture->skel->maps.datagram_queues_by_address, false);
		bpf_map__set_autocreate(capture->skel->maps.socket_calls, false);
	}
	err = shrink_probe_maps(capture);
	if (err)
		return err;
	err = size_stack_maps(capture);
	if (!err && !capture->goroutines)
		err = goroutines__shrink(capture->skel->maps.goroutines, capture->skel->maps.go_layouts);
	if (err)
		return err;
	err = word_rings_size(capture->skel->maps.word_rings, words_mask(capture), capture->cpu_cnt);
	err = err ? err : whylate_bpf__load(capture->skel);
	if (err)
		return err;
	say_verified(capture);
	capture->stack_controls = &capture->skel->bss->stack_controls;
	capture->known_stacks_fd = bpf_map__fd(capture->skel->maps.known_stacks);
	capture->pythons_fd = bpf_map__fd(capture->skel->maps.pythons);
	capture->trace_slots_fd = bpf_map__fd(capture->skel->maps.trace_slots);
	capture->controls = &capture->skel->bss->controls;
	capture->record_rings =
		record_rings__new(bpf_map__fd(capture->skel->maps.rings), capture->opts.ring_sz, capture->cpu_cnt);
	if (!capture->record_rings)
		return -errno;
	capture->open_table = open_table__map(bpf_map__fd(capture->skel->maps.open_sets));
	if (!capture->open_table)
		return -errno;
	capture->word_rings =
		word_rings__new(bpf_map__fd(capture->skel->maps.word_rings), words_mask(capture), capture->cpu_cnt);
	if (!capture->word_rings)
		return -errno;
	if (capture->hw) {
		err = hwcounters__install(capture->hw, bpf_map__fd(capture->skel->maps.hw_events), 0);
		if (err)
			return err;
		capture->controls->hw_slots = hwcounters__slot_cnt(capture->hw, 0);
	}
	return fill_maps(capture);
}

/* The kernel's own number, for which the C library has no text: its JIT compiler gave a program up. */
#define ENOTSUPP 524

static const char *load_error(int err)
{
	return err == -ENOTSUPP ? "the kernel's BPF JIT refuses one of them; the kernel's log (dmesg) says why"
				: strerror(-err);
}

struct capture *capture__new(const struct capture_opts *opts)
{
	struct capture *capture = calloc(1, sizeof(*capture));
	char why[256];
	int err;

	if (!capture)
		return NULL;
	capture->opts = *opts;
	capture->stats_fd = -1;
	capture->cpu_cnt = libbpf_num_possible_cpus();
	capture->opts.ring_sz = ring_size(opts->ring_sz, sysconf(_SC_PAGESIZE));
	libbpf_set_print(libbpf_says);
	err = hook_survey_make(&capture->survey, opts->btf_path, why, sizeof(why));
	if (err) {
		log_error("%s", why);
		goto cleanup;
	}
	err = check_survey(capture);
	if (err)
		goto cleanup;
	if (opts->probes) {
		capture->probes = probes__new(capture);
		err = capture->probes ? 0 : -errno;
		if (err) {
			log_error("cannot start the process that attaches probes: %s", strerror(-err));
			goto cleanup;
		}
	}
	err = goroutines__open(capture);
	if (err)
		goto cleanup;
	if (opts->hw) {
		capture->hw = hwcounters__new(opts->hw_software, capture->cpu_cnt);
		if (!capture->hw)
			log_debug("no hardware counters: %s", strerror(errno));
	}
	capture->loss_per_cpu = calloc(capture->cpu_cnt, WL_LOSS_CNT * sizeof(*capture->loss_per_cpu));
	err = capture->loss_per_cpu ? load(capture) : -ENOMEM;
	if (err) {
		log_error("cannot load the BPF programs: %s (-v shows the kernel's reasons)", load_error(err));
		goto cleanup;
	}
	err = capture__cost_init(capture);
	if (err)
		goto cleanup;
	if (capture->goroutines)
		goroutines__set_table(capture->goroutines, bpf_map__fd(capture->skel->maps.go_layouts));
	if (opts->probes)
		probes__set_tables(capture->probes, bpf_map__fd(capture->skel->maps.probe_specs),
				   bpf_map__fd(capture->skel->maps.probe_hits));
	return capture;
cleanup:
	capture__free(capture);
	errno = -err;
	return NULL;
}

void capture__free(struct capture *capture)
{
	if (!capture)
		return;
	capture__detach(capture);
	capture__cost_free(capture);
	record_rings__free(capture->record_rings);
	word_rings__free(capture->word_rings);
	open_table__unmap(capture->open_table);
	capture_links__free(&capture->always);
	capture_links__free(&capture->in_windows);
	for (int f = 0; f < HOOK_FEATURE_CNT; f++)
		capture_links__free(&capture->stays[f].links);
	probes__free(capture->probes);
	goroutines__free(capture->goroutines);
	hwcounters__free(capture->hw);
	whylate_bpf__destroy(capture->skel);
	free(capture->loss_per_cpu);
	free(capture);
}

int capture__set_listeners(struct capture *capture, const target_processes *processes,
			   const target_listeners *listeners)
{
	set_netns(capture->controls, processes);
	set_ports(capture->controls, listeners);
	return set_unix_listeners(capture, listeners);
}

size_t capture__ring_bytes(const struct capture *capture)
{
	size_t words_sz = (words_mask(capture) + 1) * sizeof(uint64_t);

	return record_rings__bytes(capture->opts.ring_sz, capture->cpu_cnt) + capture->cpu_cnt * words_sz;
}
