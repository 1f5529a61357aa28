/* SPDX-License-Identifier: Apache-2.0 */
/* A line from a job's own code to its report socket. What is taken is JSON to jansson too, and its path stays below its folder. */
#include "fuzz/fuzz.h"

#include <jansson.h>
#include <string.h>

#include "base/check.h"
#include "engine/report.h"

static void check_path(const char *path)
{
	const size_t size = strnlen(path, REPORT_PATH_MAX);

	CHECK(size > 0 && size < REPORT_PATH_MAX);
	for (size_t i = 0; i < size; i++)
		CHECK((unsigned char)path[i] >= 0x20 && path[i] != 0x7f);
	for (size_t i = 0; i < size;) {
		const size_t step = strcspn(path + i, "/");

		CHECK(step != 2 || memcmp(path + i, "..", 2) != 0);
		i += step + 1;
	}
}

static void check_checkpoint(const struct report *report)
{
	static const char folder[] = "/var/lib/checkpoints/7";
	char path[REPORT_PATH_MAX];
	struct err err = { 0 };
	int rc;

	check_path(report->checkpoint);
	rc = report_path(report, folder, path, &err);
	if (rc < 0)
		fuzz_check_refusal(rc, &err);
	else if (report->checkpoint[0] == '/')
		CHECK(strcmp(path, report->checkpoint) == 0);
	else
		CHECK(strncmp(path, folder, sizeof(folder) - 1) == 0 &&
		      path[sizeof(folder) - 1] == '/');
	rc = report_path(report, NULL, path, &err);
	CHECK((rc == 0) == (report->checkpoint[0] == '/'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct report report;
	struct err err = { 0 };
	json_t *json;
	int rc = report_parse((const char *)data, size, &report, &err);

	fuzz_accepted = rc == 0;
	if (rc < 0) {
		fuzz_check_refusal(rc, &err);
		return 0;
	}
	CHECK(size <= REPORT_LINE_MAX);
	CHECK(report.step >= -1 && report.step <= REPORT_STEP_MAX);
	CHECK(report.watch || report.has_checkpoint || report.step >= 0);
	json = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
	CHECK(json_is_object(json) && json_object_size(json) <= 3);
	if (report.step >= 0)
		CHECK(json_integer_value(json_object_get(json, "step")) == report.step);
	if (report.has_checkpoint) {
		CHECK(strcmp(json_string_value(json_object_get(json, "checkpoint")),
			     report.checkpoint) == 0);
		check_checkpoint(&report);
	}
	json_decref(json);
	return 0;
}
