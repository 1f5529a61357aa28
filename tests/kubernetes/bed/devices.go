// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// One line of the input: a node, what drivers publish, and claims that are not allocated yet.
type deviceQuestion struct {
	Node    *corev1.Node                 `json:"node"`
	Slices  []*resourceapi.ResourceSlice `json:"slices"`
	Classes []*resourceapi.DeviceClass   `json:"classes"`
	Claims  []*resourceapi.ResourceClaim `json:"claims"`
	Taken   []string                     `json:"taken"` // driver/pool/device
}

// Whether the claims fit on the node, and what kube-scheduler's allocator gives them: "claim request driver/pool/device".
type deviceAnswer struct {
	Answer string   `json:"answer"`
	Given  []string `json:"given"`
	Why    string   `json:"why"`
}

type classes map[string]*resourceapi.DeviceClass

func (c classes) List() ([]*resourceapi.DeviceClass, error) {
	var all []*resourceapi.DeviceClass
	for _, class := range c {
		all = append(all, class)
	}
	return all, nil
}

func (c classes) Get(name string) (*resourceapi.DeviceClass, error) {
	if class, found := c[name]; found {
		return class, nil
	}
	return nil, fmt.Errorf("there is no class %s", name)
}

func deviceAnswerOne(ctx context.Context, question deviceQuestion) deviceAnswer {
	bad := func(err error) deviceAnswer { return deviceAnswer{Answer: "bad", Given: []string{}, Why: err.Error()} }
	known := classes{}
	for _, class := range question.Classes {
		known[class.Name] = class
	}
	taken := structured.AllocatedState{AllocatedDevices: sets.New[structured.DeviceID](), AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity: structured.NewConsumedCapacityCollection()}
	for _, name := range question.Taken {
		parts := strings.SplitN(name, "/", 3)
		taken.AllocatedDevices.Insert(structured.MakeDeviceID(parts[0], parts[1], parts[2]))
	}
	structured.EnableAllocators("incubating") // the one that kube-scheduler uses with the features that are on by themselves
	features := structured.Features{DeviceTaints: true, PartitionableDevices: true, PrioritizedList: true, DeviceBindingAndStatus: true}
	allocator, err := structured.NewAllocator(ctx, features, taken, known, question.Slices, cel.NewCache(100, cel.Features{EnableConsumableCapacity: true}))
	if err != nil {
		return bad(err)
	}
	results, err := allocator.Allocate(ctx, question.Node, question.Claims)
	if err != nil {
		return bad(err)
	}
	if results == nil {
		return deviceAnswer{Answer: "none", Given: []string{}}
	}
	answer := deviceAnswer{Answer: "fits", Given: []string{}}
	for i, result := range results {
		for _, device := range result.Devices.Results {
			answer.Given = append(answer.Given, fmt.Sprintf("%s %s %s/%s/%s", question.Claims[i].Name, device.Request, device.Driver, device.Pool, device.Device))
		}
	}
	return answer
}

func deviceAnswers(in io.Reader, out io.Writer) int {
	return answerLines(in, out, 16<<20, func(question deviceQuestion) deviceAnswer { return deviceAnswerOne(context.Background(), question) })
}
