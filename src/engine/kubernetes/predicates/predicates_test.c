/* SPDX-License-Identifier: Apache-2.0 */
/* Single cases that can be read. That all of them together say what kube-scheduler says: tests/kubernetes/test_feasible.py. */
#include "base/testing.h"
#include "base/buf.h"
#include "engine/kubernetes/predicates/match.h"
#include "engine/kubernetes/predicates/predicates.h"

static struct predicates known;
static struct arena arena;
static struct feasible feasible;

static void node_say(const char *name, const char *labels, const char *spec, const char *room)
{
	AUTO_BUF json = BUF_INIT;
	struct placed_node *node;
	struct err err = { 0 };

	buf_addf(&json,
		 "{'metadata':{'name':'%s','labels':{'kubernetes.io/hostname':'%s'%s}},"
		 "'spec':{%s},'status':{'allocatable':{%s'pods':'10'}}}",
		 name, name, labels, spec, room);
	for (size_t i = 0; i < json.size; i++)
		if (json.data[i] == '\'')
			json.data[i] = '"';
	if (placed_node_read(json.data, json.size, &node, &err) < 0)
		fail_msg("%s", err.text);
	predicates_node_set(&known, node);
}

static struct placed_pod *pod_of(const char *name, const char *labels, const char *spec)
{
	AUTO_BUF json = BUF_INIT;
	struct placed_pod *pod;
	struct err err = { 0 };

	buf_addf(&json,
		 "{'metadata':{'name':'%s','namespace':'d','uid':'%s','labels':{%s}},'spec':{%s}}",
		 name, name, labels, spec);
	for (size_t i = 0; i < json.size; i++)
		if (json.data[i] == '\'')
			json.data[i] = '"';
	if (placed_pod_read(json.data, json.size, &pod, &err) < 0)
		fail_msg("%s", err.text);
	return pod;
}

static void runs(const char *name, const char *labels, const char *spec)
{
	predicates_pod_set(&known, pod_of(name, labels, spec));
}

/* One letter for each node n0, n1, ...: f fits, else the reason. */
static const char *asked(const char *labels, const char *spec)
{
	static const char letters[] = "fnctapPrvsAND-";
	static char text[16];
	struct placed_pod *pod = pod_of("asks", labels, spec);

	arena_reset(&arena);
	predicates_check(&known, pod, NULL, &arena, &feasible);
	free(pod);
	memset(text, 0, sizeof(text));
	for (uint32_t i = 0; i < known.count; i++)
		text[known.nodes[i]->name[1] - '0'] = letters[feasible.reason[i]];
	return text;
}

static int fresh(void **state)
{
	(void)state;
	arena_init(&arena, 64 << 20);
	return 0;
}

static int clear(void **state)
{
	(void)state;
	predicates_deinit(&known);
	arena_deinit(&arena);
	return 0;
}

static void taints_cordons_and_labels_decide(void **state)
{
	(void)state;
	node_say("n0", ",'zone':'a','tier':'5'", "", "");
	node_say("n1", ",'zone':'b','tier':'10'",
		 "'taints':[{'key':'load','value':'7','effect':'NoSchedule'}]", "");
	node_say("n2", "", "'unschedulable':true", "");
	node_say("n3", "", "'taints':[{'key':'soft','effect':'PreferNoSchedule'}]", "");
	assert_string_equal(asked("", ""), "ftcf");
	assert_string_equal(asked("", "'tolerations':[{'operator':'Exists'}]"), "ffff");
	assert_string_equal(asked("", "'tolerations':[{'key':'load','operator':'Gt','value':'6'}]"),
			    "ffcf");
	assert_string_equal(asked("", "'tolerations':[{'key':'load','operator':'Gt','value':'7'}]"),
			    "ftcf");
	assert_string_equal(asked("", "'tolerations':[{'key':'load','value':'7',"
				      "'effect':'NoExecute'}]"),
			    "ftcf");
	assert_string_equal(asked("", "'nodeSelector':{'zone':'a'}"), "ftca");
	assert_string_equal(
		asked("", "'affinity':{'nodeAffinity':"
			  "{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':["
			  "{'matchExpressions':[{'key':'tier','operator':'Gt','values':['4']}]},"
			  "{'matchFields':[{'key':'metadata.name','operator':'In',"
			  "'values':['n3']}]}]}}}"),
		"ftcf");
	assert_int_equal(feasible.nodes, 4);
	assert_int_equal(feasible.fit, 2);
	assert_int_equal(feasible.failed[PREDICATE_TAINT], 1);
}

