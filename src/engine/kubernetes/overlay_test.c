/* SPDX-License-Identifier: Apache-2.0 */
#include "base/testing.h"
#include "engine/kubernetes/overlay.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/json.h"

static struct arena arena;

static void what_is_added_is_merged(void **state)
{
	static const struct {
		const char *pod, *over, *both;
	} cases[] = {
		{ "{\"a\":1}", "{}", "{\"a\":1}" },
		{ "{\"a\":{\"b\":\"1\"}}", "{\"a\":{\"c\":[2]},\"d\":true}",
		  "{\"a\":{\"b\":\"1\",\"c\":[2]},\"d\":true}" },
		{ "{\"a\":\"$$(X) \\\"\\n\"}", "{\"b\":\"\"}",
		  "{\"a\":\"$$(X) \\\"\\n\",\"b\":\"\"}" },
		{ "{\"a\":1}", "{\"a\":\"1\"}", "{\"a\":\"1\"}" },
		{ "{\"l\":[{\"name\":\"x\",\"v\":1},{\"name\":\"y\"}]}",
		  "{\"l\":[{\"name\":\"y\",\"v\":2},{\"name\":\"z\"}]}",
		  "{\"l\":[{\"name\":\"x\",\"v\":1},{\"name\":\"y\",\"v\":2},{\"name\":\"z\"}]}" },
		{ "{\"volumeMounts\":[{\"name\":\"x\",\"mountPath\":\"/a\"}]}",
		  "{\"volumeMounts\":[{\"name\":\"x\",\"mountPath\":\"/b\"},{\"mountPath\":\"/a\",\"readOnly\":true}]}",
		  "{\"volumeMounts\":[{\"name\":\"x\",\"mountPath\":\"/a\",\"readOnly\":true},{\"name\":\"x\",\"mountPath\":\"/b\"}]}" },
		{ "{\"ports\":[{\"containerPort\":80}]}",
		  "{\"ports\":[{\"containerPort\":80,\"name\":\"w\"},{\"containerPort\":81}]}",
		  "{\"ports\":[{\"containerPort\":80,\"name\":\"w\"},{\"containerPort\":81}]}" },
		{ "{\"add\":[\"IPC_LOCK\"]}", "{\"add\":[\"IPC_LOCK\",\"SYS_NICE\"]}",
		  "{\"add\":[\"IPC_LOCK\",\"SYS_NICE\"]}" },
		/* Entries that nothing tells apart come behind. */
		{ "{\"e\":[{\"a\":1}]}", "{\"e\":[{\"a\":1}]}", "{\"e\":[{\"a\":1},{\"a\":1}]}" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO_BUF pod = BUF_INIT;
		struct err err;

		buf_adds(&pod, cases[i].pod);
		assert_int_equal(overlay_merge(&pod, cases[i].over, &arena, &err), 0);
		assert_string_equal(buf_text(&pod), cases[i].both);
	}
}

/* A command may have any byte but NUL; what is merged must not change it. */
static void every_character_of_a_text_stays(void **state)
{
	AUTO_BUF pod = BUF_INIT;
	AUTO_BUF before = BUF_INIT;
	struct err err;
	static const char hard[] =
		"\xc2\x80\xc2\x85\xe2\x80\xa8\xe2\x80\xa9\xef\xbb\xbf\xef\xbf\xbe\xf0\x9f\x9a\x80 x: # - {}[]&*!|>%@`";
	char text[400] = "";
	size_t size = 0;

	(void)state;
	for (int c = 1; c < 128; c++)
		text[size++] = (char)c;
	memcpy(text + size, hard, sizeof(hard));
	size += sizeof(hard) - 1;
	buf_adds(&pod, "{\"a\":");
	buf_add_json(&pod, text, size);
	buf_adds(&pod, "}");
	buf_adds(&before, buf_text(&pod));
	if (overlay_merge(&pod, "{}", &arena, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(buf_text(&pod), buf_text(&before));
}

static void what_is_no_map_is_refused_and_the_pod_stays(void **state)
{
	static const char *const texts[] = {
		"", "[]", "3", "{", "{\"a\":1} {}", "{\"a\":1,\"a\":2}"
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		AUTO_BUF pod = BUF_INIT;
		struct err err;

		buf_adds(&pod, "{\"a\":1}");
		assert_true(overlay_merge(&pod, texts[i], &arena, &err) < 0);
		assert_string_equal(buf_text(&pod), "{\"a\":1}");
	}
}

static char *file_read(const char *folder, const char *name)
{
	char path[512];
	char *text = arena_alloc(&arena, 32768);
	FILE *file;
	size_t size;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "r");
	if (!file)
		fail_msg("%s is missing", path);
	size = fread(text, 1, 32767, file);
	fclose(file);
	text[size] = '\0';
	return text;
}

/* The forms live on in clusters. The body is that of tests/golden/jobfile/pods.yaml. */
static void a_pod_with_all_that_a_job_may_add_is_written_as_ever(void **state)
{
	AUTO_BUF pod = BUF_INIT;
	struct json_reader json;
	struct json_slice key, text;
	char *body = strchr(file_read(GOLDEN_FOLDER "/../jobfile", "pods.expected"), '\n') + 1;
	struct err err;

	(void)state;
	buf_adds(&pod, file_read(GOLDEN_FOLDER, "pod.json"));
	pull_init(&json, body, strcspn(body, "\n"));
	pull_object(&json);
	while (pull_member(&json, &key)) {
		if (!pull_key_is(&key, "pod") && !pull_key_is(&key, "kubernetes")) {
			pull_skip(&json);
			continue;
		}
		pull_string(&json, &text);
		assert_true(overlay_merge(&pod, pull_text(&json, &text, &arena), &arena, &err) >=
			    0);
	}
	assert_true(pull_finish(&json, &err) >= 0);
	if (getenv("FAIRLEAD_SHOW_GOLDEN")) {
		fprintf(stderr, "=== pod-merged\n%s\n", buf_text(&pod));
		return;
	}
	buf_addc(&pod, '\n');
	assert_string_equal(buf_text(&pod), file_read(GOLDEN_FOLDER, "pod-merged.json"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_added_is_merged),
		cmocka_unit_test(every_character_of_a_text_stays),
		cmocka_unit_test(a_pod_with_all_that_a_job_may_add_is_written_as_ever),
		cmocka_unit_test(what_is_no_map_is_refused_and_the_pod_stays),
	};
	int failed;

	arena_init(&arena, 64 << 20);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	arena_deinit(&arena);
	return failed;
}
