// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

// One line of the input: an expression, and the devices that it is asked about.
type celQuestion struct {
	Expression string      `json:"expression"`
	Devices    []celDevice `json:"devices"`
}

type celDevice struct {
	Driver                   string                                                    `json:"driver"`
	AllowMultipleAllocations *bool                                                     `json:"allowMultipleAllocations"`
	Attributes               map[resourceapi.QualifiedName]resourceapi.DeviceAttribute `json:"attributes"`
	Capacity                 map[resourceapi.QualifiedName]resourceapi.DeviceCapacity  `json:"capacity"`
}

// What kube-scheduler makes of it: "invalid", or an answer for each device. Why stands behind the answers, for people.
type celAnswer struct {
	Answers []string `json:"answers"`
	Why     string   `json:"why,omitempty"`
}

func celAnswerOne(question celQuestion) celAnswer {
	program := cel.GetCompiler(cel.Features{EnableConsumableCapacity: true}).CompileCELExpression(question.Expression, cel.Options{DisableCostEstimation: true})
	if program.Error != nil {
		return celAnswer{Answers: []string{"invalid"}, Why: program.Error.Detail}
	}
	answer := celAnswer{}
	for _, device := range question.Devices {
		matches, _, err := program.DeviceMatches(context.Background(), cel.Device(device))
		switch {
		case err != nil:
			answer.Answers, answer.Why = append(answer.Answers, "failed"), err.Error()
		case matches:
			answer.Answers = append(answer.Answers, "yes")
		default:
			answer.Answers = append(answer.Answers, "no")
		}
	}
	return answer
}

func celAnswers(in io.Reader, out io.Writer) int {
	return answerLines(in, out, 1<<20, celAnswerOne)
}