#define RUNS_ON(node, more) "'nodeName':'" node "'" more
#define NEAR(kind, key, label)                                                                     \
	"'affinity':{'" kind "':{'requiredDuringSchedulingIgnoredDuringExecution':[{"              \
	"'topologyKey':'" key "','labelSelector':{'matchLabels':{'app':'" label "'}}}]}}"

static void other_pods_draw_and_repel(void **state)
{
	(void)state;
	node_say("n0", ",'zone':'a'", "", "");
	node_say("n1", ",'zone':'a'", "", "");
	node_say("n2", ",'zone':'b'", "", "");
	node_say("n3", "", "", "");
	runs("db", "'app':'db'", RUNS_ON("n0", ""));
	assert_string_equal(asked("", NEAR("podAffinity", "zone", "db")), "ffAA");
	assert_string_equal(asked("", NEAR("podAntiAffinity", "zone", "db")), "NNff");
	assert_string_equal(asked("", NEAR("podAntiAffinity", "kubernetes.io/hostname", "db")),
			    "Nfff");
	/* Nothing of its kind runs: the first may go wherever the key is, if it is of that kind itself. */
	assert_string_equal(asked("'app':'web'", NEAR("podAffinity", "zone", "web")), "fffA");
	assert_string_equal(asked("'app':'x'", NEAR("podAffinity", "zone", "web")), "AAAA");
	/* One that runs wants none beside it. */
	runs("shy", "", RUNS_ON("n2", "," NEAR("podAntiAffinity", "zone", "loud")));
	assert_string_equal(asked("'app':'loud'", ""), "ffNf");
	predicates_pod_remove(&known, "shy");
	assert_string_equal(asked("'app':'loud'", ""), "ffff");
}

#define SPREAD(more)                                                                               \
	"'topologySpreadConstraints':[{'topologyKey':'zone','maxSkew':1,"                          \
	"'whenUnsatisfiable':'DoNotSchedule','labelSelector':{'matchLabels':{'app':'w'}}" more     \
	"}]"

static void no_domain_gets_more_than_the_skew(void **state)
{
	(void)state;
	node_say("n0", ",'zone':'a'", "", "");
	node_say("n1", ",'zone':'b'", "", "");
	node_say("n2", ",'zone':'c'", "'taints':[{'key':'t','effect':'NoSchedule'}]", "");
	runs("w0", "'app':'w','v':'1'", RUNS_ON("n0", ""));
	runs("w1", "'app':'w','v':'2'", RUNS_ON("n1", ""));
	/* c has none and counts, though the pod can't go there; unless the taints are honoured. */
	assert_string_equal(asked("'app':'w'", SPREAD("")), "sst");
	assert_string_equal(asked("'app':'w'", SPREAD(",'nodeTaintsPolicy':'Honor'")), "fft");
	assert_string_equal(
		asked("'app':'w'", SPREAD(",'nodeTaintsPolicy':'Honor','minDomains':3")), "sst");
	assert_string_equal(asked("'app':'w','v':'1'", SPREAD(",'matchLabelKeys':['v']")), "sft");
	assert_string_equal(asked("'app':'x'", SPREAD("")), "fft");
}

