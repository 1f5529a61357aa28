/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A journal belongs to the place where its jobs run: this machine, or one namespace of one Kubernetes cluster. A daemon that looked for
 * them elsewhere would find nothing, take all of them for gone, and start them a second time. So the place is a record, and a daemon that is
 * started for another one refuses.
 *
 * The word by which pods are told to be this journal's is part of it: whoever has the journal, on whatever machine, knows its own pods.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/state.h"

#define KUBERNETES "kubernetes"
#define MOVED                                                                                      \
	"; when nothing of them runs there any more, `--moved` takes them for gone and starts them anew"

static bool has_live_attempts(const struct facts *facts)
{
	for (uint32_t id = 1; id <= facts->attempts.count; id++) {
		const struct attempt *attempt = attempt_get(facts, (struct attempt_id){ id });

		if (attempt->state != ATTEMPT_OVER && attempt->state != ATTEMPT_FREE)
			return true;
	}
	return false;
}

/* Earlier releases kept the word in the data folder. */
static bool instance_of_folder(const char *folder, char out[SITE_INSTANCE_MAX])
{
	AUTO_BUF path = BUF_INIT;
	ssize_t got;
	int fd;

	buf_addf(&path, "%s/kubernetes-instance", folder);
	fd = open(buf_text(&path), O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	got = read(fd, out, SITE_INSTANCE_MAX - 1);
	close(fd);
	out[SITE_INSTANCE_MAX - 1] = '\0';
	return got == SITE_INSTANCE_MAX - 1 &&
	       strspn(out, "0123456789abcdef") == SITE_INSTANCE_MAX - 1;
}

/* The same on each machine, also where the record of it was lost. */
static void instance_of_journal(const struct daemon *d, char out[SITE_INSTANCE_MAX])
{
	struct journal_state state;

	journal_state(d->journal, &state);
	for (size_t i = 0; i < (SITE_INSTANCE_MAX - 1) / 2; i++)
		snprintf(out + 2 * i, 3, "%02x", state.id[i]);
}

int claim_engine(struct daemon *d, struct err *err)
{
	const struct work_site *site = &d->facts.site;
	bool of_folder;

	if (!d->kubernetes) {
		if (!site->engine[0])
			return 0;
		return err_set(
			err, ERR_CONFLICT,
			"the jobs of this journal run on %s, in namespace \"%s\", and here they would run a second time: start it with `fairlead serve --engine %s --namespace %s`, or name another data folder (--data) for jobs on this machine",
			site->engine, site->namespace, site->engine, site->namespace);
	}
	if (site->engine[0] && strcmp(site->engine, KUBERNETES) != 0)
		return err_set(
			err, ERR_CONFLICT,
			"the jobs of this journal run on %s, which this release does not know: start the newer release that wrote it",
			site->engine);
	of_folder = instance_of_folder(d->folder, d->instance);
	if (site->instance[0])
		memcpy(d->instance, site->instance, sizeof(d->instance));
	else if (!of_folder)
		instance_of_journal(d, d->instance);
	if (!site->engine[0] && !of_folder && has_live_attempts(&d->facts) && !d->kubernetes->moved)
		return err_set(
			err, ERR_CONFLICT,
			"jobs of this journal run on the machine of `fairlead up`, and on Kubernetes they would run a second time: name another data folder (--data), or cancel them there first" MOVED);
	return 0;
}

int claim_site(struct daemon *d, const struct engine_site *found, struct err *err)
{
	const struct work_site *site = &d->facts.site;
	bool other_cluster = site->engine[0] && strcmp(site->cluster, found->cluster) != 0;
	bool other_namespace = site->engine[0] && strcmp(site->namespace, found->namespace) != 0;

	d->engine_site = *found;
	if (!other_cluster && !other_namespace)
		return 0;
	if (d->kubernetes->moved || !has_live_attempts(&d->facts)) {
		log_line(
			LOG_WARN,
			"jobs ran in namespace \"%s\" of the Kubernetes cluster %s, and run in \"%s\" of %s from now on",
			site->namespace, site->cluster, found->namespace, found->cluster);
		return 0;
	}
	if (other_cluster)
		return err_set(
			err, ERR_CONFLICT,
			"jobs of this journal run on another Kubernetes cluster, whose kube-system has uid %s; here it has %s, and they would run a second time: name the right --kubeconfig or --context, or another data folder (--data)" MOVED,
			site->cluster, found->cluster);
	return err_set(
		err, ERR_CONFLICT,
		"jobs of this journal run in namespace \"%s\", and in \"%s\" they would run a second time: start it with --namespace %s, or with another data folder (--data)" MOVED,
		site->namespace, found->namespace, site->namespace);
}

bool claim_is_known(const struct daemon *d)
{
	const struct work_site *site = &d->facts.site;

	return strcmp(site->engine, KUBERNETES) == 0 &&
	       strcmp(site->cluster, d->engine_site.cluster) == 0 &&
	       strcmp(site->namespace, d->engine_site.namespace) == 0 &&
	       strcmp(site->instance, d->instance) == 0;
}

void claim_event(const struct daemon *d, struct event *ret)
{
	*ret = event_make(EVENT_ENGINE_CLAIMED, 0, "fairlead");
	ret->engine_claimed.engine = KUBERNETES;
	ret->engine_claimed.cluster = d->engine_site.cluster;
	ret->engine_claimed.namespace = d->engine_site.namespace;
	ret->engine_claimed.instance = d->instance;
}
