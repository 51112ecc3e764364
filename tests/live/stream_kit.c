// SPDX-License-Identifier: GPL-2.0-or-later
#include "stream_kit.h"

#include "net.h"
#include "shard/file.h"

#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char cert_script[] =
	"set -e; cd \"$0\"\n"
	"new() { openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout $1.key -subj /CN=$2 -out "
	"$1.csr; }\n"
	"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -subj /CN=test-ca -days 2 "
	"-out ca.crt\n"
	"new server collector; new client \"$2\"\n"
	"printf 'subjectAltName=IP:127.0.0.1,IP:%s\\n' \"$1\" >server.ext\n"
	"printf 'subjectAltName=DNS:%s\\n' \"$2\" >client.ext\n"
	"for who in server client; do openssl x509 -req -in $who.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 "
	"-extfile $who.ext -out $who.crt; done\n"
	"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout other.key -subj /CN=other -days "
	"2 -out other.crt\n"
	"chmod 600 *.key; chown nobody *.key\n";

bool certs_make(struct certs *certs, const char *ip)
{
	struct process process;
	const char *dir;
	bool good;

	certs->dir = temp_path("certs-%s", ip);
	dir = certs->dir.s;
	mkdir(dir, 0755);
	const char *const argv[] = {"sh", "-c", cert_script, dir, ip, STREAM_HOST, NULL};
	good = !process_launch_argv(&process, NULL, argv) &&
	       CHECKF(process_wait(&process, 30) == 0, "%s", process_err(&process));
	process_end(&process);
	snprintf(certs->client, sizeof(certs->client),
		 "--host %s --stream-cert %s/client.crt --stream-key %s/client.key --stream-ca %s/ca.crt", STREAM_HOST,
		 dir, dir, dir);
	snprintf(certs->server, sizeof(certs->server),
		 "--tls-cert %s/server.crt --tls-key %s/server.key --client-ca %s/ca.crt", dir, dir, dir);
	return good;
}

static const char client_script[] =
	"set -e; cd \"$0\"\n"
	"openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout $1.key -subj /CN=$1 -out $1.csr\n"
	"printf 'subjectAltName=DNS:%s\\n' \"$1\" >$1.ext\n"
	"openssl x509 -req -in $1.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile $1.ext -out $1.crt\n"
	"chmod 600 $1.key; chown nobody $1.key\n";

bool certs_client(const struct certs *certs, const char *host, char options[2200])
{
	const char *dir = certs->dir.s;
	const char *const argv[] = {"sh", "-c", client_script, dir, host, NULL};
	struct process process;
	bool good = !process_launch_argv(&process, NULL, argv) &&
		    CHECKF(process_wait(&process, 30) == 0, "%s", process_err(&process));

	process_end(&process);
	snprintf(options, 2200, "--host %s --stream-cert %s/%s.crt --stream-key %s/%s.key --stream-ca %s/ca.crt", host,
		 dir, host, dir, host, dir);
	return good;
}

bool stream_collector_again(struct stream_collector *collector)
{
	process_end(&collector->process);
	return !process_start(&collector->process, "%s", collector->command) &&
	       CHECKF(process_says(&collector->process, true, "listening on", NULL, 15), "%s",
		      process_err(&collector->process));
}

bool stream_collector_start(struct stream_collector *collector, const struct certs *certs, const char *netns,
			    const char *ip, const char *store_name)
{
	memset(collector, 0, sizeof(*collector));
	collector->store = temp_path("%s", store_name);
	snprintf(collector->address, sizeof(collector->address), "%s:%d", ip, port_free());
	snprintf(collector->command, sizeof(collector->command),
		 "%s%s%s%s collect --user nobody --listen %s --store %s %s", netns ? "ip netns exec " : "",
		 netns ? netns : "", netns ? " " : "", whylate_path(), collector->address, collector->store.s,
		 certs->server);
	return stream_collector_again(collector);
}

static struct raw_blocks *collected;
static bool collected_well;

static uint64_t digest(const uint8_t *bytes, size_t sz)
{
	uint64_t hash = 0xcbf29ce484222325ULL;

	for (size_t i = 0; i < sz; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3ULL;
	return hash;
}

static void collect_file(const char *path)
{
	struct shard_damages damages = {0};
	struct shard_file file = {.path = path, .damages = &damages, .fd = -1};
	struct shard_block_header header;
	size_t sz = 0;
	uint8_t *bytes = (uint8_t *)file_read(path, &sz);
	int found = shard_file__open(&file);

	while (!found && (found = shard_file__next(&file, &header)) == 1) {
		struct raw_block block = {.sz = file.off - file.block_off};

		found = 0;
		if (header.kind != SHARD_BLOCK_ROWS || !strcmp(header.table, "received"))
			continue;
		collected_well &= bytes && file.off <= sz;
		if (bytes && file.off <= sz)
			block.digest = digest(bytes + file.block_off, block.sz);
		memcpy(block.table, header.table, sizeof(block.table));
		collected_well &= !vec_push(collected, block);
	}
	collected_well &= found >= 0;
	shard_file__close(&file);
	shard_damages__clear(&damages);
	free(bytes);
}

static int collect_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	size_t len = strlen(path);

	(void)st, (void)ftw;
	if (type == FTW_F && len > 4 && !strcmp(path + len - 4, ".wls"))
		collect_file(path);
	return 0;
}

static int by_digest(const void *left, const void *right)
{
	const struct raw_block *a = left, *b = right;

	if (a->digest != b->digest)
		return a->digest < b->digest ? -1 : 1;
	return (a->sz > b->sz) - (a->sz < b->sz);
}

bool raw_blocks_read(struct raw_blocks *blocks, const char *dir)
{
	collected = blocks;
	collected_well = true;
	blocks->cnt = 0;
	collected_well &= !nftw(dir, collect_one, 16, FTW_PHYS);
	if (blocks->cnt)
		qsort(blocks->items, blocks->cnt, sizeof(*blocks->items), by_digest);
	return CHECKF(collected_well, "%s", dir);
}

bool raw_blocks_check(const struct raw_blocks *written, const struct raw_blocks *stored, size_t more_max)
{
	size_t twice_cnt = 0, missing_cnt = 0, more_cnt = 0;

	for (size_t i = 1; i < stored->cnt; i++)
		twice_cnt += !by_digest(&stored->items[i - 1], &stored->items[i]);
	for (size_t i = 0; i < written->cnt; i++)
		missing_cnt +=
			!bsearch(&written->items[i], stored->items, stored->cnt, sizeof(*stored->items), by_digest);
	for (size_t i = 0; i < stored->cnt; i++)
		if (strcmp(stored->items[i].table, "loss") != 0 && written->cnt)
			more_cnt += !bsearch(&stored->items[i], written->items, written->cnt, sizeof(*written->items),
					     by_digest);
	CHECKF(!twice_cnt, "%zu blocks are stored twice", twice_cnt);
	CHECKF(!missing_cnt, "%zu of %zu blocks are missing", missing_cnt, written->cnt);
	CHECKF(more_cnt <= more_max, "%zu blocks are in the store alone", more_cnt);
	return !twice_cnt && !missing_cnt && more_cnt <= more_max;
}

bool stored_once(const char *written_dir, const char *store, size_t more_max)
{
	struct raw_blocks written = {0}, stored = {0};
	bool good = raw_blocks_read(&written, written_dir) && raw_blocks_read(&stored, store) &&
		    CHECKF(written.cnt > 3, "%zu blocks", written.cnt) && raw_blocks_check(&written, &stored, more_max);

	vec_free(&written);
	vec_free(&stored);
	return good;
}
