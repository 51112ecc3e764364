// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where a target's files are, and where they lie in it: linked for fixed addresses, in a mount namespace or below a
 * root of its own, deleted or replaced since it was started.  Functions are found by name, each call is seen, and
 * samples of stacks have the right names.
 */
#include "calls.h"
#include "harness.h"
#include "servers.h"
#include "session.h"
#include "stacks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The only copy that there is: $dir is empty for everybody else. */
#define TAKE "from=$1 dir=$2 name=$3; shift 3; "
#define COPY "mkdir -p $dir/app/lib; cp $from/$name $dir/app; cp $from/lib/libwlcodec.so $dir/app/lib; "
/* What a program needs to be started, and the directory of the file that tells it to go. */
#define FURNISH                                                                                                       \
	"go=$4; mkdir -p $dir/usr $dir/proc $dir${go%/*}; mount --bind /usr $dir/usr; mount -t proc none $dir/proc; " \
	"for link in lib lib64; do ln -s usr/$link $dir/$link; done; "                                                \
	"mount --bind ${go%/*} $dir${go%/*}; "

struct place {
	const char *name, *script;
	bool mounts;
	bool (*afterwards)(const char *dir);
};

/* --- what is recorded --------------------------------------------------------------------------------------------- */

struct sampled {
	uint64_t right, wrong;
};

static void take_stack(void *owner, const struct stack_row *row)
{
	const char *codec = strstr(row->frames, ";codec_");
	struct sampled *sampled = owner;
	bool right = codec - row->frames > 11 && !strncmp(codec - 11, ";pack_block", 11) &&
		     (!strncmp(codec, ";codec_encode", 13) || !strncmp(codec, ";codec_checksum", 15));

	if (!codec || !row->complete)
		return;
	sampled->right += right;
	sampled->wrong += !right;
}

static void check_stacks(const char *what, const char *dir)
{
	struct sampled sampled = {0};
	struct stacks_seen seen;

	if (!stacks_read(&seen, dir, take_stack, &sampled))
		return;
	/* A tick may come while a return address is on its way from the stack into the kernel's list. */
	CHECKF(sampled.right >= 10 && sampled.wrong <= 1 + sampled.right / 50,
	       "%s: of %lu stacks %lu go through the library, %lu astray", what, seen.row_cnt, sampled.right,
	       sampled.wrong);
}

/* Every request calls each of them once. */
static void check_calls(const char *what, const char *dir)
{
	static const char *const names[] = {"pack_block", "codec_encode", "codec_transform", "codec_quantize"};
	uint64_t looked_at = 0, wrong = 0;
	struct calls_read read = {0};
	struct session session;

	if (!session_read(&session, dir, NULL, NULL) || !calls_read_dir(&read, dir))
		goto cleanup;
	session_check(&session);
	for (size_t i = 0; i < read.interval_cnt; i++) {
		if (read.intervals[i].flags & (WL_INTERVAL_LOSSY | WL_INTERVAL_TORN))
			continue;
		looked_at++;
		for (size_t j = 0; j < sizeof(names) / sizeof(names[0]); j++)
			wrong += calls_in(&read, read.intervals[i].sid, calls_func(&read, names[j]), 0) != 1;
	}
	CHECKF(looked_at > 100 && !wrong, "%s: %lu wrong counts in %lu intervals of %zu", what, wrong, looked_at,
	       read.interval_cnt);
	for (size_t i = 0; i < read.call_cnt; i++)
		wrong += (int)read.calls[i].func == calls_func(&read, "codec_quantize") &&
			 (int)read.calls[i].parent_func != calls_func(&read, "codec_encode");
	CHECKF(!wrong, "%s: %lu calls of codec_quantize() with other parents than codec_encode()", what, wrong);
cleanup:
	calls_free(&read);
}

/* In a chroot, say, no mount namespace can be made. */
static bool mounts_missing(const char *name)
{
	struct process process;
	bool missing;

	if (process_start(&process, "unshare -m mount -t tmpfs none /mnt"))
		return true;
	missing = process_wait(&process, 10) != 0;
	if (missing)
		skip(name, "no mount namespace of its own: %.*s", (int)strcspn(process_err(&process), "\n"),
		     process_err(&process));
	process_end(&process);
	return missing;
}