static void ports_pods_and_resources_are_counted(void **state)
{
	(void)state;
	node_say("n0", "", "", "'cpu':'2','memory':'1Gi','example.com/fpga':'1',");
	node_say("n1", "", "", "'cpu':'2','memory':'1Gi','pods':'1',");
	runs("a", "",
	     RUNS_ON("n0",
		     ",'containers':[{'name':'c','ports':[{'hostPort':80,'hostIP':'10.0.0.1'}],"
		     "'resources':{'requests':{'cpu':'1'}}}]"));
	assert_string_equal(asked("", "'containers':[{'ports':[{'hostPort':80}]}]"), "pf");
	assert_string_equal(
		asked("", "'containers':[{'ports':[{'hostPort':80,'hostIP':'10.0.0.2'}]}]"), "ff");
	assert_string_equal(
		asked("", "'containers':[{'ports':[{'hostPort':80,'protocol':'UDP'}]}]"), "ff");
	assert_string_equal(asked("", "'containers':[{'resources':{'requests':{'cpu':'1001m'}}}]"),
			    "rf");
	assert_string_equal(
		asked("", "'containers':[{'resources':{'requests':{'example.com/fpga':'1'}}}]"),
		"fr");
	/* A sidecar runs beside what begins behind it. */
	assert_string_equal(
		asked("", "'containers':[{'resources':{'requests':{'cpu':'100m'}}}],"
			  "'initContainers':[{'name':'s','restartPolicy':'Always','resources':"
			  "{'requests':{'cpu':'1'}}},{'name':'i','resources':{'requests':"
			  "{'cpu':'1'}}}],'overhead':{'cpu':'1m'}"),
		"rr");
	runs("b", "", RUNS_ON("n1", ""));
	assert_string_equal(asked("", ""), "fP");
}

static void what_others_count_is_left_to_them(void **state)
{
	static const char *const counted[] = { "cpu", NULL };
	struct placed_pod *pod;

	(void)state;
	node_say("n0", "", "", "'cpu':'1',");
	pod = pod_of("asks", "", "'containers':[{'resources':{'requests':{'cpu':'8'}}}]");
	predicates_check(&known, pod, counted, &arena, &feasible);
	assert_int_equal(feasible.fit, 1);
	predicates_check(&known, pod, NULL, &arena, &feasible);
	assert_int_equal(feasible.fit, 0);
	free(pod);
}

static const char *lacking(const char *spec)
{
	static const char *const counted[] = { "cpu", NULL };
	static char text[200];
	struct placed_pod *pod = pod_of("asks", "", spec);

	if (!predicates_lack(&known, pod, counted, text, sizeof(text)))
		text[0] = '\0';
	free(pod);
	return text;
}

static void what_no_node_has_is_named(void **state)
{
	(void)state;
	node_say("n0", ",'disk':'fast'", "", "'cpu':'1','rdma/hca':'2',");
	node_say("n1", ",'disk':'slow'", "", "'cpu':'1',");
	(void)asked(
		"",
		"'containers':[{'resources':{'requests':{'rdma/hca':'2'}}}]"); /* they are known now */
	assert_string_equal(lacking("'nodeSelector':{'disk':'slow'}"), "");
	assert_string_equal(lacking("'nodeSelector':{'disk':'none'}"),
			    "no node has the label disk=none");
	assert_string_equal(
		lacking("'nodeSelector':{'feature.node.kubernetes.io/cpu-cpuid.AVX512VP2INTERSECT_AND_SOME_MORE':'true'}"),
		"no node has the label feature.node.kubernetes.io/cpu-cpuid.AVX512VP2INTERSECT_AND_SOME_MORE=true");
	assert_string_equal(
		lacking("'containers':[{'resources':{'requests':{'rdma/hca':'2','cpu':'8'}}}]"),
		"");
	assert_string_equal(lacking("'containers':[{'resources':{'requests':{'rdma/hca':'3'}}}]"),
			    "no node has as much of the resource \"rdma/hca\" as is asked for");
	assert_string_equal(
		lacking("'containers':[{'resources':{'requests':{'example.com/x':'1'}}}]"),
		"no node has the resource \"example.com/x\"");
}

