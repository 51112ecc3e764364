// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/loopback.h"

#include <arpa/inet.h>
#include <string.h>

bool host_is_loopback(const char *host)
{
	struct in_addr in;
	struct in6_addr in6;
	char bare[INET6_ADDRSTRLEN];
	size_t sz = strlen(host);

	if (!strcmp(host, "localhost"))
		return true;
	if (inet_pton(AF_INET, host, &in) == 1)
		return ntohl(in.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
	if (sz < 3 || sz - 2 >= sizeof(bare) || host[0] != '[' || host[sz - 1] != ']')
		return false;
	memcpy(bare, host + 1, sz - 2);
	bare[sz - 2] = 0;
	return inet_pton(AF_INET6, bare, &in6) == 1 && IN6_IS_ADDR_LOOPBACK(&in6);
}