static void place_case(const struct place *place)
{
	static const char list[] = "interval handle\nfunction pack_block\nfunction codec_encode\n"
				   "function codec_transform\nfunction codec_quantize\n";
	struct path symbols = temp_path("places.txt"), dir = temp_path("place-%s", place->name);
	struct recording recording = {0};
	struct workload workload = {0};

	if ((place->mounts && mounts_missing(place->name)) || !CHECK(!file_write(symbols.s, list, strlen(list))) ||
	    !workload_start_by(&workload, "library", 3, place->script, dir.s) ||
	    (place->afterwards && !place->afterwards(dir.s)) ||
	    !recording_start(&recording, place->name, workload.server_pid,
			     "-s %s --stacks=499 --tail none --budget 100%% -d 60s", symbols.s))
		goto cleanup;
	workload_go(&workload);
	if (!workload_finish(&workload, 30) || !CHECK(process_wait(&recording.process, 10) == 0))
		goto cleanup;
	check_calls(place->name, recording.dir.s);
	check_stacks(place->name, recording.dir.s);
cleanup:
	recording_end(&recording);
	/* What makes a pid namespace takes no notice of SIGTERM. */
	process_end(&workload.process);
	workload_end(&workload);
}

/* --- places ------------------------------------------------------------------------------------------------------- */

static void test_prelinked(void)
{
	place_case(&(struct place){.name = "prelinked", .script = TAKE "exec $from/prelinked/$name \"$@\""});
}

static void test_mount_namespace(void)
{
	place_case(&(struct place){
		.name = "mount_namespace",
		.script = TAKE "mkdir $dir; export from dir name; "
			       "exec unshare -m sh -ec 'mount -t tmpfs none $dir; " COPY
			       "exec $dir/app/$name \"$@\"' sh \"$@\"",
		.mounts = true,
	});
}

static void test_chroot(void)
{
	place_case(&(struct place){
		.name = "chroot",
		.script = TAKE "mkdir $dir; export from dir name; "
			       "exec unshare -m sh -ec 'mount -t tmpfs none $dir; " COPY FURNISH
			       "exec chroot $dir /app/$name \"$@\"' sh \"$@\"",
		.mounts = true,
	});
}

/* As containers are made: it is also called otherwise there than here. */
static void test_container(void)
{
	place_case(&(struct place){
		.name = "container",
		.script = TAKE "mkdir $dir; export from dir name; "
			       "exec unshare -m -p -f --kill-child sh -ec 'mount -t tmpfs none $dir; " COPY FURNISH
			       "mkdir $dir/old; cd $dir; pivot_root . old; exec chroot . /app/$name \"$@\"' sh \"$@\"",
		.mounts = true,
	});
}

#define COPIED TAKE COPY "exec $dir/app/$name \"$@\""

static bool delete_files(const char *dir)
{
	static const char *const names[] = {"app/library", "app/lib/libwlcodec.so"};
	bool good = true;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct path path;

		snprintf(path.s, sizeof(path.s), "%s/%s", dir, names[i]);
		good &= CHECKF(!unlink(path.s), "%s: %s", path.s, strerror(errno));
	}
	return good;
}

static void test_deleted(void)
{
	place_case(&(struct place){.name = "deleted", .script = COPIED, .afterwards = delete_files});
}

/* Another build takes their names, in which everything lies elsewhere. */
static bool replace_files(const char *dir)
{
	struct process process;
	bool good;

	if (!delete_files(dir) ||
	    process_start(&process, "cp %s/prelinked/library %s/app/library", workloads_path(), dir))
		return false;
	good = CHECK(process_wait(&process, 10) == 0);
	process_end(&process);
	if (!good ||
	    process_start(&process, "cp %s/prelinked/libwlcodec.so %s/app/lib/libwlcodec.so", workloads_path(), dir))
		return false;
	good = CHECK(process_wait(&process, 10) == 0);
	process_end(&process);
	return good;
}

static void test_replaced(void)
{
	place_case(&(struct place){.name = "replaced", .script = COPIED, .afterwards = replace_files});
}

static const struct live_test tests[] = {
	{"place_prelinked", test_prelinked, REST}, {"place_mount_namespace", test_mount_namespace, SHORT},
	{"place_chroot", test_chroot, REST},       {"place_container", test_container, SHORT},
	{"place_deleted", test_deleted, REST},     {"place_replaced", test_replaced, REST},
};

int suite_places(void)
{
	return live_suite("places", tests, sizeof(tests) / sizeof(tests[0]));
}
