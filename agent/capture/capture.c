// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/capture.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/syscalls.h"
#include "bpf/knobs.h"
#include "capture/goroutines.h"
#include "capture/internal.h"
#include "whylate.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RING_SZ_MAX (1024 * 1024 * 1024)
/* Of words, where only intervals that are not kept go into them: for 50 ms of 100,000 a second. */
#define BRIEF_RING_SZ (256 * 1024)

/* The tier of the socket hooks that needs tables of its own. */
#define SOCKET_TIER_BY_ADDRESS 3

/* How often to look who has joined the target's cgroup, where the kernel does not tell. */
#define MOVES_NS 1000000000ULL

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

/* rate and stated, of 2^32, as the programs want them. */
static uint64_t selection(uint64_t rate, uint64_t stated)
{
	if (!rate)
		return SELECTION_NONE;
	return SELECTION(rate - 1, stated >= CAPTURE_RATE_ALL ? 0 : stated);
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

/* Does room for the first bytes follow?  Their number, which the record says, fits into it. */
static bool has_first(const struct wl_record_header *header, size_t sz, size_t want)
{
	return want && (header->kind == WL_RECORD_INTERVAL || header->kind == WL_RECORD_BRIEF) &&
	       sz >= want + WL_FIRST_MAX && header->sz == want + WL_FIRST_MAX &&
	       ((const struct wl_brief_record *)header)->first_len <= WL_FIRST_MAX;
}

static int on_record(void *owner, const void *record, size_t sz)
{
	struct capture *capture = owner;
	const struct wl_record_header *header = record;
	static const size_t sizes[WL_RECORD_KIND_CNT] = {
		[WL_RECORD_INTERVAL] = sizeof(struct wl_interval_record),
		[WL_RECORD_TASK] = sizeof(struct wl_task_record),
		[WL_RECORD_SEGMENT] = sizeof(struct wl_segment_record),
		[WL_RECORD_WAKEUP] = sizeof(struct wl_wakeup_record),
		[WL_RECORD_SOCKET] = sizeof(struct wl_socket_record),
		[WL_RECORD_BLOCK] = sizeof(struct wl_block_record),
		[WL_RECORD_TIMER] = sizeof(struct wl_timer_record),
		[WL_RECORD_INVOCATION] = sizeof(struct wl_invocation_record),
		[WL_RECORD_QUEUE] = sizeof(struct wl_queue_record),
		[WL_RECORD_BRIEF] = sizeof(struct wl_brief_record),
		[WL_RECORD_STACK] = sizeof(struct wl_stack_record),
		[WL_RECORD_STACK_WAIT] = sizeof(struct wl_stack_wait_record),
		[WL_RECORD_PYTHON] = sizeof(struct wl_python_record),
		[WL_RECORD_VALUES] =
			sizeof(struct wl_values_record) - WL_VALUE_WORDS_MAX * sizeof(struct wl_value_word),
	};
	size_t want = sz >= sizeof(*header) && header->kind < WL_RECORD_KIND_CNT ? sizes[header->kind] : 0;

	if (want && header->kind == WL_RECORD_STACK && sz >= want)
		want += ((const struct wl_stack_record *)header)->stack_sz;
	if (want && header->kind == WL_RECORD_VALUES && sz >= want)
		want += ((const struct wl_values_record *)header)->cnt * sizeof(struct wl_value_word);
	if (has_first(header, sz, want))
		want += WL_FIRST_MAX;

	capture->handled++;
	if (!want || sz < want || header->sz != want)
		return -EBADMSG;
	return capture->handle(capture->owner, header);
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
					  capture->skel->maps.value_globals, capture->skel->maps.value_images};
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
		log_error("cannot load the BPF programs: %s (-v shows the kernel's reasons)", strerror(-err));
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
	vec_free(&capture->links);
	vec_free(&capture->window_links);
	vec_free(&capture->event_fds);
	probes__free(capture->probes);
	goroutines__free(capture->goroutines);
	vec_free(&capture->stack_links);
	vec_free(&capture->stack_fds);
	hwcounters__free(capture->hw);
	whylate_bpf__destroy(capture->skel);
	free(capture->loss_per_cpu);
	free(capture);
}

