// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/go_runtime.h"

#include "base/names.h"
#include "base/order.h"
#include "target/elf_reader.h"
#include "target/proc_file.h"
#include "target/symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Goroutines that are looked at. */
#define SAMPLE_MAX 64
/* The highest of the runtime's states of a goroutine, and the bit of a scan. */
#define STATUS_MAX  10
#define STATUS_SCAN 0x1000

struct go_runtime {
	struct elf_image *image;
	int fd;
	struct elf_rows functions; /* by address, see go_table.h */
	uint64_t bias;
	uint64_t sites[GO_SITE_CNT];
	struct go_layout layout;
	bool by_dwarf;
};

/* --- version ------------------------------------------------------------------------------------------------------ */

/* 19 of "go1.19.8"; -1: none that was released. */
static int minor_of(const char *version)
{
	int minor, end = 0;

	if (sscanf(version, "go1.%3d%n", &minor, &end) != 1 || minor < 0 || (version[end] && version[end] != '.'))
		return -1;
	return minor;
}

/* The runtime's reasons for a wait as they are numbered from 1.18 on, those of mutexes since 1.20. */
static const char *const reasons[] = {
	"",
	"GC assist marking",
	"IO wait",
	"chan receive (nil chan)",
	"chan send (nil chan)",
	"dumping heap",
	"garbage collection",
	"garbage collection scan",
	"panicwait",
	"select",
	"select (no cases)",
	"GC assist wait",
	"GC sweep wait",
	"GC scavenge wait",
	"chan receive",
	"chan send",
	"finalizer wait",
	"force gc (idle)",
	"semacquire",
	"sleep",
	"sync.Cond.Wait",
	"sync.Mutex.Lock",
	"sync.RWMutex.RLock",
	"sync.RWMutex.Lock",
};
#define REASONS_1_18 21

/* As a program that go1.26.4 has built numbers them. */
static const char *const reasons_1_26[] = {
	"",
	"GC assist marking",
	"IO wait",
	"dumping heap",
	"garbage collection",
	"garbage collection scan",
	"panicwait",
	"GC assist wait",
	"GC sweep wait",
	"GC scavenge wait",
	"finalizer wait",
	"force gc (idle)",
	"GOMAXPROCS updater (idle)",
	"semacquire",
	"sleep",
	"chan receive (nil chan)",
	"chan send (nil chan)",
	"select (no cases)",
	"select",
	"chan receive",
	"chan send",
	"sync.Cond.Wait",
	"sync.Mutex.Lock",
	"sync.RWMutex.RLock",
	"sync.RWMutex.Lock",
};

static uint8_t wait_of(const char *reason)
{
	for (uint8_t i = 0; i < WL_GO_WAIT_CNT; i++)
		if (!strcmp(go_wait_text(WL_GO_WAIT | i), reason))
			return i;
	return WL_GO_WAIT_OTHER;
}

static void take_reasons(struct go_layout *layout, const char *const *names, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		layout->waits[i] = wait_of(names[i]);
}

#define KNOWN_VERSIONS "go1.18 to go1.24, and go1.26"

/* struct g as these versions have it: syscallbp came in 1.23, and the saved registers are one fewer in 1.26. */
int go_layout_by_version(const char *version, struct go_layout *layout)
{
	int minor = minor_of(version);
	uint32_t more = minor == 23 || minor == 24 ? 8 : 0;

	if (minor < 18 || minor == 25 || minor > 26)
		return -ENOTSUP;
	memset(layout, 0, sizeof(*layout));
	layout->status = 144 + more;
	layout->goid = 152 + more;
	layout->wait_reason = 176 + more;
	layout->start_pc = GO_NO_OFF;
	layout->sched = 56;
	layout->sched_sz = minor < 26 ? 56 : 48;
	if (minor == 26)
		take_reasons(layout, reasons_1_26, sizeof(reasons_1_26) / sizeof(reasons_1_26[0]));
	else
		take_reasons(layout, reasons, minor < 20 ? REASONS_1_18 : sizeof(reasons) / sizeof(reasons[0]));
	return 0;
}

