// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/hooks.h"

#include "target/kernel.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

const struct hook hooks[] = {
#define HOOK_LINE(feature, tier, kind, program, hook, if_there) \
	{HOOK_FEATURE_##feature, tier, HOOK_##kind, #program, hook, if_there},
#define HOOK(feature, tier, kind, program, hook)          HOOK_LINE(feature, tier, kind, program, hook, false)
#define HOOK_IF_THERE(feature, tier, kind, program, hook) HOOK_LINE(feature, tier, kind, program, hook, true)
#include "capture/hook.def"
};
const size_t hook_cnt = sizeof(hooks) / sizeof(hooks[0]);
_Static_assert(sizeof(hooks) / sizeof(hooks[0]) <= sizeof(((struct hook_survey *)0)->works),
	       "survey has a place per hook");

const struct feature features[HOOK_FEATURE_CNT] = {
#define FEATURE(id, name, need, often, categories, what) {name, HOOK_NEED_##need, HOOK_##often, categories, what},
#include "capture/hook.def"
};

const char *hook_kind_name(enum hook_kind kind)
{
	static const char *const names[] = {
		[HOOK_TP_BTF] = "tp_btf",       [HOOK_RAW_TP] = "raw_tp",
		[HOOK_ITER] = "iter",           [HOOK_FENTRY] = "fentry",
		[HOOK_FEXIT] = "fexit",         [HOOK_KPROBE] = "kprobe",
		[HOOK_KRETPROBE] = "kretprobe", [HOOK_PERF_MINOR] = "perf",
		[HOOK_PERF_MAJOR] = "perf",     [HOOK_UPROBE_MULTI] = "uprobe_multi",
		[HOOK_UPROBE] = "uprobe",       [HOOK_PERF_CLOCK] = "perf",
	};

	return names[kind];
}

void hook_tier_name(enum hook_feature feature, uint32_t tier, char *text, size_t sz)
{
	if (sz)
		*text = '\0';
	for (size_t i = 0; i < hook_cnt; i++) {
		const char *name = hook_kind_name(hooks[i].kind);
		size_t len = strlen(text);

		if (hooks[i].feature == feature && hooks[i].tier == tier && !hooks[i].if_there && !strstr(text, name))
			snprintf(text + len, sz - len, "%s%s", len ? "+" : "", name);
	}
}

bool hook_feature_wanted(enum hook_feature feature, struct hook_purpose purpose)
{
	switch (features[feature].need) {
	case HOOK_NEED_SOCKETS:
	case HOOK_NEED_SOCKETS_WANTED:
		return purpose.sockets;
	case HOOK_NEED_PROBES:
		return purpose.probes;
	case HOOK_NEED_TRACE:
		return purpose.trace;
	case HOOK_NEED_STACKS:
		return purpose.stacks;
	case HOOK_NEED_GOROUTINES:
		return purpose.goroutines;
	default:
		return true;
	}
}

bool hook_taken(const struct hook_survey *survey, size_t idx, struct hook_purpose purpose)
{
	const struct hook *hook = &hooks[idx];

	return hook->tier == survey->tier[hook->feature] && hook_feature_wanted(hook->feature, purpose) &&
	       (survey->works[idx] || !hook->if_there);
}

/* r0 = 0; exit */
static const struct bpf_insn empty_program[] = {
	{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
	{.code = BPF_JMP | BPF_EXIT},
};

static const char *tp_btf_missing(const struct btf *btf, const char *name)
{
	char type[128];

	snprintf(type, sizeof(type), "btf_trace_%s", name);
	return btf__find_by_name_kind(btf, type, BTF_KIND_TYPEDEF) > 0 ? NULL : "this kernel has no such tracepoint";
}

/* A trampoline on the function, attached for a moment: some kernels load such programs and refuse to attach them. */
static const char *trampoline_missing(const struct btf *btf, const char *function, enum bpf_attach_type attach_type)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = attach_type);
	int prog_fd, link_fd, id = btf__find_by_name_kind(btf, function, BTF_KIND_FUNC);

	if (id < 0)
		return "this kernel has no such function";
	opts.attach_btf_id = id;
	prog_fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, "wl_try", "GPL", empty_program, 2, &opts);
	if (prog_fd < 0)
		return "this kernel refuses to load fentry/fexit programs";
	link_fd = bpf_raw_tracepoint_open(NULL, prog_fd);
	close(prog_fd);
	if (link_fd < 0)
		return "this kernel refuses to attach fentry/fexit programs";
	close(link_fd);
	return NULL;
}

