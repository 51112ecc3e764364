// SPDX-License-Identifier: GPL-2.0-or-later
/* Redis and memcached: the command. */
#include "model/request_text.h"

#define COMMAND_MAX 24

/* --- Redis -------------------------------------------------------------------------------------------------------- */

/* Commands whose second word says what they do. */
static const char *const containers[] = {
	"ACL",    "CLIENT", "CLUSTER", "COMMAND", "CONFIG",   "DEBUG",   "FUNCTION", "LATENCY", "MEMORY",
	"MODULE", "OBJECT", "PUBSUB",  "SCRIPT",  "SENTINEL", "SLOWLOG", "XGROUP",   "XINFO",
};

static bool is_container(const char *command)
{
	for (size_t i = 0; i < sizeof(containers) / sizeof(containers[0]); i++)
		if (!strcmp(containers[i], command))
			return true;
	return false;
}

/* A number and CRLF.  False: it is none, or cut. */
static bool resp_number(const struct request_bytes *request, size_t *at, size_t *number)
{
	size_t digits = 0;

	*number = 0;
	while (*at < request->len && is_digit(request->bytes[*at]) && digits++ < 7)
		*number = *number * 10 + (request->bytes[(*at)++] - '0');
	if (!digits || request->len - *at < 2 || request->bytes[*at] != '\r' || request->bytes[*at + 1] != '\n')
		return false;
	*at += 2;
	return true;
}

/* A bulk string that may be a command. */
static bool resp_word(const struct request_bytes *request, size_t *at, char word[COMMAND_MAX + 1])
{
	size_t len;

	if (*at >= request->len || request->bytes[*at] != '$')
		return false;
	++*at;
	if (!resp_number(request, at, &len) || !len || len > COMMAND_MAX || request->len - *at < len)
		return false;
	for (size_t i = 0; i < len; i++) {
		uint8_t byte = request->bytes[*at + i];

		if (!is_letter(byte) && (!i || (!is_digit(byte) && !strchr("_-.|", byte))))
			return false;
		word[i] = (char)to_upper(byte);
	}
	word[len] = '\0';
	*at += len;
	if (request->len - *at >= 2) {
		if (request->bytes[*at] != '\r' || request->bytes[*at + 1] != '\n')
			return false;
		*at += 2;
	}
	return true;
}

/* What may be typed: any other word may be a value whose beginning was not seen. */
static const char inline_commands[] =
	" ACL APPEND ASKING AUTH BGREWRITEAOF BGSAVE BITCOUNT BITFIELD BITOP BITPOS BLMOVE BLMPOP "
	"BLPOP BRPOP BRPOPLPUSH BZMPOP BZPOPMAX BZPOPMIN CLIENT CLUSTER COMMAND CONFIG COPY DBSIZE "
	"DEBUG DECR DECRBY DEL DISCARD DUMP ECHO EVAL EVALSHA EXEC EXISTS EXPIRE EXPIREAT EXPIRETIME "
	"FAILOVER FCALL FLUSHALL FLUSHDB FUNCTION GEOADD GEODIST GEOHASH GEOPOS GEORADIUS GEOSEARCH "
	"GET GETBIT GETDEL GETEX GETRANGE GETSET HDEL HELLO HEXISTS HGET HGETALL HINCRBY HINCRBYFLOAT "
	"HKEYS HLEN HMGET HMSET HRANDFIELD HSCAN HSET HSETNX HSTRLEN HVALS INCR INCRBY INCRBYFLOAT "
	"INFO KEYS LASTSAVE LATENCY LCS LINDEX LINSERT LLEN LMOVE LMPOP LOLWUT LPOP LPOS LPUSH LPUSHX "
	"LRANGE LREM LSET LTRIM MEMORY MGET MIGRATE MODULE MONITOR MOVE MSET MSETNX MULTI OBJECT "
	"PERSIST PEXPIRE PEXPIREAT PEXPIRETIME PFADD PFCOUNT PFMERGE PING PSETEX PSUBSCRIBE PSYNC "
	"PTTL PUBLISH PUBSUB PUNSUBSCRIBE QUIT RANDOMKEY READONLY READWRITE RENAME RENAMENX REPLCONF "
	"REPLICAOF RESET RESTORE ROLE RPOP RPOPLPUSH RPUSH RPUSHX SADD SAVE SCAN SCARD SCRIPT SDIFF "
	"SDIFFSTORE SELECT SENTINEL SET SETBIT SETEX SETNX SETRANGE SHUTDOWN SINTER SINTERCARD "
	"SINTERSTORE SISMEMBER SLAVEOF SLOWLOG SMEMBERS SMISMEMBER SMOVE SORT SPOP SPUBLISH "
	"SRANDMEMBER SREM SSCAN SSUBSCRIBE STRLEN SUBSCRIBE SUBSTR SUNION SUNIONSTORE SWAPDB SYNC "
	"TIME TOUCH TTL TYPE UNLINK UNSUBSCRIBE UNWATCH WAIT WATCH XACK XADD XAUTOCLAIM XCLAIM XDEL "
	"XGROUP XINFO XLEN XPENDING XRANGE XREAD XREADGROUP XREVRANGE XTRIM ZADD ZCARD ZCOUNT ZDIFF "
	"ZINCRBY ZINTER ZLEXCOUNT ZMPOP ZMSCORE ZPOPMAX ZPOPMIN ZRANDMEMBER ZRANGE ZRANGEBYLEX "
	"ZRANGEBYSCORE ZRANK ZREM ZREVRANGE ZREVRANK ZSCAN ZSCORE ZUNION ZUNIONSTORE ";