/* --- functions ---------------------------------------------------------------------------------------------------- */

static int read_functions(struct go_runtime *go, const char **why)
{
	const struct elf_read read = {.fd = go->fd, .what = ELF_READ_GO};
	int err = elf_reader_read(&read, &go->functions);

	if (err == -ENODATA)
		*why = "whylate-symbols cannot read its table of functions";
	if (!err && !go->functions.head.go_version[0])
		err = -ENOTSUP;
	return err && err != -ENOMEM ? -ENOTSUP : err;
}

static const char *name_of(const struct go_runtime *go, const struct elf_row *function)
{
	return go->functions.names.items + function->name_off;
}

/* NULL: there is none. */
static const struct elf_row *find_function(const struct go_runtime *go, const char *name)
{
	for (size_t i = 0; i < go->functions.addressed.cnt; i++)
		if (!strcmp(name_of(go, &go->functions.addressed.items[i]), name))
			return &go->functions.addressed.items[i];
	return NULL;
}

/* NULL: none is there. */
static const struct elf_row *function_at(const struct go_runtime *go, uint64_t addr)
{
	const struct elf_row *functions = go->functions.addressed.items;
	size_t at = search_first(0, go->functions.addressed.cnt, mid, functions[mid].addr > addr);

	return at && (!functions[at - 1].size || addr - functions[at - 1].addr < functions[at - 1].size)
		       ? &functions[at - 1]
		       : NULL;
}

/*
 * A function asks whether its stack suffices, and the kernel emulates the jump of that question:
 *   cmp 0x10(%r14),%rsp; jbe …        lea -N(%rsp),%r12; cmp 0x10(%r14),%r12; jbe …
 */
int go_probe_off(const uint8_t *code, size_t sz)
{
	static const uint8_t small[] = {0x49, 0x3b, 0x66, 0x10}, large[] = {0x4d, 0x3b, 0x66, 0x10};
	size_t at = 0;

	if (sz >= 4 && !memcmp(code, small, sizeof(small)))
		at = sizeof(small);
	else if (sz >= 9 && code[0] == 0x4c && code[1] == 0x8d && code[2] == 0x64 && code[3] == 0x24 &&
		 !memcmp(code + 5, large, sizeof(large)))
		at = 5 + sizeof(large);
	else if (sz >= 12 && code[0] == 0x4c && code[1] == 0x8d && code[2] == 0xa4 && code[3] == 0x24 &&
		 !memcmp(code + 8, large, sizeof(large)))
		at = 8 + sizeof(large);
	if (!at || at + 2 > sz || (code[at] != 0x76 && (code[at] != 0x0f || code[at + 1] != 0x86)))
		return -1;
	return (int)at;
}

static int find_sites(struct go_runtime *go)
{
	static const char *const names[] = {"runtime.execute", "runtime.park_m", "runtime.runqput"};

	for (int i = 0; i < 3; i++) {
		const struct elf_row *function = find_function(go, names[i]);
		uint8_t code[16];
		int off;

		if (!function || elf_image__read(go->image, function->file_off, code, sizeof(code)) != sizeof(code))
			return -ENOTSUP;
		off = go_probe_off(code, sizeof(code));
		if (off < 0)
			return -ENOTSUP;
		go->sites[GO_SITE_EXECUTE + i] = function->file_off + (uint64_t)off;
	}
	return 0;
}

/* --- roles -------------------------------------------------------------------------------------------------------- */

void go_role_of(const char *function, char comm[16])
{
	const char *slash = strrchr(function, '/'), *at = slash ? slash + 1 : function, *dot = strchr(at, '.');
	size_t len = 3;

	memcpy(comm, "go:", 3);
	for (at = dot && dot[1] ? dot + 1 : at; *at && len < 15; at++)
		if (!strchr("(*)", *at))
			comm[len++] = *at >= ' ' && *at <= '~' ? *at : '?';
	comm[len] = '\0';
}

bool go_runtime__role(const struct go_runtime *go, uint64_t start_pc, char comm[16])
{
	const struct elf_row *function = start_pc > go->bias ? function_at(go, start_pc - go->bias) : NULL;

	if (function)
		go_role_of(name_of(go, function), comm);
	return function != NULL;
}

