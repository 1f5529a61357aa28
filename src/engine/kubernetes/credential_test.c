/* SPDX-License-Identifier: Apache-2.0 */
#include "base/testing.h"
#include "engine/kubernetes/credential.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"

#define V1 "client.authentication.k8s.io/v1"
#define NOW INT64_C(1800000000000)

static struct credential_text given;

static const struct access_exec plain = { .version = V1, .info = "KUBERNETES_EXEC_INFO={}" };

static int parse(const char *text, struct err *err)
{
	return credential_parse(&plain, text, strlen(text), NOW, &given, err);
}

static void token_certificate_and_expiry_are_read(void **state)
{
	struct err err = { 0 };

	(void)state;
	assert_int_equal(
		parse("{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
		      "\",\"spec\":{\"interactive\":false},\"status\":{\"token\":\"t.1\",\"expirationTimestamp\":\"2027-01-15T08:00:30.5+00:00\","
		      "\"clientCertificateData\":\"C\\n\",\"clientKeyData\":\"K\\n\",\"more\":[1]}}",
		      &err),
		0);
	assert_string_equal(given.token, "t.1");
	assert_string_equal(given.certificate, "C\n");
	assert_string_equal(given.key, "K\n");
	assert_int_equal(given.expires_ms, NOW + 30000);
	assert_int_equal(parse("{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
			       "\",\"status\":{\"token\":\"t\",\"expirationTimestamp\":null}}",
			       &err),
			 0);
	assert_int_equal(given.expires_ms, 0);
}

static void what_is_no_credential_is_refused_with_its_reason(void **state)
{
#define HEAD "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\",\"status\":"
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "", "did not print an ExecCredential" },
		{ "token: x", "did not print an ExecCredential" },
		{ "{\"kind\":\"Pod\",\"apiVersion\":\"" V1 "\"}", "in place of" },
		{ "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
		  "beta1\",\"status\":{\"token\":\"t\"}}",
		  "v1beta1" },
		{ HEAD "{}}", "neither a token" },
		{ HEAD "{\"clientCertificateData\":\"C\"}}", "without its key" },
		{ HEAD "{\"token\":\"a b\"}}", "characters" },
		{ HEAD "{\"token\":\"t\",\"expirationTimestamp\":\"soon\"}}", "no time" },
		{ HEAD "{\"token\":\"t\",\"expirationTimestamp\":\"2027-01-15T08:00:00\"}}",
		  "no time" },
		{ HEAD "{\"token\":\"t\",\"expirationTimestamp\":\"2027-01-15T08:00:00Z\"}}",
		  "expired already" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err err = { 0 };

		assert_true(parse(cases[i].text, &err) < 0);
		if (!strstr(err.text, cases[i].says))
			fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i].says);
	}
}

static void what_is_too_long_is_refused(void **state)
{
	struct err err = { 0 };
	char *text = malloc(EXEC_TOKEN_MAX + 256);
	int head = snprintf(text, 256, "%s{\"token\":\"", HEAD);

	(void)state;
	CHECK(text);
	memset(text + head, 't', EXEC_TOKEN_MAX);
	memcpy(text + head + EXEC_TOKEN_MAX - 1, "\"}}", 4);
	assert_int_equal(parse(text, &err), 0);
	memcpy(text + head + EXEC_TOKEN_MAX, "\"}}", 4);
	text[head + EXEC_TOKEN_MAX - 1] = 't';
	assert_true(parse(text, &err) < 0);
	free(text);
}

/* --- a program that runs -------------------------------------------------------------------------------------------------- */

static void nothing(void *context)
{
	(void)context;
}

static struct credential *begin(const char *script)
{
	static char sh[] = "sh", c_flag[] = "-c", secret[] = "SECRET=s3", words[512];
	static char *const argv[] = { sh, c_flag, words, NULL }, *const env[] = { secret, NULL };
	static struct access_exec exec;
	struct credential *c;
	struct err err = { 0 };

	snprintf(words, sizeof(words), "%s", script);
	exec = plain;
	exec.argv = argv;
	exec.env = env;
	assert_int_equal(credential_create(&exec, nothing, NULL, &c, &err), 0);
	return c;
}

static enum credential_state wait_for(struct credential *c, uint64_t *serial, char problem[256])
{
	enum credential_state state;

	while ((state = credential_now(c, serial, &given, problem)) == CREDENTIAL_COMES)
		usleep(5000);
	return state;
}

#define PRINT(TOKEN)                                                                               \
	"printf '{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1                                \
	"\",\"status\":{\"token\":\"%s\"}}' " TOKEN

static void it_gets_its_environment_and_nothing_to_read(void **state)
{
	char problem[256];
	uint64_t serial = 0;
	struct credential *c =
		begin("cat; test \"$KUBERNETES_EXEC_INFO\" = '{}' && " PRINT("$SECRET"));

	(void)state;
	assert_int_equal(wait_for(c, &serial, problem), CREDENTIAL_IS);
	assert_int_equal(serial, 1);
	assert_string_equal(given.token, "s3");
	credential_destroy(c);
}