/*
 * May this process have a probe by way of perf?  Asked for one that cannot be, the kernel looks at the privilege first.
 * CAP_PERFMON is not always enough: see whylate-doctor(1).
 */
static const char *perf_probe_missing(const char *pmu, const char *nowhere, const char *none, const char *refused)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .config1 = (uint64_t)(uintptr_t)nowhere};
	FILE *file;
	char path[64];
	int fd, err;

	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type", pmu);
	file = fopen(path, "re");
	if (!file)
		return none;
	err = fscanf(file, "%u", &attr.type) != 1;
	fclose(file);
	if (err)
		return none;
	fd = syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	err = -errno;
	if (fd >= 0)
		close(fd);
	return fd < 0 && (err == -EACCES || err == -EPERM) ? refused : NULL;
}

static const char *kprobe_missing(const struct btf *btf, const char *function)
{
	if (btf__find_by_name_kind(btf, function, BTF_KIND_FUNC) < 0)
		return "this kernel has no such function";
	return perf_probe_missing(
		"kprobe", "whylate_no_such_function", "this kernel has no kprobes",
		"kprobes are refused: they take CAP_PERFMON and kernel.perf_event_paranoid below 3, or "
		"CAP_SYS_ADMIN");
}

static const char *software_event_missing(uint64_t config)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = config, .sample_period = 1};
	int fd = syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return errno == EACCES || errno == EPERM ? "perf events are refused: they take CAP_PERFMON and "
							   "kernel.perf_event_paranoid below 3, or CAP_SYS_ADMIN"
							 : "this kernel has no such perf event";
	close(fd);
	return NULL;
}

/* The kernel looks at the path of a uprobe_multi link before anything else: "/" is no file, which an older kernel never
 * finds out because it does not know the link type. */
static const char *uprobe_multi_missing(void)
{
	LIBBPF_OPTS(bpf_prog_load_opts, load_opts, .expected_attach_type = BPF_TRACE_UPROBE_MULTI);
	LIBBPF_OPTS(bpf_link_create_opts, link_opts);
	unsigned long offset = 0;
	int prog_fd, link_fd, err;

	prog_fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "wl_try", "GPL", empty_program, 2, &load_opts);
	if (prog_fd < 0)
		return "this kernel has no uprobe_multi";
	link_opts.uprobe_multi.path = "/";
	link_opts.uprobe_multi.offsets = &offset;
	link_opts.uprobe_multi.cnt = 1;
	link_fd = bpf_link_create(prog_fd, -1, BPF_TRACE_UPROBE_MULTI, &link_opts);
	err = -errno;
	if (link_fd >= 0)
		close(link_fd);
	close(prog_fd);
	return link_fd >= 0 || err == -EBADF ? NULL : "this kernel has no uprobe_multi";
}

static const char *uprobe_missing(void)
{
	return perf_probe_missing("uprobe", "", "this kernel has no uprobes",
				  "single uprobes are refused: they take CAP_SYS_ADMIN");
}

