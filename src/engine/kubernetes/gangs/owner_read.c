/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kubernetes/gangs/owner_read.h"

#include <string.h>

#include "engine/kubernetes/reading.h"

static void count_more(struct owner_numbers *numbers, int64_t replicas)
{
	if (replicas < 0 || replicas > ENGINE_TASKS_MAX)
		replicas = ENGINE_TASKS_MAX + 1; /* refused with its number */
	numbers->replicas = (numbers->replicas < 0 ? 0 : numbers->replicas) + replicas;
}

static void read_replica_specs(struct json_reader *r, struct owner_numbers *numbers)
{
	struct json_slice key;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		int64_t replicas = 1;

		if (!enter_object(r))
			continue;
		while (pull_member(r, &key)) {
			if (pull_key_is(&key, "replicas") && pull_peek(r) == PULL_NUMBER)
				pull_int(r, &replicas);
			else
				pull_skip(r);
		}
		count_more(numbers, replicas);
	}
}

/* Of a RayCluster: how many replicas each group has, and of how many hosts each is. */
static void read_worker_groups(struct json_reader *r, struct owner_numbers *numbers)
{
	struct json_slice key;

	if (!enter_array(r))
		return;
	while (pull_element(r)) {
		int64_t least = 0, replicas = -1, hosts = 1;

		if (!enter_object(r))
			continue;
		while (pull_member(r, &key)) {
			int64_t *number = pull_key_is(&key, "replicas")      ? &replicas
					  : pull_key_is(&key, "minReplicas") ? &least
					  : pull_key_is(&key, "numOfHosts")  ? &hosts
									     : NULL;

			if (number && pull_peek(r) == PULL_NUMBER)
				pull_int(r, number);
			else
				pull_skip(r);
		}
		if (replicas < 0)
			replicas = least;
		if (replicas < 0 || replicas > ENGINE_TASKS_MAX || hosts > ENGINE_TASKS_MAX ||
		    hosts < 0)
			replicas = hosts = ENGINE_TASKS_MAX;
		count_more(numbers, replicas * hosts);
		if (least > replicas)
			least = replicas;
		numbers->elastic = (numbers->elastic < 0 ? 0 : numbers->elastic) +
				   (least > 0 ? least * hosts : 0);
	}
}

static void read_gang(struct json_reader *r, struct owner_numbers *numbers)
{
	struct json_slice key;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "minCount") && pull_peek(r) == PULL_NUMBER)
			pull_int(r, &numbers->least);
		else
			pull_skip(r);
	}
}

/* Of a PodGroup of Kubernetes itself: `gang: {minCount: 3}` or `basic: {}`. */
static void read_policy(struct json_reader *r, struct owner_numbers *numbers)
{
	struct json_slice key;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "basic") && pull_peek(r) == PULL_OBJECT) {
			numbers->single = true;
			pull_skip(r);
		} else if (pull_key_is(&key, "gang")) {
			read_gang(r, numbers);
		} else {
			pull_skip(r);
		}
	}
}

static void read_constraint(struct json_reader *r, struct owner_numbers *numbers)
{
	struct json_slice key;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "key") && numbers->together[0]) {
			numbers->more = true;
			pull_skip(r);
		} else if (pull_key_is(&key, "key")) {
			read_cut(r, numbers->together, sizeof(numbers->together));
		} else {
			pull_skip(r);
		}
	}
}

static void read_topology(struct json_reader *r, struct owner_numbers *numbers)
{
	if (!enter_array(r))
		return;
	while (pull_element(r))
		read_constraint(r, numbers);
}

static void read_constraints(struct json_reader *r, struct owner_numbers *numbers)
{
	struct json_slice key;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "topology"))
			read_topology(r, numbers);
		else
			pull_skip(r);
	}
}

/* Of a PyTorchJob: `elasticPolicy: {minReplicas: 2, maxReplicas: 4}`. */
static void read_elastic(struct json_reader *r, struct owner_numbers *numbers)
{
	struct json_slice key;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "minReplicas") && pull_peek(r) == PULL_NUMBER)
			pull_int(r, &numbers->elastic);
		else
			pull_skip(r);
	}
}

/* Of a LeaderWorkerSet: `leaderWorkerTemplate: {size: 4}`. */
static void read_leader_template(struct json_reader *r, struct owner_numbers *numbers)
{
	struct json_slice key;

	numbers->replicas = 1;
	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "size") && pull_peek(r) == PULL_NUMBER)
			pull_int(r, &numbers->replicas);
		else
			pull_skip(r);
	}
}

/* Of a LeaderWorkerSet: with LeaderReady its workers are made when the leader runs. */
static void read_startup(struct json_reader *r, struct owner_numbers *numbers)
{
	char policy[KUBE_WORD_MAX];

	read_cut(r, policy, sizeof(policy));
	numbers->single |= strcmp(policy, "LeaderReady") == 0;
}

static bool ends_with(const struct json_slice *key, const char *end)
{
	size_t size = strlen(end);

	return key->size >= size && memcmp(key->data + key->size - size, end, size) == 0;
}

static void read_spec(struct json_reader *r, struct owner_numbers *numbers)
{
	struct json_slice key;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		int64_t *number = pull_key_is(&key, "minMember")     ? &numbers->least
				  : pull_key_is(&key, "parallelism") ? &numbers->parallelism
				  : pull_key_is(&key, "completions") ? &numbers->completions
								     : NULL;

		if (number && pull_peek(r) == PULL_NUMBER)
			pull_int(r, number);
		else if (ends_with(&key, "ReplicaSpecs"))
			read_replica_specs(r, numbers);
		else if (pull_key_is(&key, "workerGroupSpecs"))
			read_worker_groups(r, numbers);
		else if (pull_key_is(&key, "leaderWorkerTemplate"))
			read_leader_template(r, numbers);
		else if (pull_key_is(&key, "startupPolicy") && pull_peek(r) == PULL_STRING)
			read_startup(r, numbers);
		else if (pull_key_is(&key, "elasticPolicy"))
			read_elastic(r, numbers);
		else if (pull_key_is(&key, "schedulingPolicy"))
			read_policy(r, numbers);
		else if (pull_key_is(&key, "schedulingConstraints"))
			read_constraints(r, numbers);
		else
			pull_skip(r);
	}
}