/* --- the process -------------------------------------------------------------------------------------------------- */

/* Where a thread has its pointer to the g that it runs: `runtime.tlsg`, next to the thread pointer. */
static bool find_slot(const struct elf_image *image, int32_t *slot)
{
	const struct elf_segment *segments;
	size_t cnt = elf_image__segments(image, &segments);
	struct elf_variable tlsg;
	bool known = !elf_reader_variable(elf_image__fd(image), "runtime.tlsg", STT_TLS, &tlsg);
	uint64_t value = known ? tlsg.value : 0;

	*slot = -8;
	for (size_t i = 0; i < cnt; i++) {
		uint64_t align = segments[i].align ?: 1, sz = segments[i].mem_sz;

		if (segments[i].type != PT_TLS)
			continue;
		if (align > 4096 || sz > 1 << 20 || sz < 8 || value > sz - 8 || (!known && sz != 8))
			return false;
		*slot = (int32_t)((int64_t)value - (int64_t)((sz + align - 1) / align * align));
	}
	return true;
}

/* The names of the runtime's reasons, as the process has them. */
static void read_reasons(struct go_runtime *go, int mem_fd)
{
	struct elf_variable strings;
	uint64_t text[2];
	char reason[64];

	if (elf_reader_variable(go->fd, "runtime.waitReasonStrings", STT_OBJECT, &strings))
		return;
	for (int i = 0; i < GO_REASONS_MAX; i++) {
		if (!proc_mem_read(mem_fd, go->bias + strings.value + (uint64_t)i * sizeof(text), text, sizeof(text)) ||
		    text[1] >= sizeof(reason) || (text[1] && !proc_mem_read(mem_fd, text[0], reason, text[1])))
			break;
		reason[text[1]] = '\0';
		go->layout.waits[i] = wait_of(reason);
	}
}

/*
 * Are the offsets those of the process's own goroutines?  The first one of runtime.allgs runs main() and has number 1;
 * no two have the same.
 */
static bool holds_of_process(const struct go_runtime *go, int mem_fd, bool *known)
{
	uint64_t slice[2], gs[SAMPLE_MAX], goids[SAMPLE_MAX];
	struct elf_variable allgs;
	size_t cnt;

	*known = !elf_reader_variable(go->fd, "runtime.allgs", STT_OBJECT, &allgs);
	if (!*known)
		return true;
	if (!proc_mem_read(mem_fd, go->bias + allgs.value, slice, sizeof(slice)) || !slice[1])
		return false;
	cnt = slice[1] < SAMPLE_MAX ? slice[1] : SAMPLE_MAX;
	if (!proc_mem_read(mem_fd, slice[0], gs, cnt * sizeof(*gs)))
		return false;
	for (size_t i = 0; i < cnt; i++) {
		uint32_t status;

		if (!proc_mem_read(mem_fd, gs[i] + go->layout.goid, &goids[i], sizeof(goids[i])) ||
		    !proc_mem_read(mem_fd, gs[i] + go->layout.status, &status, sizeof(status)))
			return false;
		if ((status & ~STATUS_SCAN) > STATUS_MAX || goids[i] > 1ULL << 48 || (!i && goids[i] != 1))
			return false;
		for (size_t j = 0; goids[i] && j < i; j++)
			if (goids[j] == goids[i])
				return false;
	}
	return true;
}

static const char other_version[] = "its version of Go is not known";

static int find_layout(struct go_runtime *go, const char **why)
{
	struct elf_variable sched;
	uint32_t stopping_off;
	int err = symbols_go_layout(go->fd, &go->layout, &stopping_off);

	go->by_dwarf = !err;
	*why = "what its debugging information says of goroutines cannot be";
	if (err == -EBADMSG)
		return -ENOTSUP;
	*why = other_version;
	if (err) {
		if (go_layout_by_version(go->functions.head.go_version, &go->layout))
			return -ENOTSUP;
	} else if (go->layout.stopping_sz && !elf_reader_variable(go->fd, "runtime.sched", STT_OBJECT, &sched)) {
		go->layout.stopping = go->bias + sched.value + stopping_off;
	}
	*why = "where its threads keep the running goroutine is not known";
	return find_slot(go->image, &go->layout.slot) ? 0 : -ENOTSUP;
}

