// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Probes in the scheduler of Go programs, attached and detached with the hooks of windows: three places a process, in
 * one link.  The process that attaches probes holds it (attacher.h), so that a killed agent leaves no breakpoint.
 */
#include "capture/goroutines.h"
#include "base/log.h"
#include "bpf/go_layout.h"
#include "capture/attacher.h"
#include "capture/internal.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How long the end of a capture waits for breakpoints to be taken out. */
#define PATIENCE_NS 500000000ULL

struct go_process {
	pid_t pid;
	int fd;
	struct attach_site sites[GO_SITE_CNT - GO_SITE_EXECUTE];
	uint32_t group; /* of its link; 0: it is not attached */
};

struct goroutines {
	struct attacher *attacher;
	bool multi;
	int layouts_fd;
	uint32_t last_group;
	VEC(struct go_process) processes;
};

static struct goroutines *goroutines__new(bool multi)
{
	struct goroutines *goroutines = calloc(1, sizeof(*goroutines));

	if (!goroutines)
		return NULL;
	goroutines->multi = multi;
	goroutines->layouts_fd = -1;
	goroutines->attacher = attacher__new(multi);
	if (goroutines->attacher)
		return goroutines;
	free(goroutines);
	return NULL;
}

int goroutines__open(struct capture *capture)
{
	uint32_t tier = capture->survey.tier[HOOK_FEATURE_GOROUTINE];
	int err;

	capture->opts.goroutines &= tier != 0;
	if (!capture->opts.goroutines)
		return 0;
	capture->goroutines = goroutines__new(tier == 1);
	if (capture->goroutines)
		return 0;
	err = -errno;
	log_error("cannot start the process that attaches probes: %s", strerror(-err));
	return err;
}

int goroutines__shrink(struct bpf_map *goroutines, struct bpf_map *layouts)
{
	return bpf_map__set_max_entries(goroutines, 1) || bpf_map__set_max_entries(layouts, 1) ? -errno : 0;
}

void goroutines__set_table(struct goroutines *goroutines, int layouts_fd)
{
	goroutines->layouts_fd = layouts_fd;
}

void goroutines__free(struct goroutines *goroutines)
{
	if (!goroutines)
		return;
	attacher__free(goroutines->attacher, PATIENCE_NS);
	vec_free(&goroutines->processes);
	free(goroutines);
}

int capture__add_goroutines(struct capture *capture, pid_t pid, int program_fd, const struct go_layout *layout,
			    const uint64_t *site_offs)
{
	struct goroutines *goroutines = capture->goroutines;
	struct go_process process = {.pid = pid, .fd = program_fd};
	uint32_t key = (uint32_t)pid;

	if (!goroutines)
		return -EINVAL;
	for (int site = GO_SITE_EXECUTE; site < GO_SITE_CNT; site++)
		process.sites[site - GO_SITE_EXECUTE] =
			(struct attach_site){.file_off = site_offs[site], .cookie = (uint64_t)site};
	if (bpf_map_update_elem(goroutines->layouts_fd, &key, layout, BPF_ANY))
		return -errno;
	return vec_push(&goroutines->processes, process);
}

static int attach(struct capture *capture, struct go_process *process)
{
	struct goroutines *goroutines = capture->goroutines;
	const char *name = goroutines->multi ? "on_goroutine_multi" : "on_goroutine";
	const struct attach_sites sites = {
		.group = ++goroutines->last_group,
		.part = ATTACH_LIBRARY,
		.pid = process->pid,
		.program_fd = bpf_program__fd(bpf_object__find_program_by_name(capture->object, name)),
		.file_fd = process->fd,
		.multi = goroutines->multi,
		.sites = process->sites,
		.cnt = sizeof(process->sites) / sizeof(process->sites[0]),
	};
	size_t refused;
	int err = attacher__attach(goroutines->attacher, &sites, &refused);

	if (!err)
		process->group = sites.group;
	/* It has ended: there is nothing more to see of it. */
	return err == -ESRCH ? 0 : err;
}

void goroutines__detach(struct capture *capture)
{
	struct goroutines *goroutines = capture->goroutines;

	for (size_t i = 0; goroutines && i < goroutines->processes.cnt; i++) {
		struct go_process *process = &goroutines->processes.items[i];

		if (process->group)
			attacher__close(goroutines->attacher, process->group, ATTACH_ALL, 0);
		process->group = 0;
	}
}

int goroutines__attach(struct capture *capture)
{
	struct goroutines *goroutines = capture->goroutines;
	int err = 0;

	for (size_t i = 0; goroutines && !err && i < goroutines->processes.cnt; i++) {
		err = attach(capture, &goroutines->processes.items[i]);
		if (err == -EOWNERDEAD)
			log_error("cannot follow the goroutines of process %d: the process that attaches probes "
				  "(whylate-attach) was killed",
				  goroutines->processes.items[i].pid);
		else if (err)
			log_error("cannot follow the goroutines of process %d: probes in its scheduler are refused: "
				  "%s; --no-goroutines follows its threads",
				  goroutines->processes.items[i].pid, strerror(-err));
	}
	if (err)
		goroutines__detach(capture);
	return err;
}