/* "1,3-5" has four. */
static int64_t indexes_count(struct json_reader *r)
{
	int64_t count = 0, first = -1, number = -1;
	const char *at;

	(void)pull_peek(r);
	at = r->at;
	pull_skip(r);
	for (; at < r->at; at++) {
		if (*at >= '0' && *at <= '9') {
			number = number < 0 ? *at - '0' : number * 10 + (*at - '0');
			if (number > INT32_MAX)
				number = INT32_MAX;
			continue;
		}
		if (*at == '-') {
			first = number;
		} else if (number >= 0) {
			count += first >= 0 && first <= number ? number - first + 1 : 1;
			first = -1;
		}
		number = -1;
	}
	return count;
}

static void read_status(struct json_reader *r, struct owner_numbers *numbers)
{
	struct json_slice key;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "succeeded") && pull_peek(r) == PULL_NUMBER)
			pull_int(r, &numbers->succeeded);
		else if (pull_key_is(&key, "failedIndexes") && pull_peek(r) == PULL_STRING)
			numbers->failed = indexes_count(r);
		else
			pull_skip(r);
	}
}

static void read_metadata(struct json_reader *r, struct owner_numbers *numbers)
{
	struct json_slice key;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		numbers->goes |=
			pull_key_is(&key, "deletionTimestamp") && pull_peek(r) == PULL_STRING;
		pull_skip(r);
	}
}

static void read_owner(struct json_reader *r, struct owner_numbers *ret)
{
	struct json_slice key;

	*ret = (struct owner_numbers){
		.least = -1, .parallelism = -1, .completions = -1, .replicas = -1, .elastic = -1
	};
	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "metadata"))
			read_metadata(r, ret);
		else if (pull_key_is(&key, "spec"))
			read_spec(r, ret);
		else if (pull_key_is(&key, "status"))
			read_status(r, ret);
		else
			pull_skip(r);
	}
}

bool owner_read(const char *json, size_t size, struct owner_numbers *ret)
{
	struct json_reader r;

	pull_init(&r, json, size);
	read_owner(&r, ret);
	return pull_finish(&r, NULL) == 0;
}

static int64_t tasks_at_most(int64_t number)
{
	return number > ENGINE_TASKS_MAX ? ENGINE_TASKS_MAX + 1 : number;
}

/* A Job without completions makes no more pods when one has succeeded. */
static int64_t of_one_job(const struct owner_numbers *job)
{
	int64_t left = job->completions - job->succeeded - job->failed;

	if (job->completions < 0)
		return job->succeeded > 0 ? 0 : job->parallelism;
	return left < job->parallelism ? (left > 0 ? left : 0) : job->parallelism;
}

bool owner_read_jobs(const char *json, size_t size, int64_t times, struct owner_numbers *ret)
{
	int64_t all = 0, each = 0, count = 0;
	struct owner_numbers job;
	struct json_reader r;
	struct json_slice key;

	*ret = (struct owner_numbers){ .parallelism = -1 };
	pull_init(&r, json, size);
	pull_object(&r);
	while (pull_member(&r, &key)) {
		if (!pull_key_is(&key, "items")) {
			pull_skip(&r);
			continue;
		}
		if (!enter_array(&r))
			continue;
		while (pull_element(&r)) {
			read_owner(&r, &job);
			if (job.goes || job.parallelism < 0)
				continue; /* one of its name comes when it is gone */
			count++;
			all += tasks_at_most(of_one_job(&job));
			job.succeeded = job.failed = 0;
			each = tasks_at_most(of_one_job(&job));
		}
	}
	if (count)
		ret->parallelism = all + (times > count ? (times - count) * each : 0);
	if (ret->parallelism == 0)
		ret->parallelism = 1;
	return pull_finish(&r, NULL) == 0;
}

/* Of a Job, no more than what is left to do comes at once. */
int64_t owner_gang_size(enum gang_kind kind, const struct owner_numbers *numbers)
{
	int64_t left = numbers->completions - numbers->succeeded - numbers->failed;

	switch (kind) {
	case GANG_SIGS:
	case GANG_VOLCANO:
	case GANG_NATIVE: return numbers->single ? 1 : numbers->least;
	case GANG_RAY: return numbers->replicas < 0 ? 1 : numbers->replicas + 1;
	case GANG_KUBEFLOW: return numbers->replicas;
	case GANG_LWS: return numbers->single ? 1 : numbers->replicas;
	case GANG_JOB:
		if (numbers->completions < 0 || numbers->parallelism < left)
			return numbers->parallelism;
		return left > 0 ? left : 1;
	case GANG_JOBSET: return numbers->parallelism;
	case GANG_ALONE:
	case GANG_OWN:
	case GANG_KUEUE:
	case GANG_OTHER: break;
	}
	return -1;
}

int64_t owner_gang_stay(enum gang_kind kind, const struct owner_numbers *numbers)
{
	int64_t size = owner_gang_size(kind, numbers), stay = numbers->elastic;

	if ((kind != GANG_RAY && kind != GANG_KUBEFLOW) || stay < 0)
		return size;
	if (kind == GANG_RAY)
		stay++; /* its head */
	else if (!stay)
		stay = 1;
	return stay < size ? stay : size;
}