static int read_process(struct go_runtime *go, pid_t pid, const char **why)
{
	int mem_fd = proc_mem_open(pid), err;
	bool known;

	if (mem_fd < 0)
		return mem_fd;
	err = find_layout(go, why);
	if (!err && go->by_dwarf)
		read_reasons(go, mem_fd);
	if (!err && !holds_of_process(go, mem_fd, &known)) {
		*why = go->by_dwarf ? "what its debugging information says of goroutines is not true of the process"
				    : "its goroutines are not as in its version of Go";
		err = -ENOTSUP;
	}
	close(mem_fd);
	return err;
}

static int open_program(struct go_runtime *go, pid_t pid, const target_mappings *mappings)
{
	for (size_t i = 0; i < mappings->cnt; i++) {
		const struct target_mapping *mapping = &mappings->items[i];
		char path[PATH_MAX];

		if (!mapping->exec || mapping->path[0] != '/')
			continue;
		if (target_mapping_file(pid, mapping, path, sizeof(path)))
			return -ENOENT;
		go->image = elf_image__open(path);
		go->fd = open(path, O_RDONLY | O_CLOEXEC);
		if (!go->image || go->fd < 0)
			return errno == ENOMEM ? -ENOMEM : -ENOENT;
		/* Its first code is the program's own. */
		return elf_image__section(go->image, ".go.buildinfo") &&
				       elf_image__bias(go->image, mapping->start, mapping->end, mapping->file_off,
						       &go->bias)
			       ? 0
			       : -ENOENT;
	}
	return -ENOENT;
}

static int read_program(struct go_runtime *go, pid_t pid, const target_mappings *mappings, const char **why)
{
#if defined(__x86_64__)
	const bool on_x86 = true;
#else
	const bool on_x86 = false;
#endif
	int err = open_program(go, pid, mappings);

	if (err)
		return err;
	*why = "on this architecture they are not known";
	if (!on_x86)
		return -ENOTSUP;
	*why = "it was built by a version of Go before 1.18, or one that is not known";
	err = read_functions(go, why);
	if (err)
		return err;
	*why = "its runtime has another scheduler than is known";
	err = find_sites(go);
	return err ? err : read_process(go, pid, why);
}

int go_runtime__open(pid_t pid, const target_mappings *mappings, struct go_runtime **go, char why[GO_WHY_SZ])
{
	struct go_runtime *made = calloc(1, sizeof(*made));
	const char *text = "";
	int err;

	*go = NULL;
	why[0] = '\0';
	if (!made)
		return -ENOMEM;
	made->fd = -1;
	err = read_program(made, pid, mappings, &text);
	if (!err) {
		*go = made;
		return 0;
	}
	if (text == other_version)
		snprintf(why, GO_WHY_SZ,
			 "it has no debugging information and was built by %s; without it, " KNOWN_VERSIONS
			 " are known",
			 made->functions.head.go_version);
	else
		snprintf(why, GO_WHY_SZ, "%s", text);
	go_runtime__free(made);
	return err;
}

void go_runtime__free(struct go_runtime *go)
{
	if (!go)
		return;
	elf_rows_free(&go->functions);
	elf_image__free(go->image);
	if (go->fd >= 0)
		close(go->fd);
	free(go);
}

const struct go_layout *go_runtime__layout(const struct go_runtime *go)
{
	return &go->layout;
}

uint64_t go_runtime__site(const struct go_runtime *go, enum go_site site)
{
	return go->sites[site];
}

int go_runtime__fd(const struct go_runtime *go)
{
	return go->fd;
}

const char *go_runtime__version(const struct go_runtime *go)
{
	return go->functions.head.go_version;
}

bool go_runtime__by_dwarf(const struct go_runtime *go)
{
	return go->by_dwarf;
}
