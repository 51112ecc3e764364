// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What libmicrohttpd lets pass and two readers may understand differently: a bare LF or CR, a folded line, a NUL, a
 * query, blanks behind a value, a header that must not come twice.  Its strict level refuses most of these from 0.9.77
 * on; the versions before parse the header where it was received and put NULs for separators, so that the distance
 * between the strings that they hand out tells what stood there.
 */
#include "net/collect/collector_internal.h"

#include <string.h>
#include <strings.h>

struct strict {
	uintptr_t end; /* where the last string ended */
	uint32_t length_cnt, host_cnt;
	const char *why;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static enum MHD_Result on_header(void *cls, enum MHD_ValueKind kind, const char *name, size_t name_sz,
				 const char *value, size_t value_sz)
{
	struct strict *strict = cls;

	(void)kind;
	if (!value) {
		value = "";
		value_sz = 0;
	}
	for (size_t i = 0; i < value_sz; i++)
		if ((unsigned char)value[i] < ' ' && value[i] != '\t')
			strict->why = "a header has a control character";
	if (name_sz && is_blank(name[name_sz - 1]))
		strict->why = "a header's name ends with a blank";
	if (value_sz && is_blank(value[value_sz - 1]))
		strict->why = "a header ends with a blank";
	strict->length_cnt += !strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH);
	strict->host_cnt += !strcasecmp(name, MHD_HTTP_HEADER_HOST);
	if ((uintptr_t)name != strict->end + 2)
		strict->end = 0;
	if (strict->end)
		strict->end = (uintptr_t)value + value_sz;
	return MHD_YES;
}

#if MHD_VERSION < 0x00097701
/* "METHOD\0PATH\0VERSION", with nothing between, CRLF behind it and behind each header, and one more at the end. */
static bool lines_are_whole(struct MHD_Connection *mhd, const char *method, const char *path, const char *version,
			    const struct strict *strict)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

	return info && path == method + strlen(method) + 1 && version == path + strlen(path) + 1 && strict->end &&
	       (uintptr_t)method + info->header_size == strict->end + 4;
}
#endif

const char *collector_why_not_strict(struct MHD_Connection *mhd, const char *method, const char *path,
				     const char *version)
{
	struct strict strict = {.end = (uintptr_t)version + strlen(version)};

	MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, on_header, &strict);
	if (strict.why)
		return strict.why;
	if (strict.length_cnt > 1)
		return "there is more than one Content-Length";
	if (strict.host_cnt > 1)
		return "there is more than one Host";
#if MHD_VERSION < 0x00097701
	if (!lines_are_whole(mhd, method, path, version, &strict))
		return "the header has a query, a bare LF or CR, a folded line, or a NUL";
#else
	(void)method;
	(void)path;
#endif
	return NULL;
}
