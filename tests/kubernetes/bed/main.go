// SPDX-License-Identifier: Apache-2.0

// Kubernetes without machines: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok in one program, and what the
// scheduler says of nodes, of expressions about devices and of claims. The name that it is called by says which it is. Tests start it on loopback;
// nothing of the product uses it.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/restclient"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	switch name := filepath.Base(os.Args[0]); name {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(manager.NewControllerManagerCommand()))
	case "kube-scheduler":
		os.Exit(cli.Run(scheduler.NewSchedulerCommand()))
	case "feasible-nodes":
		os.Exit(feasibleNodes(os.Stdin, os.Stdout))
	case "cel-answers":
		os.Exit(celAnswers(os.Stdin, os.Stdout))
	case "device-answers":
		os.Exit(deviceAnswers(os.Stdin, os.Stdout))
	default:
		fmt.Fprintf(os.Stderr, "%s: call it as etcd, kube-apiserver, kube-controller-manager, kube-scheduler, feasible-nodes, cel-answers or device-answers\n", name)
		os.Exit(2)
	}
}
