// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Intervals by the markers of whylate/annotate.h, when no symbol list says otherwise: they become the lines that
 * somebody would write for them.
 */
#include "session/recording.h"

#include "base/log.h"
#include "probe/usdt.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARKERS_NAME "the program's markers"

struct markers {
	bool begin, work, end;
};

/* A file that cannot be read has none. */
static void look_into(const char *file, struct markers *markers)
{
	usdt_sites sites = {0};

	if (usdt_sites_read(file, &sites))
		return;
	for (size_t i = 0; i < sites.cnt; i++) {
		const struct usdt_site *site = &sites.items[i];

		if (strcmp(site->provider, "whylate"))
			continue;
		markers->begin |= !strcmp(site->name, "begin");
		markers->work |= !strcmp(site->name, "work");
		markers->end |= !strcmp(site->name, "end");
	}
	usdt_sites_free(&sites);
}

/* Its symbols are not read for that: most programs have no markers. */
static void look_into_process(pid_t pid, struct markers *markers)
{
	target_mappings mappings = {0};
	struct stat program = {0};
	char file[PATH_MAX];

	/* Its own link opens the executable also where map_files is closed to us. */
	snprintf(file, sizeof(file), "/proc/%d/exe", pid);
	if (!stat(file, &program))
		look_into(file, markers);
	if (target_mappings_read(pid, &mappings))
		return;
	for (size_t i = 0; i < mappings.cnt; i++) {
		const struct target_mapping *mapping = &mappings.items[i];

		if (mapping->exec && mapping->ino != program.st_ino &&
		    !target_mapping_file(pid, mapping, file, sizeof(file)))
			look_into(file, markers);
	}
	target_mappings_free(&mappings);
}

static int read_lines(struct recording *recording, const struct markers *markers)
{
	int fd = memfd_create("whylate.markers", MFD_CLOEXEC), err = 0;
	char path[64], text[256];
	int len = snprintf(text, sizeof(text),
			   "begin usdt:whylate:begin name=whylate key=arg0\n%send usdt:whylate:end key=arg0\n",
			   markers->work ? "work usdt:whylate:work key=arg0\n" : "");

	if (fd < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (write(fd, text, (size_t)len) != len)
		err = -EIO;
	if (!err)
		err = symbol_list_read(path, &recording->symbols.lines);
	close(fd);
	return err;
}

int recording_find_markers(struct recording *recording)
{
	const struct program_opts opts = recording_program_opts(recording);
	struct markers markers = {false};
	int err;

	look_into_process(recording->options->pid, &markers);
	/* It can still be recorded by what it does on its sockets. */
	if (!markers.begin || !markers.end || program__open(recording->options->pid, &opts, &recording->program))
		return 0;
	recording->symbols.marked = true;
	err = read_lines(recording, &markers);
	if (err) {
		log_error(MARKERS_NAME " cannot be used: %s", strerror(-err));
		return err;
	}
	return symbol_list_resolve(&recording->symbols.lines, MARKERS_NAME, recording->program,
				   &recording->symbols.targets);
}
