// SPDX-License-Identifier: GPL-2.0-or-later
#include "cmd/cmd.h"
#include "cmd/record_options.h"
#include "net/send/upload_process.h"

#include <sys/utsname.h>

int cmd_upload(int argc, char **argv)
{
	struct record_options options;
	const struct option_group groups[] = {upload_options_group(&options)};
	struct upload_process *process;
	struct utsname uts;
	int code, err;

	record_options_init(&options);
	code = OPTIONS_TAKE("upload", groups, argc, argv);
	if (code != OPTIONS_GO_ON)
		return code;
	code = usage_no_words("upload", argc, argv) ? EXIT_USAGE : upload_options_check(&options);
	if (code)
		return code;
	uname(&uts);
	const struct upload_opts opts = {
		.url = options.stream.url,
		.host = options.host ? options.host : uts.nodename,
		.cert_path = options.stream.cert,
		.key_path = options.stream.key,
		.ca_path = options.stream.ca,
		.token_path = options.stream.token,
	};
	process = upload_process__new(&opts);
	err = process ? upload_process__serve(process, options.stream.spool) : -1;
	upload_process__free(process);
	return err ? EXIT_FAILED : EXIT_DONE;
}
