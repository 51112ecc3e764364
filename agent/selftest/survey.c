// SPDX-License-Identifier: GPL-2.0-or-later
#include "selftest/survey.h"

#include "base/exit_code.h"
#include "base/privilege.h"
#include "capture/capture.h"
#include "capture/hwcounters.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

struct check {
	char name[48];
	bool works;
	bool required;
	char how[64];      /* the hooks in use, where it works */
	char why[256];     /* why not, where it does not */
	const char *costs; /* what is missing then */
};

struct diagnosis {
	struct check checks[HOOK_FEATURE_CNT + PRIVILEGE_CNT + 4];
	size_t cnt;
};

static struct check *add(struct diagnosis *diagnosis, const char *name, bool works, bool required)
{
	struct check *check = &diagnosis->checks[diagnosis->cnt++];

	memset(check, 0, sizeof(*check));
	snprintf(check->name, sizeof(check->name), "%s", name);
	check->works = works;
	check->required = required;
	check->costs = "";
	return check;
}

static void check_privileges(struct diagnosis *diagnosis)
{
	struct privilege privileges[PRIVILEGE_CNT];

	privilege_survey(privileges);
	for (int i = 0; i < PRIVILEGE_CNT; i++) {
		struct check *check = add(diagnosis, privileges[i].name, privileges[i].had, privileges[i].required);

		snprintf(check->how, sizeof(check->how), "%s", privileges[i].what);
		snprintf(check->why, sizeof(check->why), "needed for %s: run as root", privileges[i].what);
	}
}

static void check_features(struct diagnosis *diagnosis, const struct hook_survey *survey)
{
	for (int f = 0; f < HOOK_FEATURE_CNT; f++) {
		enum hook_need need = features[f].need;
		char kinds[48];
		struct check *check =
			add(diagnosis, features[f].name, survey->tier[f] != 0,
			    need != HOOK_NEED_EXTRA && need != HOOK_NEED_WANTED && need != HOOK_NEED_SOCKETS_WANTED &&
				    need != HOOK_NEED_STACKS && need != HOOK_NEED_GOROUTINES);

		hook_tier_name(f, survey->tier[f], kinds, sizeof(kinds));
		snprintf(check->how, sizeof(check->how), "%s (tier %u)", kinds, survey->tier[f]);
		snprintf(check->why, sizeof(check->why), "%s",
			 survey->missing[f] ? survey->missing[f] : "no hook for it here");
		check->costs = features[f].categories[0] ? features[f].categories : features[f].what;
	}
}

static void check_hardware(struct diagnosis *diagnosis)
{
	long cpu_cnt = sysconf(_SC_NPROCESSORS_CONF);
	struct hwcounters *counters = hwcounters__new(false, cpu_cnt > 0 ? cpu_cnt : 1);
	struct check *check = add(diagnosis, "hardware counters", counters != NULL, false);
	int err = errno;

	if (counters) {
		snprintf(check->how, sizeof(check->how), "perf, %u rotations", hwcounters__rotation_cnt(counters));
	} else {
		snprintf(check->why, sizeof(check->why), "%s",
			 err == ENOENT || err == EOPNOTSUPP ? "this machine shows no PMU (a virtual machine?)"
							    : strerror(err));
		check->costs = "hw.* events";
	}
	hwcounters__free(counters);
}

static int print_text(const struct diagnosis *diagnosis, const struct utsname *uts)
{
	printf("whylate %s on Linux %s, %s, %ld CPUs\n\n", WHYLATE_VERSION, uts->release, uts->machine,
	       sysconf(_SC_NPROCESSORS_ONLN));
	for (size_t i = 0; i < diagnosis->cnt; i++) {
		const struct check *check = &diagnosis->checks[i];

		if (check->works)
			printf("  yes  %-22s %s\n", check->name, check->how);
		else
			printf("  %s   %-22s %s%s%s\n", check->required ? "NO" : "no", check->name, check->why,
			       check->costs[0] ? "; not measured: " : "", check->costs);
	}
	printf("\n\"NO\" stands in the way of a recording; \"no\" is said in its report.\n");
	return fflush(stdout) ? -EIO : 0;
}

static int print_json(const struct diagnosis *diagnosis, const struct utsname *uts)
{
	json_object *root = json_object_new_object(), *list = json_object_new_array();

	json_object_object_add(root, "schema", json_object_new_string("whylate.doctor/1"));
	json_object_object_add(root, "kernel", json_object_new_string(uts->release));
	json_object_object_add(root, "machine", json_object_new_string(uts->machine));
	for (size_t i = 0; i < diagnosis->cnt; i++) {
		const struct check *check = &diagnosis->checks[i];
		json_object *line = json_object_new_object();

		json_object_object_add(line, "name", json_object_new_string(check->name));
		json_object_object_add(line, "works", json_object_new_boolean(check->works));
		json_object_object_add(line, "required", json_object_new_boolean(check->required));
		json_object_object_add(line, "how", check->works ? json_object_new_string(check->how) : NULL);
		json_object_object_add(line, "why", check->works ? NULL : json_object_new_string(check->why));
		json_object_object_add(line, "not_measured",
				       check->works || !check->costs[0] ? NULL : json_object_new_string(check->costs));
		json_object_array_add(list, line);
	}
	json_object_object_add(root, "checks", list);
	printf("%s\n", json_object_to_json_string_ext(root, JSON_C_TO_STRING_PRETTY));
	json_object_put(root);
	return fflush(stdout) ? -EIO : 0;
}

int survey_machine(bool json, const char *btf_path)
{
	struct diagnosis diagnosis = {};
	struct hook_survey survey;
	struct utsname uts;
	bool fit = true;
	char why[256];
	int err;

	uname(&uts);
	check_privileges(&diagnosis);
	err = hook_survey_make(&survey, btf_path, why, sizeof(why));
	if (err)
		snprintf(add(&diagnosis, "kernel", false, true)->why, sizeof(diagnosis.checks[0].why), "%s", why);
	else
		check_features(&diagnosis, &survey);
	check_hardware(&diagnosis);
	err = json ? print_json(&diagnosis, &uts) : print_text(&diagnosis, &uts);
	for (size_t i = 0; i < diagnosis.cnt; i++)
		fit &= diagnosis.checks[i].works || !diagnosis.checks[i].required;
	return err ? EXIT_FAILED : fit ? EXIT_DONE : EXIT_LIMITS;
}
