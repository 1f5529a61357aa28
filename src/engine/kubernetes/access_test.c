/* SPDX-License-Identifier: Apache-2.0 */
#include "base/testing.h"
#include "engine/kubernetes/access.h"

#include <string.h>

#include "base/arena.h"
#include "base/check.h"

static struct arena arena;

#define CLUSTER "clusters:\n- name: c\n  cluster:\n    server: https://h:6443/\n"
#define CONTEXT "contexts:\n- name: x\n  context: {cluster: c, user: u, namespace: jobs}\n"
#define CURRENT "current-context: x\n"
#define EXEC CLUSTER CONTEXT CURRENT "users:\n- name: u\n  user:\n    exec: "
#define V1 "apiVersion: client.authentication.k8s.io/v1, "

static int parse(const char *text, const char *context, struct kube_access *ret, struct err *err)
{
	return access_parse("config", text, strlen(text), "/nowhere", context, &arena, ret, err);
}

static void address_and_account_come_from_the_context(void **state)
{
	struct kube_access access;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(
		parse(CLUSTER
		      "    certificate-authority-data: YWJj\n" CONTEXT CURRENT
		      "users:\n- name: other\n  user: {token: wrong}\n- name: u\n  user: {token: t0}\n",
		      NULL, &access, &err),
		0);
	assert_string_equal(access.server, "https://h:6443");
	assert_string_equal(access.namespace, "jobs");
	assert_string_equal(access.token, "t0");
	assert_int_equal(access.authority.size, 3);
	assert_memory_equal(access.authority.data, "abc", 3);
	assert_false(access.insecure);
	assert_null(access.certificate.data);
}

static void what_would_be_another_identity_is_refused_by_name(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ EXEC "{}", "exec has no command" },
		{ EXEC "{command: x}", "the apiVersion of exec" },
		{ EXEC "{command: x, apiVersion: client.authentication.k8s.io/v1alpha1}",
		  "the apiVersion of exec" },
		{ EXEC "{command: x, " V1 "interactiveMode: Always}", "nobody who could type" },
		{ EXEC "{command: x, " V1 "args: y}", "args: a list" },
		{ EXEC "{command: x, " V1 "env: [{value: y}]}", "has no name" },
		{ CLUSTER CONTEXT CURRENT
		  "users: [{name: u, user: {token: t, exec: {command: x}}}]",
		  "besides" },
		{ CLUSTER CONTEXT CURRENT "users: [{name: u, user: {username: x}}]", "username" },
		{ CLUSTER CONTEXT CURRENT "users: [{name: u, user: {as: x}}]", "as is not" },
		{ CLUSTER CONTEXT CURRENT
		  "users: [{name: u, user: {client-certificate-data: YWJj}}]",
		  "go together" },
		{ CLUSTER CONTEXT CURRENT "users: [{name: u, user: {client-key-data: '*'}}]",
		  "base64" },
		{ CLUSTER CONTEXT CURRENT "users: []", "users has no \"u\"" },
		{ CLUSTER CONTEXT "users: []", "no context is current" },
		{ CONTEXT CURRENT "clusters: [{name: c, cluster: {server: 'ftp://x'}}]",
		  "https://HOST:PORT" },
		{ CONTEXT CURRENT
		  "clusters: [{name: c, cluster: {server: 'https://x', proxy-url: 'http://y'}}]",
		  "proxy-url" },
		{ "- a\n", "no kubeconfig" },
		{ CLUSTER CONTEXT CURRENT "users: [{name: u, user: {client-certificate: a.crt}}]",
		  "/nowhere/a.crt" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct kube_access access;
		struct err err = { 0 };

		assert_true(parse(cases[i].text, NULL, &access, &err) < 0);
		if (!strstr(err.text, cases[i].says))
			fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i].says);
	}
}

static void a_program_may_give_the_account(void **state)
{
	struct kube_access access;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(
		parse(EXEC
		      "{" V1
		      "command: bin/get, args: [token, --for=me], env: [{name: A, value: b}], provideClusterInfo: true, installHint: ask}",
		      NULL, &access, &err),
		0);
	assert_string_equal(access.exec->argv[0], "/nowhere/bin/get");
	assert_string_equal(access.exec->argv[2], "--for=me");
	assert_null(access.exec->argv[3]);
	assert_string_equal(access.exec->env[0], "A=b");
	assert_null(access.exec->env[1]);
	assert_string_equal(access.exec->hint, "ask");
	assert_string_equal(
		access.exec->info,
		"KUBERNETES_EXEC_INFO={\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\",\"spec\":{\"interactive\":false,\"cluster\":{\"server\":\"https://h:6443\"}}}");
	assert_int_equal(parse(EXEC "{" V1 "command: get}", NULL, &access, &err), 0);
	assert_string_equal(access.exec->argv[0], "get"); /* looked for in PATH */
}

static void another_context_may_be_named(void **state)
{
	struct kube_access access;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(
		parse(CLUSTER CONTEXT CURRENT "users: [{name: u, user: {}}]", "x", &access, &err),
		0);
	assert_true(parse(CLUSTER CONTEXT CURRENT "users: []", "y", &access, &err) < 0);
	assert_string_equal(err.text, "contexts has no \"y\"; it has x");
	assert_true(parse(CLUSTER CONTEXT "users: []", NULL, &access, &err) < 0);
	assert_string_equal(err.text, "no context is current: name one with --context; it has x");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(address_and_account_come_from_the_context),
		cmocka_unit_test(what_would_be_another_identity_is_refused_by_name),
		cmocka_unit_test(a_program_may_give_the_account),
		cmocka_unit_test(another_context_may_be_named),
	};
	int failed;

	arena_init(&arena, 512 << 20);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	arena_deinit(&arena);
	return failed;
}
