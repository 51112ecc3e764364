// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/usdt.h"

#include "base/order.h"
#include "target/elf_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

ORDER(site_cmp, struct usdt_site, strcmp(a->provider, b->provider), strcmp(a->name, b->name),
      BY(a->file_off, b->file_off));

static int site_add(const struct elf_rows *rows, const struct elf_marker *marker, usdt_sites *sites)
{
	struct usdt_site site = {.provider = strdup(rows->names.items + marker->provider_off),
				 .name = strdup(rows->names.items + marker->name_off),
				 .addr = marker->addr,
				 .file_off = marker->file_off,
				 .semaphore_off = marker->semaphore_off,
				 .arg_cnt = (uint8_t)marker->arg_cnt};

	memcpy(site.args, marker->args, sizeof(site.args));
	if (site.provider && site.name && !vec_push(sites, site))
		// cppcheck-suppress memleak ; vec_push() has taken it
		return 0;
	free(site.provider);
	free(site.name);
	return -ENOMEM;
}

int usdt_sites_read(const char *path, usdt_sites *sites)
{
	/* Not blocking: what calls itself a library may be a pipe. */
	struct elf_read read = {.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), .what = ELF_READ_MARKERS};
	struct elf_rows rows = {0};
	int err = read.fd < 0 ? -errno : elf_reader_read(&read, &rows);

	for (size_t i = 0; !err && i < rows.markers.cnt; i++)
		err = site_add(&rows, &rows.markers.items[i], sites);
	elf_rows_free(&rows);
	if (read.fd >= 0)
		close(read.fd);
	if (err)
		usdt_sites_free(sites);
	else
		vec_sort(sites, site_cmp);
	return err;
}

void usdt_sites_free(usdt_sites *sites)
{
	for (size_t i = 0; i < sites->cnt; i++) {
		free(sites->items[i].provider);
		free(sites->items[i].name);
	}
	vec_free(sites);
}