static void window_begins(struct capture *capture, bool endless)
{
	capture->window_open_ns = monotonic_ns();
	capture->endless = endless;
}

/*
 * While only some hooks are attached, an arrival whose reading nobody saw would pass for the next request's, and make
 * it late.  So what was noted down meanwhile is of a window that is over; nothing is selected before capture__select().
 */
int capture__start(struct capture *capture)
{
	struct controls *controls = capture->controls;
	bool watching = capture->opts.watch_first;
	int err;

	if (capture->opts.windows)
		capture__measure_way(capture);
	err = capture__attach(capture);
	if (!err && watching) {
		window_begins(capture, true);
		capture->started_ns = capture->window_open_ns;
		err = capture__attach_window(capture);
	}
	if (!err)
		err = capture__adopt_threads(capture);
	__atomic_store_n(&controls->rested, capture->opts.windows && !watching, __ATOMIC_SEQ_CST);
	__atomic_store_n(&controls->watching, !err && watching, __ATOMIC_SEQ_CST);
	__atomic_store_n(&controls->window, controls->window + 1, __ATOMIC_SEQ_CST);
	return !err && watching ? capture__adopt_threads(capture) : err;
}

int capture__follow_moved(struct capture *capture)
{
	bool is_told = capture->survey.tier[HOOK_FEATURE_CGROUP];
	uint32_t moves = __atomic_load_n(&capture->controls->cgroup_moves, __ATOMIC_RELAXED);
	uint64_t now = monotonic_ns();
	int err;

	if (!capture->opts.cgroup || (is_told ? moves == capture->moves_seen : now < capture->moves_ts))
		return 0;
	capture->moves_seen = moves;
	capture->moves_ts = now + MOVES_NS;
	err = capture__adopt_threads(capture);
	return err ? err : 1;
}

void capture__select(struct capture *capture)
{
	if (!capture->opts.windows)
		capture__set_rate(capture, capture->opts.rate);
}

/* Before the hooks are detached: what is open now never ends. */
static uint64_t censor(struct capture *capture)
{
	struct controls *controls = capture->controls;
	int opens = bpf_map__fd(capture->skel->maps.opens);
	void *value = malloc(bpf_map__value_size(capture->skel->maps.opens));
	uint64_t now = monotonic_ns(), cnt = controls->expected;
	struct open_head *open = value;
	uint32_t place = 0;

	capture->censored.weight += (double)controls->expected_weight / (double)WEIGHT_ONE;
	for (; value && open_table__next(capture->open_table, &place); place++) {
		uint64_t age_ns = 0;

		if (!bpf_map_lookup_elem(opens, &place, value)) {
			age_ns = now > open->begin_ts ? now - open->begin_ts : 0;
			capture->censored.weight += (double)WEIGHT_OF((uint64_t)open->rate) / (double)WEIGHT_ONE;
			cnt++;
		}
		if (age_ns > capture->censored.longest_ns)
			capture->censored.longest_ns = age_ns;
		open_table__drop(capture->open_table, place);
	}
	free(value);
	capture->censored.cnt += cnt;
	return cnt;
}

void capture__censored(const struct capture *capture, struct capture_censored *censored)
{
	*censored = capture->censored;
}

static void end_window(struct capture *capture)
{
	capture__window_drain(capture);
	__atomic_store_n(&capture->controls->rested, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&capture->controls->watching, 0, __ATOMIC_SEQ_CST);
	capture__detach_window(capture);
	capture__cost_window_end(capture);
	capture->windows_ns += monotonic_ns() - capture->window_open_ns;
	capture->window_open_ns = 0;
}

