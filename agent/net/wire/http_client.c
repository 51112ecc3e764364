// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/wire/http_client.h"

#include <string.h>
#include <strings.h>

#define ANSWER_RECEIVED_MAX (1u << 20)

size_t http_answer_take(char *bytes, size_t one, size_t sz, void *answer)
{
	struct http_answer *to = answer;
	size_t room = to->room - to->sz, take = sz < room ? sz : room;

	(void)one;
	memcpy(to->bytes + to->sz, bytes, take);
	to->sz += take;
	to->received += sz;
	return to->received > ANSWER_RECEIVED_MAX ? 0 : sz;
}

bool http_client_has_part(CURLU *url, CURLUPart part)
{
	char *text = NULL;
	bool has = !curl_url_get(url, part, &text, 0);

	curl_free(text);
	return has;
}

bool http_client_options(CURL *curl, const struct http_client_opts *opts)
{
	bool good = true;

	good &= !curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	good &= !curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https,http");
	good &= !curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	good &= !curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, opts->connect_s);
	good &= !curl_easy_setopt(curl, CURLOPT_TIMEOUT, opts->request_s);
	good &= !curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, opts->error);
	good &= !curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, opts->on_answer);
	good &= !curl_easy_setopt(curl, CURLOPT_WRITEDATA, opts->owner);
	good &= !curl_easy_setopt(curl, CURLOPT_USERAGENT, "whylate/" WHYLATE_VERSION);
	return good;
}

bool http_client_url(CURL *curl, const char *url)
{
	const char *proxy = strncasecmp(url, "http://", 7) ? NULL : "";

	return !curl_easy_setopt(curl, CURLOPT_URL, url) && !curl_easy_setopt(curl, CURLOPT_PROXY, proxy);
}

bool http_client_authority(CURL *curl, const char *path)
{
	return !path ||
	       (!curl_easy_setopt(curl, CURLOPT_CAINFO, path) && !curl_easy_setopt(curl, CURLOPT_CAPATH, NULL));
}

bool http_client_header(struct curl_slist **headers, const char *header)
{
	struct curl_slist *longer = curl_slist_append(*headers, header);

	if (longer)
		*headers = longer;
	return longer;
}

void http_client_line(char *line, size_t room, const char *text)
{
	size_t sz = 0;

	for (; text[sz] && text[sz] != '\n' && sz < room - 1; sz++)
		line[sz] = text[sz] >= ' ' && text[sz] <= '~' ? text[sz] : '?';
	line[sz] = '\0';
}
