/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kubernetes/rights.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#include "engine/kubernetes/client.h"

#define TEXT                                                                                       \
	"{\"message\":\"pods \\\"a\\\" is forbidden: User \\\"u\\\" cannot delete resource \\\"pods\\\" in API group \\\"\\\" in the namespace \\\"n\\\"\",\"reason\":\"Forbidden\"}"
#define QUOTA                                                                                      \
	"{\"message\":\"pods \\\"a\\\" is forbidden: exceeded quota: q\",\"reason\":\"Forbidden\"}"

static void check(const char *method, const char *path, const char *verb, const char *group,
		  const char *resource, const char *namespace)
{
	struct right right;

	assert_true(right_of(method, path, &right));
	assert_string_equal(right.verb, verb);
	assert_string_equal(right.group, group);
	assert_string_equal(right.resource, resource);
	assert_string_equal(right.namespace, namespace);
}

static void requests_ask_for_what_roles_say(void **state)
{
	struct right right;
	char path[600] = "/api/v1/";

	(void)state;
	check("GET", "/api/v1/nodes?limit=500", "list", "", "nodes", "");
	check("GET", "/api/v1/pods?watch=1&resourceVersion=7", "watch", "", "pods", "");
	check("GET", "/api/v1/namespaces/kube-system", "get", "", "namespaces", "");
	check("GET", "/api/v1/namespaces?watch=1", "watch", "", "namespaces", "");
	check("POST", "/api/v1/namespaces/n/pods", "create", "", "pods", "n");
	check("POST", "/api/v1/namespaces/n/pods/p/binding", "create", "", "pods/binding", "n");
	check("PATCH", "/apis/resource.k8s.io/v1/namespaces/n/resourceclaims/c/status", "patch",
	      "resource.k8s.io", "resourceclaims/status", "n");
	check("DELETE", "/api/v1/namespaces/n/secrets/s", "delete", "", "secrets", "n");
	check("PUT", "/apis/coordination.k8s.io/v1/namespaces/n/leases/l", "update",
	      "coordination.k8s.io", "leases", "n");
	assert_false(right_of("GET", "/version", &right));
	assert_false(right_of("GET", "/api/v1/", &right));
	memset(path + 8, 'x', 500);
	assert_false(right_of("GET", path, &right));
}

static struct kube_answer answer_of(int status, const char *text)
{
	return (struct kube_answer){ .status = status, .body = text, .size = strlen(text) };
}

static void what_is_lacking_is_news_once(void **state)
{
	const struct kube_answer lacks = answer_of(403, TEXT), quota = answer_of(403, QUOTA),
				 good = answer_of(200, "{}"), busy = answer_of(409, "{}");
	const char *path = "/api/v1/namespaces/n/pods/a";
	static struct rights rights;

	(void)state;
	assert_int_equal(rights_note(&rights, "DELETE", path, &good), RIGHTS_SAME);
	assert_int_equal(rights_note(&rights, "DELETE", path, &quota), RIGHTS_SAME);
	assert_int_equal(rights_note(&rights, "DELETE", path, &lacks), RIGHTS_LACKS);
	assert_int_equal(rights_note(&rights, "DELETE", path, &lacks), RIGHTS_SAME);
	assert_int_equal(rights_note(&rights, "PATCH", path, &good), RIGHTS_SAME);
	assert_int_equal(rights_note(&rights, "DELETE", path, &busy), RIGHTS_SAME);
	assert_int_equal(rights_note(&rights, "DELETE", "/api/v1/namespaces/m/pods/a", &good),
			 RIGHTS_SAME);
	assert_int_equal(rights_note(&rights, "DELETE", "/api/v1/namespaces/n/pods/b", &good),
			 RIGHTS_GRANTED);
	assert_int_equal(rights.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_ask_for_what_roles_say),
		cmocka_unit_test(what_is_lacking_is_news_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