void capture__stop(struct capture *capture)
{
	if (capture->stopped)
		return;
	capture__cost_stop(capture);
	capture__window_drain(capture);
	censor(capture);
	if (capture->window_open_ns)
		end_window(capture);
	capture->stopped = true;
	capture__detach(capture);
}

/* In trace mode several CPUs may wake the reader one after the other: without a rest, each for a part of a ring. */
#define REST_MS 5

static void rest(const struct capture *capture, int *timeout_ms)
{
	struct timespec pause = {.tv_nsec = REST_MS * 1000000};

	if (!capture->opts.trace || *timeout_ms <= REST_MS)
		return;
	nanosleep(&pause, NULL);
	*timeout_ms -= REST_MS;
}

int capture__poll(struct capture *capture, int timeout_ms, capture_handler handle, void *owner)
{
	uint64_t polled_ts;
	int err;

	capture->handle = handle;
	capture->owner = owner;
	capture->handled = 0;
	if (timeout_ms) {
		rest(capture, &timeout_ms);
		err = record_rings__wait(capture->record_rings, timeout_ms);
		if (err)
			return err;
	}
	/* The kernel side does not wake for every record: whatever is there is taken now. */
	polled_ts = monotonic_ns();
	err = record_rings__read(capture->record_rings, on_record, capture);
	if (!err)
		err = word_rings__read(capture->word_rings, handle, owner, &capture->handled);
	if (err < 0)
		return err;
	capture->polled_ts = polled_ts;
	probes__watch(capture);
	return capture->handled;
}

uint64_t capture__polled_ts(const struct capture *capture)
{
	return capture->polled_ts;
}

double capture__backlog(const struct capture *capture)
{
	double records = record_rings__backlog(capture->record_rings);
	double words = word_rings__backlog(capture->word_rings);

	return records > words ? records : words;
}

uint64_t capture__lost_mark(const struct capture *capture)
{
	return __atomic_load_n(&capture->controls->lost_mark, __ATOMIC_RELAXED);
}

size_t capture__ring_bytes(const struct capture *capture)
{
	size_t words_sz = (words_mask(capture) + 1) * sizeof(uint64_t);

	return record_rings__bytes(capture->opts.ring_sz, capture->cpu_cnt) + capture->cpu_cnt * words_sz;
}

void capture__set_rate(struct capture *capture, uint64_t rate)
{
	capture->rate = rate;
	__atomic_store_n(&capture->controls->selection, selection(rate, rate), __ATOMIC_RELAXED);
}

void capture__retain(struct capture *capture, uint64_t late_ns, uint64_t chance)
{
	__atomic_store_n(&capture->controls->keep_chance, chance, __ATOMIC_RELAXED);
	__atomic_store_n(&capture->controls->late_ns, late_ns, __ATOMIC_RELAXED);
}

uint64_t capture__rate(const struct capture *capture)
{
	return capture->rate;
}

int capture__set_listeners(struct capture *capture, const target_processes *processes,
			   const target_listeners *listeners)
{
	set_netns(capture->controls, processes);
	set_ports(capture->controls, listeners);
	return set_unix_listeners(capture, listeners);
}

/* What the first ones cost is measured, so that a short recording has a figure, and of the others one of so many. */
#define WINDOWS_MEASURED            4
#define WINDOW_MEASURED_OF          16
#define WINDOW_MEASURED_OF_GOVERNED 4

/* Who waited for whom when the last window closed. */
static void forget_owed(struct capture *capture)
{
	int owed = bpf_map__fd(capture->skel->maps.owed);
	uint32_t tid;

	if (!capture->controls->owed_cnt)
		return;
	while (!bpf_map_get_next_key(owed, NULL, &tid) && !bpf_map_delete_elem(owed, &tid))
		;
	capture->controls->owed_cnt = 0;
}