static void what_the_server_refused_is_asked_for_anew(void **state)
{
	char problem[256];
	uint64_t serial = 0;
	struct credential *c = begin(PRINT("$$"));

	(void)state;
	assert_int_equal(wait_for(c, &serial, problem), CREDENTIAL_IS);
	credential_refused(c, serial + 1); /* of another one */
	assert_int_equal(credential_now(c, &serial, &given, problem), CREDENTIAL_IS);
	credential_refused(c, serial);
	if (credential_now(c, &serial, &given, problem) != CREDENTIAL_COMES)
		assert_int_equal(serial, 2); /* it has come already */
	assert_int_equal(wait_for(c, &serial, problem), CREDENTIAL_IS);
	assert_int_equal(serial, 2);
	credential_destroy(c);
}

static void the_pause_after_refusals_doubles_up_to_a_minute_with_a_random_part(void **state)
{
	(void)state;
	assert_int_equal(credential_pause_ms(1, 0), 1000);
	assert_int_equal(credential_pause_ms(2, 0), 2000);
	assert_int_equal(credential_pause_ms(6, 0), 32000);
	assert_int_equal(credential_pause_ms(7, 0), 60000);
	assert_int_equal(credential_pause_ms(UINT32_MAX, 0), 60000);
	assert_int_equal(credential_pause_ms(7, 14999), 45001);
	for (uint64_t random = 0; random < 100000; random += 777)
		assert_in_range(credential_pause_ms(3, random), 3001, 4000);
}

/* Each one it gives is refused at once: it is not run all the time, and what there is goes on to be used. */
static void what_is_refused_again_is_used_on_until_the_program_may_run(void **state)
{
	struct credential *c = begin(PRINT("$$"));
	char problem[256];
	uint64_t serial = 0;
	int64_t began_ms;
	enum credential_state is;

	(void)state;
	assert_int_equal(wait_for(c, &serial, problem), CREDENTIAL_IS);
	began_ms = clock_boot_ms();
	credential_refused(c, serial);
	assert_int_equal(wait_for(c, &serial, problem), CREDENTIAL_IS);
	assert_int_equal(serial, 2);
	credential_refused(c, serial);
	is = credential_now(c, &serial, &given, problem);
	assert_true(is == CREDENTIAL_IS || clock_boot_ms() - began_ms > 1500);
	assert_true(serial == 2 || clock_boot_ms() - began_ms > 1500);
	credential_destroy(c);
}

static void what_goes_wrong_is_said_with_its_own_words(void **state)
{
	char problem[256];
	uint64_t serial = 0;
	struct credential *c = begin("echo 'log in first' >&2; exit 3");

	(void)state;
	assert_int_equal(wait_for(c, &serial, problem), CREDENTIAL_FAILS);
	assert_non_null(strstr(problem, "ended with 3: log in first"));
	credential_destroy(c);
}

static void one_that_does_not_end_is_ended_with_what_it_started(void **state)
{
	struct credential *c = begin("sleep 1000 & sleep 1000");
	int64_t began_ms = clock_boot_ms();

	(void)state;
	usleep(100000);
	credential_destroy(c);
	assert_true(clock_boot_ms() - began_ms < EXEC_MOST_MS);
}

static void it_is_read_where_ends_of_children_are_ignored(void **state)
{
	char problem[256] = "";
	uint64_t serial = 0;
	struct credential *c;

	(void)state;
	assert_true(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
	c = begin(PRINT("t"));
	assert_int_equal(wait_for(c, &serial, problem), CREDENTIAL_IS);
	credential_destroy(c);
	assert_true(signal(SIGCHLD, SIG_DFL) != SIG_ERR);
}

/* The pipe is never empty then. */
static void one_that_prints_without_end_is_ended(void **state)
{
	char problem[256];
	uint64_t serial = 0;
	struct credential *c = begin("exec yes");
	int64_t began_ms = clock_boot_ms();

	(void)state;
	assert_int_equal(wait_for(c, &serial, problem), CREDENTIAL_FAILS);
	assert_non_null(strstr(problem, "it printed more than"));
	credential_destroy(c);
	c = begin("exec yes >&2");
	usleep(300000);
	credential_destroy(c);
	assert_true(clock_boot_ms() - began_ms < EXEC_MOST_MS);
}

static void one_that_is_not_there_is_said_at_once(void **state)
{
	char *argv[] = { (char[]){ "no-such-program" }, NULL };
	struct access_exec exec = plain;
	struct credential *c;
	struct err err = { 0 };

	(void)state;
	exec.argv = argv;
	exec.hint = "get it from the cloud";
	assert_true(credential_create(&exec, nothing, NULL, &c, &err) < 0);
	assert_non_null(strstr(err.text, "no-such-program"));
	assert_non_null(strstr(err.text, "get it from the cloud"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(token_certificate_and_expiry_are_read),
		cmocka_unit_test(what_is_no_credential_is_refused_with_its_reason),
		cmocka_unit_test(what_is_too_long_is_refused),
		cmocka_unit_test(it_gets_its_environment_and_nothing_to_read),
		cmocka_unit_test(what_the_server_refused_is_asked_for_anew),
		cmocka_unit_test(
			the_pause_after_refusals_doubles_up_to_a_minute_with_a_random_part),
		cmocka_unit_test(what_is_refused_again_is_used_on_until_the_program_may_run),
		cmocka_unit_test(what_goes_wrong_is_said_with_its_own_words),
		cmocka_unit_test(one_that_does_not_end_is_ended_with_what_it_started),
		cmocka_unit_test(it_is_read_where_ends_of_children_are_ignored),
		cmocka_unit_test(one_that_prints_without_end_is_ended),
		cmocka_unit_test(one_that_is_not_there_is_said_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
