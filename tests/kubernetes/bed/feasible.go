// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	resourceslicetracker "k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type cluster struct {
	objects []runtime.Object
	nodes   []*v1.Node
	pods    []*v1.Pod
	asked   []*v1.Pod
}

func read[T any](line []byte) *T {
	object := new(T)
	must(json.Unmarshal(line, object))
	return object
}

func (c *cluster) take(line []byte) {
	var kind struct{ Kind string }
	must(json.Unmarshal(line, &kind))
	switch kind.Kind {
	case "Node":
		node := read[v1.Node](line)
		c.nodes = append(c.nodes, node)
		c.objects = append(c.objects, node)
	case "Pod":
		pod := read[v1.Pod](line)
		switch {
		case pod.Spec.NodeName == "" && pod.Spec.SchedulerName == "fairlead":
			c.asked = append(c.asked, pod)
		case pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed: // the scheduler does not watch them
		default:
			c.pods = append(c.pods, pod)
		}
		c.objects = append(c.objects, pod)
	case "Namespace":
		c.objects = append(c.objects, read[v1.Namespace](line))
	case "PersistentVolumeClaim":
		c.objects = append(c.objects, read[v1.PersistentVolumeClaim](line))
	case "PersistentVolume":
		c.objects = append(c.objects, read[v1.PersistentVolume](line))
	case "StorageClass":
		c.objects = append(c.objects, read[storagev1.StorageClass](line))
	}
}

func (c *cluster) framework(ctx context.Context) (framework.Framework, *internalcache.Snapshot) {
	client := fake.NewClientset(c.objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	snapshot := internalcache.NewSnapshot(c.pods, c.nodes)
	config, err := latest.Default()
	must(err)
	claims := assumecache.NewAssumeCache(klog.FromContext(ctx), factory.Resource().V1().ResourceClaims().Informer(), "ResourceClaim", "", nil)
	tracker, err := resourceslicetracker.StartTracker(ctx, resourceslicetracker.Options{
		SliceInformer: factory.Resource().V1().ResourceSlices(), KubeClient: client})
	must(err)
	f, err := frameworkruntime.NewFramework(ctx, plugins.NewInTreeRegistry(), &config.Profiles[0],
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSharedDRAManager(dynamicresources.NewDRAManager(ctx, claims, tracker, factory)),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())),
		frameworkruntime.WithSnapshotSharedLister(snapshot),
		frameworkruntime.WithEventRecorder(&events.FakeRecorder{}),
		frameworkruntime.WithMetricsRecorder(metrics.NewMetricsAsyncRecorder(1000, time.Second, ctx.Done())),
		frameworkruntime.WithWaitingPods(frameworkruntime.NewWaitingPodsMap()),
		frameworkruntime.WithPodsInPreBind(frameworkruntime.NewPodsInPreBindMap()))
	must(err)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return f, snapshot
}

func ask(ctx context.Context, f framework.Framework, snapshot *internalcache.Snapshot, pod *v1.Pod) string {
	state := framework.NewCycleState()
	only, status, _ := f.RunPreFilterPlugins(ctx, state, pod)
	all, err := snapshot.NodeInfos().List()
	must(err)
	nodes := append([]fwk.NodeInfo{}, all...)
	sort.Slice(nodes, func(i, j int) bool { return nodes[i].Node().Name < nodes[j].Node().Name })
	var fits, others []string
	for _, node := range nodes {
		name := node.Node().Name
		why := ""
		switch {
		case !status.IsSuccess():
			why = status.Plugin() + ": " + status.Message()
		case only != nil && only.NodeNames != nil && !only.NodeNames.Has(name):
			why = "PreFilter"
		default:
			if s := f.RunFilterPlugins(ctx, state, pod, node); !s.IsSuccess() {
				why = s.Plugin()
			}
		}
		if why == "" {
			fits = append(fits, " "+name)
		} else {
			others = append(others, " "+name+" ("+why+")")
		}
	}
	return pod.Name + ":" + strings.Join(fits, "") + " |" + strings.Join(others, "")
}

func (c *cluster) answer(out io.Writer) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	f, snapshot := c.framework(ctx)
	for _, pod := range c.asked {
		fmt.Fprintln(out, ask(ctx, f, snapshot, pod))
	}
}

// On which nodes the plugins of kube-scheduler would let pods run. Reads objects, one a line, and says for each pod of scheduler `fairlead`
// that has no node: "NAME: node node | node (plugin) ...". A line "---" begins another cluster. All plugins of the default profile are
// asked, on a snapshot of the cluster, as the scheduler asks them.
func feasibleNodes(in io.Reader, out io.Writer) int {
	must(utilfeature.DefaultMutableFeatureGate.Set(string(features.TaintTolerationComparisonOperators) + "=true"))
	metrics.Register()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<26)
	c := &cluster{}
	for lines.Scan() {
		if line := lines.Bytes(); string(line) == "---" {
			c.answer(out)
			c = &cluster{}
		} else {
			c.take(line)
		}
	}
	must(lines.Err())
	c.answer(out)
	return 0
}