static const char *hook_missing(const struct btf *btf, const struct hook *hook)
{
	switch (hook->kind) {
	case HOOK_TP_BTF:
	case HOOK_RAW_TP:
		return tp_btf_missing(btf, hook->hook);
	case HOOK_ITER:
		return btf__find_by_name_kind(btf, "bpf_iter_task", BTF_KIND_FUNC) > 0 ? NULL : "no task iterator";
	case HOOK_FENTRY:
		return trampoline_missing(btf, hook->hook, BPF_TRACE_FENTRY);
	case HOOK_FEXIT:
		return trampoline_missing(btf, hook->hook, BPF_TRACE_FEXIT);
	case HOOK_KPROBE:
	case HOOK_KRETPROBE:
		return kprobe_missing(btf, hook->hook);
	case HOOK_PERF_MINOR:
		return software_event_missing(PERF_COUNT_SW_PAGE_FAULTS_MIN);
	case HOOK_PERF_MAJOR:
		return software_event_missing(PERF_COUNT_SW_PAGE_FAULTS_MAJ);
	case HOOK_PERF_CLOCK:
		return software_event_missing(PERF_COUNT_SW_CPU_CLOCK);
	case HOOK_UPROBE_MULTI:
		return uprobe_multi_missing();
	case HOOK_UPROBE:
		return uprobe_missing();
	}
	return "unknown kind of hook";
}

static uint32_t task_size(const struct btf *btf)
{
	int id = btf__find_by_name_kind(btf, "task_struct", BTF_KIND_STRUCT);

	return id > 0 ? btf__type_by_id(btf, id)->size : 0;
}

/* Types of another kernel would make the programs read the wrong memory, without anybody noticing. */
static bool of_another_kernel(const struct btf *btf)
{
	struct btf *own = btf__load_vmlinux_btf();
	bool differs = own && task_size(own) != task_size(btf);

	btf__free(own);
	return differs;
}

static struct btf *load_btf(const char *path, char *why, size_t why_sz)
{
	struct btf *btf = path ? btf__parse(path, NULL) : btf__load_vmlinux_btf();
	const char *wrong = NULL;

	if (!btf) {
		snprintf(why, why_sz, "BTF of '%.128s' cannot be understood: %s", path ? path : KERNEL_BTF,
			 strerror(errno));
		return NULL;
	}
	if (!task_size(btf) || btf__find_by_name_kind(btf, "btf_trace_sched_switch", BTF_KIND_TYPEDEF) < 0)
		wrong = "is not a kernel's BTF: it does not know task_struct and sched_switch";
	else if (path && of_another_kernel(btf))
		wrong = "is the BTF of another kernel than the running one";
	if (!wrong)
		return btf;
	btf__free(btf);
	snprintf(why, why_sz, "'%.128s' %s", path ? path : KERNEL_BTF, wrong);
	errno = EINVAL;
	return NULL;
}

int hook_survey_make(struct hook_survey *survey, const char *btf_path, char *why, size_t why_sz)
{
	bool tier_works[HOOK_FEATURE_CNT][HOOK_TIER_MAX + 1] = {};
	bool tier_exists[HOOK_FEATURE_CNT][HOOK_TIER_MAX + 1] = {};
	struct btf *btf;
	int err;

	memset(survey, 0, sizeof(*survey));
	err = kernel_unfit(btf_path, why, why_sz);
	if (err)
		return err;
	btf = load_btf(btf_path, why, why_sz);
	if (!btf)
		return -errno;
	for (size_t i = 0; i < hook_cnt; i++) {
		const struct hook *hook = &hooks[i];
		const char *missing = hook_missing(btf, hook);

		survey->works[i] = !missing;
		survey->why[i] = missing;
		if (hook->if_there)
			continue;
		if (!tier_exists[hook->feature][hook->tier])
			tier_works[hook->feature][hook->tier] = tier_exists[hook->feature][hook->tier] = true;
		if (missing) {
			tier_works[hook->feature][hook->tier] = false;
			/* A reason that can be helped tells more than one that cannot. */
			if (!survey->missing[hook->feature] ||
			    (strstr(missing, "CAP_") && !strstr(survey->missing[hook->feature], "CAP_")))
				survey->missing[hook->feature] = missing;
		}
	}
	for (int feature = 0; feature < HOOK_FEATURE_CNT; feature++)
		for (uint32_t tier = HOOK_TIER_MAX; tier > 0; tier--)
			if (tier_works[feature][tier])
				survey->tier[feature] = tier;
	btf__free(btf);
	return 0;
}