int capture__window_open(struct capture *capture, bool endless)
{
	uint64_t of = capture->opts.watch_first ? WINDOW_MEASURED_OF_GOVERNED : WINDOW_MEASURED_OF;
	struct controls *controls = capture->controls;
	int err;

	controls->expected = controls->waiting = controls->held_cnt = 0;
	controls->expected_weight = 0;
	forget_owed(capture);
	__atomic_store_n(&controls->window, controls->window + 1, __ATOMIC_SEQ_CST);
	capture__cost_window(capture, capture->window_cnt < WINDOWS_MEASURED || capture->window_cnt % of == 0);
	capture->window_cnt++;
	window_begins(capture, endless);
	err = capture__attach_window(capture);
	/* What the first hooks saw while others were missing is of a window that is over. */
	__atomic_store_n(&controls->window, controls->window + 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&controls->watching, !err, __ATOMIC_SEQ_CST);
	/* A segment needs a beginning, and a thread that waits meets no hook until it is woken. */
	return !err && capture->opts.trace ? capture__adopt_threads(capture) : err;
}

void capture__window_select(struct capture *capture, uint64_t rate, uint64_t stated, uint64_t begin_ts, uint64_t end_ts)
{
	capture->endless = !end_ts;
	__atomic_store_n(&capture->controls->select_begin_ts, begin_ts, __ATOMIC_SEQ_CST);
	__atomic_store_n(&capture->controls->select_end_ts, end_ts, __ATOMIC_SEQ_CST);
	__atomic_store_n(&capture->controls->selection, selection(rate, stated), __ATOMIC_RELAXED);
}

void capture__window_drain(struct capture *capture)
{
	__atomic_store_n(&capture->controls->selection, SELECTION_NONE, __ATOMIC_RELAXED);
}

/* An acknowledgement is delayed by 200 ms at most, and a client that never goes on has no other end. */
#define HELD_WAIT_NS 250000000ULL

bool capture__window_is_drained(struct capture *capture)
{
	const struct controls *controls = capture->controls;
	uint32_t place = 0;

	if (__atomic_load_n(&controls->expected, __ATOMIC_RELAXED))
		return false;
	if (__atomic_load_n(&controls->held_cnt, __ATOMIC_RELAXED) &&
	    monotonic_ns() < controls->select_end_ts + HELD_WAIT_NS)
		return false;
	return !open_table__next(capture->open_table, &place);
}

void capture__window_close(struct capture *capture)
{
	if (!capture->window_open_ns)
		return;
	capture__window_drain(capture);
	capture->cut_cnt += censor(capture);
	end_window(capture);
}

/* Of the intervals that began by a key and have not ended by it, those that made room for others. */
static uint64_t evicted_intervals(struct capture *capture, uint64_t keyed)
{
	int fd = bpf_map__fd(capture->skel->maps.keyed_intervals);
	char key[64], *last = NULL;
	uint64_t open_cnt = 0;

	while (!bpf_map_get_next_key(fd, last, key)) {
		last = key;
		open_cnt++;
	}
	return keyed > open_cnt ? keyed - open_cnt : 0;
}

uint64_t capture__load(struct capture *capture)
{
	struct cpu_context *cpus = calloc(capture->cpu_cnt, sizeof(*cpus));
	uint64_t load = 0;
	uint32_t key = 0;

	if (cpus && !bpf_map_lookup_elem(bpf_map__fd(capture->skel->maps.cpus), &key, cpus))
		for (uint32_t cpu = 0; cpu < capture->cpu_cnt; cpu++)
			load += cpus[cpu].seen + cpus[cpu].switch_cnt;
	free(cpus);
	return load;
}

double capture__way_ns(const struct capture *capture)
{
	return capture->way_ns;
}