static void what_is_asked_for_is_named_but_for_what_others_count(void **state)
{
	static const char *const counted[] = { "cpu", NULL };
	static const struct {
		const char *requests, *named;
		size_t room;
	} cases[] = {
		{ "'cpu':'1','rdma/hca':'2','ephemeral-storage':'1Gi'",
		  "rdma/hca or ephemeral-storage", 100 },
		{ "'cpu':'1','odd':'2','rdma/hca':'0'", "", 100 },
		{ "'rdma/hca':'2','example.com/x':'1'", "rdma/hca o", 11 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct placed_pod *pod;
		char text[100], spec[200];

		snprintf(spec, sizeof(spec), "'containers':[{'resources':{'requests':{%s}}}]",
			 cases[i].requests);
		pod = pod_of("asks", "", spec);
		predicates_wished(pod, counted, text, cases[i].room);
		assert_string_equal(text, cases[i].named);
		free(pod);
	}
}

static void a_volume_that_is_not_bound_keeps_it_waiting(void **state)
{
	(void)state;
	node_say("n0", "", "", "");
	assert_string_equal(asked("", "'volumes':[{'name':'v','persistentVolumeClaim':"
				      "{'claimName':'none'}}]"),
			    "v");
	assert_string_equal(feasible.problem, "the volume claim \"none\" is not there");
	assert_string_equal(asked("", "'volumes':[{'name':'v','emptyDir':{}}]"), "f");
	assert_string_equal(asked("", "'volumes':[{'name':'v','ephemeral':{}}]"), "v");
}

static enum predicate one(const char *node, const char *spec, uint32_t times)
{
	struct placed_pod *pod = pod_of("asks", "'app':'web'", spec);
	const char *problem;
	enum predicate found =
		predicates_check_one(&known, pod, node, NULL, times, &arena, &problem);

	free(pod);
	return found;
}

static void a_pod_on_its_way_counts_where_it_goes(void **state)
{
	(void)state;
	node_say("n0", "", "", "'cpu':'1',");
	node_say("n1", "", "", "'cpu':'1',");
	predicates_pod_set(&known,
			   pod_of("way", "'app':'db'",
				  "'containers':[{'resources':{'requests':{'cpu':'600m'}}}]"));
	assert_int_equal(one("n0", "'containers':[{'resources':{'requests':{'cpu':'1'}}}]", 1),
			 PREDICATE_FITS);
	predicates_pod_assume(&known, "way", "n0");
	assert_int_equal(one("n0", "'containers':[{'resources':{'requests':{'cpu':'1'}}}]", 1),
			 PREDICATE_RESOURCE);
	assert_int_equal(one("n1", "'containers':[{'resources':{'requests':{'cpu':'1'}}}]", 1),
			 PREDICATE_FITS);
	/* What is told of it meanwhile does not say where it goes. */
	assert_true(predicates_pod_set(&known, pod_of("way", "'app':'db','more':'1'",
						      "'containers':[{'resources':{'requests':"
						      "{'cpu':'600m'}}}]")));
	assert_int_equal(one("n0", "'containers':[{'resources':{'requests':{'cpu':'1'}}}]", 1),
			 PREDICATE_RESOURCE);
	predicates_pod_assume(&known, "way", NULL);
	assert_int_equal(one("n0", "'containers':[{'resources':{'requests':{'cpu':'1'}}}]", 1),
			 PREDICATE_FITS);
	assert_int_equal(one("n0", "'containers':[{'resources':{'requests':{'cpu':'500m'}}}]", 2),
			 PREDICATE_FITS);
	assert_int_equal(one("n0", "'containers':[{'resources':{'requests':{'cpu':'500m'}}}]", 3),
			 PREDICATE_RESOURCE);
	assert_int_equal(one("n2", "", 1), PREDICATE_END);
	/* The same again is no change. */
	assert_false(predicates_pod_set(&known, pod_of("way", "'app':'db','more':'1'",
						       "'containers':[{'resources':{'requests':"
						       "{'cpu':'600m'}}}]")));
}

static void a_pod_that_keeps_others_away_is_known_while_it_runs(void **state)
{
	struct placed_pod *pod = pod_of("asks", "'app':'db'", "");

	(void)state;
	node_say("n0", "", "", "");
	assert_false(predicates_kept_away(&known, pod));
	runs("keeps", "'app':'web'", RUNS_ON("n0", "," NEAR("podAntiAffinity", "zone", "db")));
	assert_true(predicates_kept_away(&known, pod));
	predicates_pod_remove(&known, "keeps");
	assert_false(predicates_kept_away(&known, pod));
	free(pod);
}

static void nodes_come_and_go_with_their_pods(void **state)
{
	(void)state;
	runs("early", "'app':'db'", RUNS_ON("n1", ""));
	node_say("n0", ",'zone':'a'", "", "");
	assert_string_equal(asked("", ""), "f-");
	node_say("n1", ",'zone':'a'", "", "");
	assert_string_equal(asked("", NEAR("podAffinity", "zone", "db")), "ff");
	predicates_node_remove(&known, "n0");
	assert_int_equal(known.count, 1);
	predicates_node_remove(&known, "n1");
	assert_int_equal(known.count, 1);
	predicates_pod_remove(&known, "early");
	assert_int_equal(known.count, 0);
}

/* The limit and one more: an object of which more would have to be kept. */
static void an_object_that_says_too_much_is_refused(void **state)
{
	AUTO_BUF json = BUF_INIT;
	struct placed_pod *pod = NULL;
	struct err err = { 0 };

	(void)state;
	for (int more = 0; more < 2; more++) {
		buf_clear(&json);
		buf_adds(&json, "{\"metadata\":{\"uid\":\"");
		for (size_t i = 0; i < PLACED_MAX - sizeof(*pod) - 1 + (size_t)more; i++)
			buf_addc(&json, 'x');
		buf_adds(&json, "\"}}");
		assert_int_equal(placed_pod_read(json.data, json.size, &pod, &err),
				 more ? -(int)ERR_INVALID : 0);
		if (!more)
			free(pod);
	}
	assert_non_null(strstr(err.text, "256 KiB"));
	assert_true(placed_pod_read("{\"spec\":[]}", 11, &pod, &err) < 0);
}

static bool budget_names(const char *selector, int32_t allowed, const char *labels)
{
	AUTO_BUF json = BUF_INIT;
	struct placed_pod *pod = pod_of("asks", labels, "");
	struct placed_budget *budget;
	struct err err = { 0 };
	bool names;

	buf_addf(
		&json,
		"{'metadata':{'name':'b','namespace':'d'},'spec':{'minAvailable':'50%%'%s},'status':{'disruptionsAllowed':%d}}",
		selector, allowed);
	for (size_t i = 0; i < json.size; i++)
		if (json.data[i] == '\'')
			json.data[i] = '"';
	if (placed_budget_read(json.data, json.size, &budget, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(budget->allowed, allowed);
	assert_string_equal(placed_text(budget, budget->name), "b");
	assert_string_equal(placed_text(budget, budget->namespace), "d");
	names = selector_matches(budget, &budget->pods, pod, pod->labels);
	free(budget);
	free(pod);
	return names;
}

/* As policy/v1 has it: without a selector it names no pod, with an empty one every pod of its namespace. */
static void a_budget_names_pods_by_its_selector(void **state)
{
	(void)state;
	assert_false(budget_names("", 1, "'app':'a'"));
	assert_true(budget_names(",'selector':{}", 0, "'app':'a'"));
	assert_true(
		budget_names(",'selector':{'matchLabels':{'app':'a'}}", 2, "'app':'a','x':'y'"));
	assert_false(budget_names(",'selector':{'matchLabels':{'app':'a'}}", 2, "'app':'b'"));
	assert_true(budget_names(
		",'selector':{'matchExpressions':[{'key':'app','operator':'In','values':['b','c']}]}",
		0, "'app':'c'"));
	assert_false(budget_names(
		",'selector':{'matchExpressions':[{'key':'app','operator':'DoesNotExist'}]}", 0,
		"'app':'c'"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(taints_cordons_and_labels_decide, fresh, clear),
		cmocka_unit_test_setup_teardown(other_pods_draw_and_repel, fresh, clear),
		cmocka_unit_test_setup_teardown(no_domain_gets_more_than_the_skew, fresh, clear),
		cmocka_unit_test_setup_teardown(ports_pods_and_resources_are_counted, fresh, clear),
		cmocka_unit_test_setup_teardown(what_others_count_is_left_to_them, fresh, clear),
		cmocka_unit_test_setup_teardown(what_no_node_has_is_named, fresh, clear),
		cmocka_unit_test_setup_teardown(
			what_is_asked_for_is_named_but_for_what_others_count, fresh, clear),
		cmocka_unit_test_setup_teardown(a_volume_that_is_not_bound_keeps_it_waiting, fresh,
						clear),
		cmocka_unit_test_setup_teardown(a_pod_on_its_way_counts_where_it_goes, fresh,
						clear),
		cmocka_unit_test_setup_teardown(a_pod_that_keeps_others_away_is_known_while_it_runs,
						fresh, clear),
		cmocka_unit_test_setup_teardown(nodes_come_and_go_with_their_pods, fresh, clear),
		cmocka_unit_test(a_budget_names_pods_by_its_selector),
		cmocka_unit_test_setup_teardown(an_object_that_says_too_much_is_refused, fresh,
						clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