/* "PING" and a line feed, as people type it: many protocols look like that. */
static bool parse_inline(const struct request_bytes *request, struct request_parsed *parsed)
{
	struct request_text text = request_text_begin(parsed);
	char word[COMMAND_MAX + 3] = " ";
	size_t len = 0;

	while (len < request->len && is_letter(request->bytes[len]))
		len++;
	if (len < 2 || len > COMMAND_MAX || len == request->len || !strchr(" \r\n", request->bytes[len]) ||
	    !request->bytes[len])
		return false;
	if (!request->cut && request->bytes[request->len - 1] != '\n')
		return false;
	for (size_t i = 0; i < len; i++)
		word[1 + i] = (char)to_upper(request->bytes[i]);
	word[1 + len] = '\0';
	request_text__add(&text, word + 1);
	strcat(word, " ");
	parsed->weak = true;
	return strstr(inline_commands, word) != NULL;
}

bool request_parse_redis(const struct request_bytes *request, struct request_parsed *parsed)
{
	struct request_text text = request_text_begin(parsed);
	char word[COMMAND_MAX + 1];
	size_t at = 1, argc;

	if (request->bytes[0] != '*')
		return parse_inline(request, parsed);
	if (!resp_number(request, &at, &argc) || !argc || !resp_word(request, &at, word))
		return false;
	request_text__add(&text, word);
	if (argc > 1 && is_container(word) && resp_word(request, &at, word)) {
		request_text__put(&text, ' ');
		request_text__add(&text, word);
	}
	return true;
}

/* --- memcached ---------------------------------------------------------------------------------------------------- */

/* The words behind a command: K a key, N a number; '+' as many keys as there are. */
static const struct {
	const char *name, *words;
} commands[] = {
	{"get", "K+"},        {"gets", "K+"},      {"gat", "NK+"},     {"gats", "NK+"},     {"set", "KNNN"},
	{"add", "KNNN"},      {"replace", "KNNN"}, {"append", "KNNN"}, {"prepend", "KNNN"}, {"cas", "KNNNN"},
	{"delete", "K"},      {"incr", "KN"},      {"decr", "KN"},     {"touch", "KN"},     {"mg", "K"},
	{"ms", "KN"},         {"md", "K"},         {"ma", "K"},        {"me", "K"},         {"mn", ""},
	{"stats", ""},        {"version", ""},     {"flush_all", ""},  {"verbosity", "N"},  {"quit", ""},
	{"lru_crawler", "K"}, {"slabs", "K"},
};

/* As memcached's own documentation calls them; NULL: there is no such operation. */
static const char *const operations[] = {
	"get",       "set",       "add",
	"replace",   "delete",    "incr",
	"decr",      "quit",      "flush",
	"getq",      "noop",      "version",
	"getk",      "getkq",     "append",
	"prepend",   "stat",      "setq",
	"addq",      "replaceq",  "deleteq",
	"incrq",     "decrq",     "quitq",
	"flushq",    "appendq",   "prependq",
	"verbosity", "touch",     "gat",
	"gatq",      NULL,        "sasl_list_mechs",
	"sasl_auth", "sasl_step", "gatk",
	"gatkq",
};

static bool take_word(const struct request_bytes *request, size_t *at, char kind, size_t end)
{
	size_t from = *at, digits = 0;

	while (*at < end && request->bytes[*at] > ' ' && request->bytes[*at] != 0x7f)
		digits += is_digit(request->bytes[(*at)++]) || (*at - 1 == from && request->bytes[from] == '-');
	if (*at == from || *at - from > 250 || (kind == 'N' && digits != *at - from))
		return false;
	return *at == end || request->bytes[*at] == ' ';
}

/* Is the line what the command takes?  Further words (noreply, flags) may follow. */
static bool words_fit(const struct request_bytes *request, size_t at, size_t end, const char *words)
{
	for (; *words && *words != '+'; words++) {
		if (at >= end || request->bytes[at] != ' ')
			return false;
		at++;
		if (!take_word(request, &at, *words, end))
			return false;
	}
	return true;
}

static bool parse_text_command(const struct request_bytes *request, struct request_parsed *parsed)
{
	size_t len = 0, end = 0;

	while (len < request->len && (is_lower(request->bytes[len]) || request->bytes[len] == '_'))
		len++;
	while (end < request->len && request->bytes[end] != '\r' && request->bytes[end] != '\n')
		end++;
	/* The line is whole, or long. */
	if (end == request->len
		    ? !request->cut
		    : request->bytes[end] == '\r' && end + 1 < request->len && request->bytes[end + 1] != '\n')
		return false;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strlen(commands[i].name) != len || memcmp(commands[i].name, request->bytes, len) || len > end)
			continue;
		if (!words_fit(request, len, end, commands[i].words))
			return false;
		parsed->weak = !commands[i].words[0];
		strcpy(parsed->text, commands[i].name);
		return true;
	}
	return false;
}

bool request_parse_memcached(const struct request_bytes *request, struct request_parsed *parsed)
{
	const uint8_t *bytes = request->bytes;
	uint32_t key_len, extra_len, body_len;

	if (bytes[0] != 0x80)
		return parse_text_command(request, parsed);
	if (request->len < 24 || bytes[5] || bytes[1] >= sizeof(operations) / sizeof(operations[0]) ||
	    !operations[bytes[1]])
		return false;
	key_len = (uint32_t)bytes[2] << 8 | bytes[3];
	extra_len = bytes[4];
	body_len = (uint32_t)bytes[8] << 24 | (uint32_t)bytes[9] << 16 | (uint32_t)bytes[10] << 8 | bytes[11];
	if (key_len > 250 || extra_len > 20 || body_len < key_len + extra_len || body_len > 1U << 30)
		return false;
	strcpy(parsed->text, operations[bytes[1]]);
	return true;
}
