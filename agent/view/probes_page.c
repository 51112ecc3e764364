// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/exit_code.h"
#include "base/log.h"
#include "base/progress.h"
#include "view/json_put.h"
#include "view/probes.h"
#include "view/view.h"

#include <string.h>

void probes_page_open(struct page *page)
{
	progress_end();
	page__open(page, stdout, view_opts_stdout(0).colour);
}

int probes_page_close(struct page *page, int code)
{
	int err = page__close(page);

	if (!err)
		return code;
	log_error("cannot write the result: %s", strerror(-err));
	return EXIT_FAILED;
}

int probes_json_close(struct json_doc *doc, struct json_object *root, int code)
{
	int err;

	progress_end();
	err = json_finish(stdout, doc, root, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE);
	if (!err)
		return code;
	log_error("cannot write the result: %s", strerror(-err));
	return EXIT_FAILED;
}

const char *probes_module_name(struct program *program, uint32_t module)
{
	const struct program_module *found = program__module(program, module);

	return found ? found->name : "?";
}