void capture__counts(struct capture *capture, struct capture_counts *counts)
{
	struct cpu_context *cpus = calloc(capture->cpu_cnt, sizeof(*cpus));
	uint64_t keyed = 0;
	uint32_t key = 0;

	memset(counts, 0, sizeof(*counts));
	if (!cpus)
		return;
	if (!bpf_map_lookup_elem(bpf_map__fd(capture->skel->maps.cpus), &key, cpus)) {
		for (uint32_t cpu = 0; cpu < capture->cpu_cnt; cpu++) {
			counts->seen += cpus[cpu].seen;
			counts->selected += cpus[cpu].selected;
			counts->abandoned += cpus[cpu].abandoned;
			counts->asks += cpus[cpu].asks;
			counts->asks_unsure += cpus[cpu].asks_unsure;
			counts->unreadable += cpus[cpu].unreadable;
			keyed += cpus[cpu].keyed;
			counts->replies += cpus[cpu].replies;
			counts->held_by_window += cpus[cpu].window_cnt;
			for (int class = 0; class < HELD_BUCKETS; class ++)
				counts->held[class].cnt += cpus[cpu].held[class];
			word_rings__add_emitted(capture->word_rings, cpu, cpus[cpu].loss);
			for (int class = 0; class < WL_LOSS_CNT; class ++) {
				counts->loss[class].emitted += cpus[cpu].loss[class].emitted;
				counts->loss[class].lost += cpus[cpu].loss[class].lost;
				capture->loss_per_cpu[cpu * WL_LOSS_CNT + class] = cpus[cpu].loss[class];
			}
		}
	}
	free(cpus);
	/* The middle of a quarter of an octave. */
	for (int class = 0; class < HELD_BUCKETS; class ++)
		counts->held[class].ns = (9 + 2 * (class % 4)) * ((1ULL << HELD_OCTAVE << class / 4) / 8);
	if (keyed && capture->stopped)
		counts->abandoned += evicted_intervals(capture, keyed);
	counts->loss[WL_LOSS_MISSED_RUN].lost = capture__missed_runs(capture);
	capture->loss_per_cpu[WL_LOSS_MISSED_RUN].lost = counts->loss[WL_LOSS_MISSED_RUN].lost;
	capture->loss_per_cpu[WL_LOSS_CUT].lost = counts->loss[WL_LOSS_CUT].lost = capture->cut_cnt;
}

const struct wl_loss_count *capture__loss_per_cpu(struct capture *capture, uint32_t *cpu_cnt)
{
	struct capture_counts counts;

	capture__counts(capture, &counts);
	*cpu_cnt = capture->cpu_cnt;
	return capture->loss_per_cpu;
}

const struct hook_survey *capture__survey(const struct capture *capture)
{
	return &capture->survey;
}

bool capture__has_hw(const struct capture *capture)
{
	return capture->hw != NULL;
}

int capture__hw_counter(const struct capture *capture, uint32_t epoch, uint32_t slot)
{
	return capture->hw ? hwcounters__slot(capture->hw, epoch, slot) : -1;
}

uint32_t capture__hw_rotations(const struct capture *capture, uint32_t *epoch_cnt)
{
	*epoch_cnt = capture->controls->hw_epoch / 2 + 1;
	return capture->hw ? hwcounters__rotation_cnt(capture->hw) : 0;
}

int capture__rotate_hw(struct capture *capture)
{
	uint32_t epoch;
	int err;

	if (!capture->hw || hwcounters__rotation_cnt(capture->hw) < 2)
		return 0;
	epoch = capture->controls->hw_epoch;
	__atomic_store_n(&capture->controls->hw_epoch, epoch + 1, __ATOMIC_SEQ_CST);
	err = hwcounters__install(capture->hw, bpf_map__fd(capture->skel->maps.hw_events), epoch + 2);
	capture->controls->hw_slots = hwcounters__slot_cnt(capture->hw, epoch + 2);
	__atomic_store_n(&capture->controls->hw_epoch, epoch + 2, __ATOMIC_SEQ_CST);
	return err;
}
